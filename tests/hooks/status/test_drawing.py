"""A status as a line of any width, and as a page."""

import re

import pytest

from daypack.hooks.status.drawing import Look, draw_line, draw_page
from daypack.hooks.status.status import Cache, LastCompaction, ProjectMemory, RecordedSession, Status, Window
from daypack.text.columns import columns

NOW = 1_794_962_400.0  # 2026-11-18T00:40:00Z
WHOLE = Status(
    project="app",
    key="/src/app/.git",
    session=RecordedSession("claude-code", "5ac28188", 812, "2026-11-18T00:37:00Z", "Fix the retry loop"),
    host_session="5ac28188",
    model="Opus 5.5",
    cost_usd=12.3456,
    window=Window(160_000, 200_000),
    cache=Cache(0.93, warm=True, expires_at=int(NOW) + 240, misses=2, cause="tools changed"),
    memory=ProjectMemory("0" * 32, 1204),
    compaction=LastCompaction("2026-11-17T22:40:00Z", "auto", 58, 60, 150_000, 6_000),
)


def line(status: Status, width: int = 200, **options: bool) -> str:
    return draw_line(status, Look(width, now=NOW, **options))


def test_a_wide_line_says_everything() -> None:
    assert line(WHOLE) == (
        "app · ██████████░░ 80% of 200k · cache 93% warm 4 min, 2 misses · 1,204 memory entries"
        " · compacted 2 h ago: −58 messages, −144k tokens · 812 messages recorded"
    )


def test_a_line_without_room_is_shortened_from_the_least_important_part_on() -> None:
    assert line(WHOLE, 130) == (
        "app · ██████████░░ 80% of 200k · cache 93% warm 4 min, 2 misses · 1,204 memory entries · compacted 2 h ago"
        " · 812 recorded"
    )
    assert line(WHOLE, 62) == "app · 80% · cache 93% · memory 1.2k · compacted · 812 recorded"
    assert line(WHOLE, 40) == "app · 80% · cache 93% · memory 1.2k"
    assert line(WHOLE, 12) == "app · 80%"
    assert line(WHOLE, 4) == "80%"


@pytest.mark.parametrize("width", [*range(1, 40), 60, 80, 100, 120, 160])
def test_no_line_is_wider_than_its_room(width: int) -> None:
    wide = WHOLE._replace(project="日本語のプロジェクト名がここにある", failures=12, problem="x" * 300)
    for status in (WHOLE, wide, Status("", ""), Status("app", "/app", problem="memory is 3 [/app/.daypack.toml]")):
        for blocks in (True, False):
            assert columns(line(status, width, blocks=blocks)) <= width


def test_colours_are_used_only_where_they_can_be_shown() -> None:
    coloured = line(WHOLE, colour=True)
    assert "\x1b[33m██████████░░ 80% of 200k\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == line(WHOLE)
    assert "\x1b" not in line(WHOLE)
    for share, code in ((0.1, "32"), (0.7, "33"), (0.9, "31")):
        status = Status("app", "/app", window=Window(int(share * 1000), 1000))
        assert f"\x1b[{code}m" in line(status, colour=True)


def test_a_reader_without_other_characters_gets_ascii() -> None:
    text = line(WHOLE, blocks=False)
    assert text.isascii()
    assert "##########-- 80% of 200k" in text
    page = draw_page(WHOLE, Look(100, now=NOW, blocks=False))
    assert "\n".join(page).isascii()


def test_text_of_others_cannot_control_the_terminal() -> None:
    status = WHOLE._replace(project="a\x1b[31m\nb", problem="\x07bell")
    assert "\x1b" not in line(status)
    assert "\n" not in line(status)
    assert "\x07" not in "".join(draw_page(status, Look(100, now=NOW)))


def test_what_is_unknown_is_left_out_or_said() -> None:
    assert line(Status("app", "/app")) == "app · memory empty · no session yet"
    assert line(Status("app", "/app", memory_off=True)) == "app · memory off · no session yet"
    assert line(Status("app", "/app", host_session="x")) == "app · memory empty · not recorded yet"
    unknown = Status("app", "/app", window=Window(1234), cache=Cache(), memory=ProjectMemory("0" * 32))
    assert line(unknown) == "app · 1.2k tokens · cache · memory ? · no session yet"
    lost = WHOLE._replace(compaction=LastCompaction(left=1, through=9), cache=None, session=None)
    assert "compacted: −1 message · not recorded yet" in line(lost)


def test_failures_and_problems_come_first() -> None:
    status = WHOLE._replace(failures=2, problem="memory is 3")
    assert line(status, 300).startswith("⚠ memory is 3 · ⚠ 2 hook failures: `daypack doctor` · app")
    assert line(status, 28) == "⚠ · ⚠ daypack doctor · 80%"
    assert line(status, 8) == "⚠ · 80%"


def test_a_page_has_a_row_for_everything() -> None:
    assert draw_page(WHOLE, Look(100, now=NOW)) == [
        "project     app  /src/app/.git",
        "session     5ac28188 of claude-code, 812 messages, the last 3 min ago",
        "            Fix the retry loop",
        "model       Opus 5.5, $12.35",
        "window      ████████████████████████░░░░░░  80%  160,000 of 200,000 tokens",
        "cache       93% of the input, warm for 4 min more, 2 misses (the last: tools changed)",
        "memory      1,204 entries  00000000000000000000000000000000",
        "compaction  2 h ago (auto): 58 messages left the window; 150,000 → 6,000 tokens",
    ]


def test_a_page_says_what_is_unknown() -> None:
    text = "\n".join(
        draw_page(Status("app", "/app", failures=1, failures_since="2026-11-17", problem="no home"), Look(100, now=NOW))
    )
    for words in (
        "none of this project",
        "cache       unknown",
        "none yet",
        "compaction  none",
        "1 failure since 2026-11-17; `daypack doctor`",
    ):
        assert words in text
    assert text.endswith("problem     no home")
