"""Pictures of every view for people to look at, in .venv/pictures; and the one of the README, on request.

`make picture` writes docs/page.png; other runs do not touch it.
"""

import os
import struct
from pathlib import Path

import pytest
from browser.driver.page import Page
from browser.driver.places import ITEM
from browser.driver.viewed import SAMPLE, Viewed
from browser.test_accessibility import VIEWS, show

PAGE_PICTURE = os.environ.get("PAGE_PICTURE", "")
PICTURES = Path(__file__).parents[2] / ".venv" / "pictures"
SIZES = {"wide": (1440, 900), "usual": (1024, 768), "phone": (390, 844)}


def size_of(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_view_has_a_picture(page: Page, sample: Viewed, size: str, dark: bool) -> None:
    width, height = SIZES[size]
    page.resize(width, height, mobile=size == "phone")
    page.prefer(dark=dark, reduced_motion=True)
    ground = set[str]()
    for view in VIEWS:
        show(page, sample, view)
        path = PICTURES / f"{view}-{size}-{'dark' if dark else 'light'}.png"
        page.screenshot(path)
        scale = 2 if size == "phone" else 1
        assert size_of(path) == (width * scale, height * scale)
        ground.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    [colour] = ground
    levels = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (sum(levels) < 3 * 128) == dark


if PAGE_PICTURE:

    def test_the_picture_of_the_readme(page: Page, sample: Viewed) -> None:
        path = Path(PAGE_PICTURE)
        page.resize(1440, 900)
        page.prefer(reduced_motion=True)
        sample.session(page, SAMPLE)
        page.see(ITEM)
        page.screenshot(path)
        assert size_of(path) == (1440, 900)
