"""A session as one file that can be mailed: everything readable, nothing loaded, nothing written."""

from pathlib import Path

import pytest
from browser.driver.hostile import NAME, make_hostile_home
from browser.driver.page import Page
from browser.driver.places import CARD, DETAIL, DIFFERENCE, ITEM, RAW, SLIDER, STRIP, TITLE
from browser.driver.viewed import RECORDED, SAMPLE, Viewed, run_daypack


@pytest.fixture
def exported(sample: Viewed, tmp_path: Path) -> Path:
    return export(sample.home, tmp_path / "sample.html", SAMPLE)


def export(home: str, path: Path, session: tuple[str, str]) -> Path:
    done = run_daypack(home, "export", session[1], "--agent", session[0], "--html", "--out", str(path))
    assert done.returncode == 0, done.stderr
    return path


def open_file(page: Page, path: Path) -> None:
    """Open the session of a file, which lists it alone unless it opens at once."""
    page.goto(path.as_uri())
    page.see(f"{TITLE}, {STRIP}")
    if not page.has(STRIP):
        page.click(TITLE)
    page.see(STRIP)


def test_every_part_of_the_session_is_in_the_file(page: Page, sample: Viewed, exported: Path) -> None:
    turns = sample.daypack("turns", "sample", "-n", "0")
    open_file(page, exported)
    assert page.attributes(STRIP, "aria-valuemax") == [str(len(turns))]
    page.see(ITEM)
    page.press("Home")
    page.see(f"{STRIP}[aria-valuenow='1']")
    page.wait_text(f"{turns[0]['tokens']:,} tokens", "main")
    page.press("End", "d")
    page.see(DIFFERENCE)
    page.press("r")
    page.see(RAW)
    page.press("h")
    page.wait_text("Build 1191 has the permit line", "main")
    page.press("Home")
    page.wait_text("The poster job fails since this morning.", "main")
    page.press("c")
    page.wait_for("document.querySelectorAll('main ol li a.card').length === 5")
    page.click(CARD)
    page.see(f"{DETAIL} h2")
    page.press("n")
    page.see("main", "proofreader")
    assert [url.split("#")[0] for url in page.requests] == [exported.as_uri()]


def test_the_file_offers_no_action(page: Page, exported: Path) -> None:
    open_file(page, exported)
    page.press("c")
    page.click(CARD)
    page.see(f"{DETAIL} h2")
    assert not page.has("button", "Undo")
    assert not page.has(SLIDER)
    assert not page.has("header", "Live")
    assert page.evaluate("document.querySelector('meta[http-equiv=Content-Security-Policy]').content").startswith(
        "default-src 'none'"
    )


def test_an_observed_session_is_exported_too(page: Page, sample: Viewed, tmp_path: Path) -> None:
    open_file(page, export(sample.home, tmp_path / "observed.html", RECORDED))
    page.see(ITEM)
    assert len(page.requests) == 1


def test_hostile_contents_stay_texts_in_a_file(page: Page, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    make_hostile_home(home)
    path = export(home, tmp_path / "hostile.html", ("<b>agent", NAME))
    open_file(page, path)
    page.see(ITEM)
    page.press("h")
    page.wait_text("Again: ", "main")
    page.press("Home")
    page.wait_text("<script>", "main")
    page.press("c", "n")
    page.wait_text("<svg onload=alert(1)>", "main")
    assert page.evaluate(
        "[window.hit, Object.prototype.polluted, document.querySelectorAll('img, iframe').length]"
    ) == [
        None,
        None,
        0,
    ]
    assert [url.split("#")[0] for url in page.requests] == [path.as_uri()]
