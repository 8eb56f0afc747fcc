"""The window of a turn as a bar: it fits its width and matches its figures."""

import json
import re
import subprocess
from collections.abc import Callable

import pytest
from cli.windows import EMPTY, visible, windows

from daypack.cli.window_bar import (
    CORE,
    INSTRUCTIONS,
    MEMORY,
    NOTE,
    OTHER,
    SUMMARY,
    TAIL,
    VOLATILE,
    Look,
    Window,
    bar,
    cache_line,
    draw,
    legend,
    share,
    terminal_look,
    window_of,
)
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]
LOOKS = {
    "coloured": Look(colour=True, blocks=True),
    "blocks": Look(blocks=True),
    "plain": Look(),
    "coloured letters": Look(colour=True),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("width", [30, 55, 95])
def test_no_line_exceeds_the_width(name: str, width: int) -> None:
    look = LOOKS[name]
    for window in windows(200):
        assert len(visible(bar(window, look, width))) == width
        for line in (cache_line(window, look, width), *legend(window, look, width)):
            assert len(visible(line)) <= width, visible(line)


@pytest.mark.parametrize("name", ["plain", "coloured letters"])
def test_without_blocks_everything_is_ascii(name: str) -> None:
    for window in windows(50):
        assert all(line.isascii() for line in draw(window, LOOKS[name], 75))


def test_without_colour_there_is_no_escape_sequence() -> None:
    for window in windows(50):
        assert not any("\x1b" in line for line in draw(window, LOOKS["blocks"], 75))


def test_a_bar_shows_each_part_by_its_share() -> None:
    parts = EMPTY | {INSTRUCTIONS: 2_000, MEMORY: 1_000, SUMMARY: 1, TAIL: 3_999, NOTE: 200, VOLATILE: 800}
    drawn = bar(Window(parts, 16_000, 4_000, 0), LOOKS["plain"], 80)
    assert drawn == "I" * 10 + "M" * 5 + "C" + "T" * 19 + "b" + "V" * 4 + "." * 20 + "-" * 20


def test_every_part_above_zero_gets_a_cell() -> None:
    assert share([1, 1, 998], 10) == [1, 1, 8]
    assert share([0, 500, 500], 11) in ([0, 5, 6], [0, 6, 5])
    assert share([3, 3, 3], 9) == [3, 3, 3]


def test_a_turn_is_measured_by_its_parts(talk: Session) -> None:
    turn = talk.prepare(budget=4_000)
    window = window_of(turn)
    assert window.used == turn.tokens
    assert window.parts[INSTRUCTIONS] > 0
    assert window.parts[TAIL] > 0
    assert window.parts[CORE] == window.parts[OTHER] == 0
    assert (window.budget, window.answer, window.free) == (4_000, 1_000, 3_000 - turn.tokens)


def test_pack_draws_the_window(command: Command, talk: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    turn = talk.prepare(budget=4_000)
    head, drawn, cache, *rest = command("pack", "talk").stdout.splitlines()
    assert head == f"default/talk: {turn.tokens} of 4,000 tokens, 1,000 reserved for the reply"
    assert re.fullmatch("I+T+·+░{14}", drawn)
    assert len(drawn) == 60
    assert cache == f"╰╯ expected cache hit: {turn.tokens} of {turn.tokens} tokens"
    named = " ".join(rest[: rest.index("")])
    assert re.sub(" +", " ", named) == (
        f"I instructions {turn.record.stable.prefix_tokens} T tail {turn.tokens - turn.record.stable.prefix_tokens} "
        f"· free {3_000 - turn.tokens:,} ░ reserved for the reply 1,000"
    )
    assert "░" not in command("pack", "talk", "--json").stdout
    assert json.loads(command("pack", "talk", "--json").stdout)["tokens"] == turn.tokens


def test_a_window_without_a_limit_has_no_bar(command: Command, talk: Session) -> None:
    printed = command("pack", talk.name, "--budget", '{"items": 40}').stdout.splitlines()
    assert printed[1] == "expected cache hit: 0 tokens"
    assert "no limit" in printed[0]
    assert printed[2] == ""


@pytest.mark.parametrize(("columns", "width"), [("20", 30), ("64", 64), ("400", 100)])
def test_the_width_is_that_of_the_terminal_within_limits(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    look = terminal_look(100)
    assert (look.width, look.colour) == (width, False)  # the output of a test is no terminal
