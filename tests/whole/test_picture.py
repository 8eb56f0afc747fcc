"""The pictures of the demo fit their width and match their figures."""

import re
from collections.abc import Iterator

import pytest
from cli.windows import visible, windows

from daypack.cli.window_bar import KINDS, NOTE, TAIL, VOLATILE, Look, Window
from demo.picture import STACK, chart, key
from demo.quotes import quote, quote_broken, quote_reply

LOOKS = {
    "coloured": Look(colour=True, blocks=True),
    "blocks": Look(blocks=True),
    "plain": Look(),
    "coloured letters": Look(colour=True),
}
CELL = re.compile(r"(?:\x1b\[38;5;(\d+)m)?(?:\x1b\[48;5;(\d+)m)?([ ▁▂▃▄▅▆▇█])(?:\x1b\[0m)?")


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("width", [55, 75, 95])
def test_no_line_exceeds_the_width(name: str, width: int) -> None:
    look = LOOKS[name]
    assert all(len(visible(line)) <= width for line in key(look, width))
    assert {len(visible(line)) for line in chart(windows(200), look, width, 8)} == {width}


@pytest.mark.parametrize("name", ["plain", "coloured letters"])
def test_without_blocks_everything_is_ascii(name: str) -> None:
    look = LOOKS[name]
    for window in windows(50):
        assert all(line.isascii() for line in (*key(look, 75), *chart([window], look, 75, 8)))


def test_a_chart_stacks_the_parts_of_each_call_from_the_bottom() -> None:
    half = dict.fromkeys(KINDS, 0) | {KINDS[0]: 1_000, KINDS[3]: 2_000, TAIL: 3_000}
    full = dict.fromkeys(KINDS, 0) | {TAIL: 9_000, NOTE: 1_000, VOLATILE: 2_000}
    lines = chart([Window(parts, 16_000, 4_000, 0) for parts in (half, full)], LOOKS["plain"], 75, 4)
    assert lines == [" V", " T", "TT", "PT"]


def columns(lines: list[str], width: int) -> Iterator[list[int | None]]:
    """Yield the colours of each column of a coloured chart, from the bottom up, eight per cell; None if empty."""
    cells = [CELL.findall(line) for line in lines]
    assert {len(row) for row in cells} == {width}
    for at in range(width):
        column: list[int | None] = []
        for fore, background, char in (row[at] for row in reversed(cells)):
            lower = " ▁▂▃▄▅▆▇█".index(char)
            column += [int(fore)] * lower if lower else []
            column += [int(background) if background else None] * (8 - lower)
        yield column


def test_a_chart_has_no_gaps_and_no_part_that_is_missing_from_its_key() -> None:
    drawn, look = windows(74), LOOKS["coloured"]
    seen: set[int | None] = set()
    for window, column in zip(drawn, columns(chart(drawn, look, 75, 8), 75), strict=True):
        filled = [colour for colour in column if colour is not None]
        assert column[: len(filled)] == filled  # nothing floats
        assert len(filled) == round(window.used / 12_000 * 64)
        ranks = [[kind.colour for kind in STACK].index(colour) for colour in filled]
        assert ranks == sorted(ranks)
        assert abs(ranks.count(1) - window.parts[TAIL] / 12_000 * 64) <= 8  # less than a cell
        seen |= set(filled)
    assert seen == {kind.colour for kind in STACK}
    named = "".join(key(look, 75))
    assert all(f"38;5;{kind.colour}m" in named for kind in STACK)


@pytest.mark.parametrize("dots", ["…", "..."])
@pytest.mark.parametrize("width", [12, 29, 60])
def test_a_quote_fits_and_marks_omitted_text(dots: str, width: int) -> None:
    text = "one two\n three four five six seven eight nine ten eleven twelve"
    assert quote("one\n two", 0, width, dots) == "one two"
    assert quote(text, 4, 100, dots) == f"{dots}{' '.join(text.split())[4:]}"
    for start in range(len(text)):
        assert len(quote(text, start, width, dots)) <= width
    assert quote(text, 8, 12, dots).endswith(dots)


def test_a_quote_of_a_reply_shows_what_matters() -> None:
    raw = 'All prices are in Norwegian crowns.\n<<<CONTEXT>>>\n{"version":2.3,"runtime":{"round":7,"workspace":""}}'
    assert quote_reply(raw, 60, "…") == ("All prices are in N…", '<<<CONTEXT>>> {"version":2.3,"runtime"…')
    assert quote_broken(raw, "altered", 20, "…") == '…"round":7,"workspa…'
    assert quote_broken(raw[:70], "truncated", 20, "…") == '…"runt (end)'
    assert quote_broken("Yes, one every night.", "missing", 20, "…") == "…every night. (end)"
