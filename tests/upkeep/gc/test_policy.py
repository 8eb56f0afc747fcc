"""Parsing, formatting and recording of the garbage collection policy."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turn.scenes import close_all, stage
from upkeep.gc.collectable import collect, full_session

from daypack.errors import BadConfig
from daypack.session import Session
from daypack.upkeep.gc.policy import (
    POLICY,
    Policy,
    format_duration,
    format_policy,
    parse_policy,
    read_policy,
    restore_policy,
)

SEED = "pack_ttl=1d\nswap_ttl=30d\ndedup_min_refs=1\nkeep_messages=1\nkeep_events=1\n"
DAY = 86400


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def policy_file(session: Session) -> Path:
    return Path(session.history.layout.derived("gc_policy"))


def recorded(session: Session) -> list[str]:
    return [event.data["text"] for event in session.events() if event.type == POLICY]


@pytest.mark.requirement("S4-GC7", "S4-GC8", "S4-GC9", "S4-GC10", "S4-GC11", "S4-GC12")
def test_the_five_keys_of_the_example_are_read_and_are_the_default() -> None:
    expected = Policy(
        pack_ttl_seconds=DAY, swap_ttl_seconds=30 * DAY, dedup_min_refs=1, keep_messages=True, keep_events=True
    )
    assert parse_policy(SEED) == Policy() == expected
    assert parse_policy("") == expected
    assert format_policy(Policy()) == SEED


@pytest.mark.requirement("S4-GC12")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("5m", 300), ("12h", 43200), ("2d", 2 * DAY), ("3w", 21 * DAY), ("0s", 0), ("007d", 7 * DAY)],
)
def test_durations_end_in_a_unit(text: str, seconds: int) -> None:
    assert parse_policy(f"pack_ttl={text}").pack_ttl_seconds == seconds
    assert parse_policy(f"swap_ttl={text}").swap_ttl_seconds == seconds


@pytest.mark.requirement("S4-GC12")
def test_comments_blank_lines_spaces_and_windows_line_ends_are_accepted() -> None:
    text = "\ufeff# ours\r\n\r\n  pack_ttl = 2d  # two days\r\n\t\nkeep_events=0\r\n#keep_messages=0\n"
    assert parse_policy(text) == Policy(pack_ttl_seconds=2 * DAY, keep_events=False)


@pytest.mark.parametrize(
    ("text", "line", "problem", "hint"),
    [
        ("pack_ttl=1d\nswap_tll=3d", 2, "unknown key 'swap_tll'", "swap_ttl"),
        ("pack_ttl", 1, "not key=value", "="),
        ("\n\npack_ttl=1", 3, "invalid pack_ttl: '1'", "30d"),
        ("pack_ttl=", 1, "invalid pack_ttl: ''", "30d"),
        ("pack_ttl=1.5d", 1, "'1.5d'", "30d"),
        ("pack_ttl=-1d", 1, "'-1d'", "30d"),
        ("swap_ttl=1y", 1, "'1y'", "s, m, h, d or w"),
        ("swap_ttl=1 d", 1, "'1 d'", "30d"),
        ("swap_ttl=٣d", 1, "'٣d'", "30d"),
        ("swap_ttl=99999999999d", 1, "'99999999999d'", "30d"),
        ("dedup_min_refs=one", 1, "'one'", "number"),
        ("dedup_min_refs=-1", 1, "'-1'", "number"),
        ("dedup_min_refs=²", 1, "'²'", "number"),
        ("keep_messages=40", 1, "'40'", "not a count"),
        ("keep_events=yes", 1, "'yes'", "1 or 0"),
        ("pack_ttl=1d\npack_ttl=2d", 2, "set twice", "remove one"),
        ("Pack_ttl=1d", 1, "unknown key 'Pack_ttl'", "remove the line"),
    ],
)
def test_an_invalid_line_is_reported_with_file_line_and_hint(text: str, line: int, problem: str, hint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_policy(text, "context/gc.policy")
    assert caught.value.place == f"context/gc.policy, line {line}"
    assert problem in caught.value.problem
    assert hint in caught.value.hint


@given(
    st.builds(
        Policy,
        pack_ttl_seconds=st.integers(0, 10**8),
        swap_ttl_seconds=st.integers(0, 10**8),
        dedup_min_refs=st.integers(0, 10**6),
        keep_messages=st.booleans(),
        keep_events=st.booleans(),
    )
)
def test_a_formatted_policy_parses_to_itself(policy: Policy) -> None:
    assert parse_policy(format_policy(policy)) == policy


@pytest.mark.parametrize(("seconds", "text"), [(DAY, "1d"), (90, "90s"), (7200, "2h"), (1800, "30m"), (0, "0d")])
def test_a_duration_is_formatted_in_the_largest_unit_that_fits(seconds: int, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("messages", "events", "allowed"), [(1, 1, False), (0, 1, False), (1, 0, False), (0, 0, True)])
def test_deletion_is_allowed_only_when_neither_log_is_kept(messages: int, events: int, *, allowed: bool) -> None:
    assert parse_policy(f"keep_messages={messages}\nkeep_events={events}").allows_deletion is allowed


def test_a_file_that_is_not_text_is_refused(home: str) -> None:
    session = stage(home)
    policy_file(session).parent.mkdir(exist_ok=True)
    policy_file(session).write_bytes(b"pack_ttl=\xff")
    with pytest.raises(BadConfig, match="UTF-8") as caught:
        read_policy(session.history)
    assert caught.value.place.endswith("gc.policy")


def test_a_session_without_a_policy_has_the_default(home: str) -> None:
    assert read_policy(stage(home).history) == Policy()


def test_a_policy_written_by_hand_is_recorded_once_when_it_is_applied(home: str) -> None:
    session = full_session(home)
    text = "# long talks\nswap_ttl=2w\n"
    policy_file(session).write_text(text)
    policy = read_policy(session.history)
    assert recorded(session) == []  # reading records nothing
    collect(session, policy)
    collect(session, policy)
    assert recorded(session) == [text]
    policy_file(session).write_text("swap_ttl=3w\n")
    collect(session, read_policy(session.history))
    assert recorded(session) == [text, "swap_ttl=3w\n"]


def test_a_recorded_policy_survives_deletion_of_the_context_folder(home: str) -> None:
    session = full_session(home)
    policy_file(session).write_text("swap_ttl=2w\n")
    collect(session, read_policy(session.history))
    shutil.rmtree(session.history.layout.context)
    assert read_policy(session.history) == Policy(swap_ttl_seconds=14 * DAY)
    assert restore_policy(session.history, session.events())
    assert policy_file(session).read_text() == "swap_ttl=2w\n"
    policy_file(session).write_text("pack_ttl=5d\n")
    assert restore_policy(session.history, session.events())
    assert policy_file(session).read_text() == "pack_ttl=5d\n"  # an existing file is newer than the recorded policy


def test_a_session_without_a_recorded_policy_has_none_to_restore(home: str) -> None:
    session = stage(home)
    assert not restore_policy(session.history, session.events())
    assert not policy_file(session).exists()


@pytest.mark.parametrize("data", [{}, {"text": 7}, {"digest": "x"}, {"blob": "sha256-" + "0" * 64}])
def test_an_event_of_the_same_type_with_other_data_is_ignored(home: str, data: dict[str, object]) -> None:
    session = stage(home)
    session.append_event(POLICY, data)
    assert read_policy(session.history) == Policy()


def test_a_long_policy_is_kept_as_a_blob(home: str) -> None:
    session = full_session(home)
    text = "# because\n" * 800 + "pack_ttl=5d\n"
    policy_file(session).write_text(text)
    collect(session, read_policy(session.history))
    [event] = [event for event in session.events() if event.type == POLICY]
    assert "blob" in event.data
    shutil.rmtree(session.history.layout.context)
    assert read_policy(session.history).pack_ttl_seconds == 5 * DAY
