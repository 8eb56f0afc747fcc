"""The pictures of the demo: as wide as they may be, and true to the figures they are made of."""

import random
import re

import pytest

from demo.picture import KINDS, Look, Window, bar, cache_line, chart, key, legend, share

LOOKS = {
    "coloured": Look(colour=True, blocks=True),
    "blocks": Look(blocks=True),
    "plain": Look(),
    "coloured letters": Look(colour=True),
}


def windows(number: int) -> list[Window]:
    """Windows of every filling, among them an empty and a full one."""
    chance = random.Random(number)
    found = [Window(dict.fromkeys(KINDS, 0), 16_000, 4_000, 0)]
    for _ in range(number):
        edges = sorted(chance.randint(0, 12_000) for _ in KINDS)
        parts = [after - before for before, after in zip((0, *edges), edges, strict=False)]
        found.append(Window(dict(zip(KINDS, parts, strict=True)), 16_000, 4_000, chance.randint(0, sum(parts))))
    return found


def visible(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("width", [55, 75, 95])
def test_no_line_is_wider_than_it_may_be(name: str, width: int) -> None:
    look = LOOKS[name]
    drawn = windows(200)
    for window in drawn:
        assert len(visible(bar(window, look, width))) == width
        for line in (cache_line(window, look, width), *legend(window, look, width), *key(look, width)):
            assert len(visible(line)) <= width
    assert {len(visible(line)) for line in chart(drawn, look, width, 8)} == {width}


@pytest.mark.parametrize("name", ["plain", "coloured letters"])
def test_without_blocks_everything_is_ascii(name: str) -> None:
    look = LOOKS[name]
    for window in windows(50):
        lines = [bar(window, look, 75), cache_line(window, look, 75), *legend(window, look, 75), *key(look, 75)]
        assert all(line.isascii() for line in (*lines, *chart([window], look, 75, 8)))


def test_a_bar_shows_each_part_by_its_share() -> None:
    parts = dict(zip(KINDS, (2_000, 1_000, 0, 1, 0, 3_999, 1_000), strict=True))
    drawn = bar(Window(parts, 16_000, 4_000, 0), LOOKS["plain"], 80)
    assert drawn == "I" * 10 + "M" * 5 + "C" + "T" * 19 + "V" * 5 + "." * 20 + "-" * 20


def test_cells_are_shared_and_none_is_forgotten() -> None:
    assert share([1, 1, 998], 10) == [1, 1, 8]
    assert share([0, 500, 500], 11) in ([0, 5, 6], [0, 6, 5])
    assert share([3, 3, 3], 9) == [3, 3, 3]


def test_a_chart_stacks_the_parts_of_each_call_from_the_bottom() -> None:
    half = dict.fromkeys(KINDS, 0) | {KINDS[0]: 3_000, KINDS[-2]: 3_000}
    full = dict.fromkeys(KINDS, 0) | {KINDS[-2]: 12_000}
    lines = chart([Window(one, 16_000, 4_000, 0) for one in (half, full)], LOOKS["plain"], 75, 4)
    assert lines == [" T", " T", "TT", "IT"]
