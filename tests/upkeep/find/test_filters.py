"""Which messages are searched: times as people write them, projects, limits."""

from datetime import UTC, datetime

import pytest

from daypack.errors import BadInput
from daypack.upkeep.find.filters import Filters, name_of, parse_moment, scope_of

_NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)  # a Wednesday


def _read(text: str, *, is_end: bool = False) -> str:
    moment = parse_moment(text, _NOW.timestamp(), is_end=is_end)
    return datetime.fromtimestamp(moment, UTC).isoformat()[:19]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-11-01", "2026-11-01T00:00:00", "2026-11-01T23:59:59"),
        ("2026-11", "2026-11-01T00:00:00", "2026-11-30T23:59:59"),
        ("2026-12", "2026-12-01T00:00:00", "2026-12-31T23:59:59"),
        ("2026", "2026-01-01T00:00:00", "2026-12-31T23:59:59"),
        ("2026-11-01T08:30", "2026-11-01T08:30:00", "2026-11-01T08:30:00"),
        ("2026-11-01T08:30:00+02:00", "2026-11-01T06:30:00", "2026-11-01T06:30:00"),
        ("today", "2026-11-18T00:00:00", "2026-11-18T23:59:59"),
        ("Yesterday", "2026-11-17T00:00:00", "2026-11-17T23:59:59"),
        ("monday", "2026-11-16T00:00:00", "2026-11-16T23:59:59"),
        ("wednesday", "2026-11-18T00:00:00", "2026-11-18T23:59:59"),
        ("7d", "2026-11-11T12:30:00", "2026-11-11T12:30:00"),
        ("90min", "2026-11-18T11:00:00", "2026-11-18T11:00:00"),
        ("2 weeks ago", "2026-11-04T12:30:00", "2026-11-04T12:30:00"),
        ("last month", "2026-10-19T12:30:00", "2026-10-19T12:30:00"),
        ("1y", "2025-11-18T12:30:00", "2025-11-18T12:30:00"),
    ],
)
def test_times_are_read_as_people_write_them(text: str, first: str, last: str) -> None:
    assert (_read(text), _read(text, is_end=True)) == (first, last)


@pytest.mark.parametrize("text", ["", "soon", "7", "2026-13", "2026-02-30", "9999y", "0000", "last", "-3d"])
def test_other_texts_are_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match="is no time") as refused:
        parse_moment(text, _NOW.timestamp(), place="since")
    assert "yesterday" in refused.value.hint


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/nowhere/src/app", "app"),
        ("/nowhere/src/cli/.worktrees/2", "cli/2"),
        ("/nowhere/src/cli/worktrees/17", "cli/17"),
        ("/nowhere/src/ab", "src/ab"),
        ("/7", "7"),
        ("", ""),
        ("relative", ""),
    ],
)
def test_a_project_whose_folder_has_a_name_that_says_nothing_is_shown_with_the_one_above(
    folder: str, name: str
) -> None:
    assert name_of(folder) == name


def test_an_end_long_ago_is_no_contradiction_without_a_beginning() -> None:
    scope = scope_of(Filters(until="0001-01-01"), [], 0.0)
    assert scope.sessions == {}
    with pytest.raises(BadInput, match="is after until"):
        scope_of(Filters(since="2026", until="2025"), [], 0.0)
