"""The list of calls: recorded ones, replies of older programs, compactions between them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from recorded_requests import import_recording, load_recording

import daypack
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, Compacted, find_call, newest_calls


def calls_of(session: Session) -> list[Call]:
    return [entry for entry in newest_calls(session.history) if isinstance(entry, Call)][::-1]


def causes(call: Call) -> tuple[str, ...]:
    return call.cache_break.causes if call.cache_break else ()


def test_recorded_calls_have_their_usage_and_what_broke_the_cache(notes: Session) -> None:
    calls = calls_of(notes)
    assert [(call.messages, call.added, call.input_tokens, call.cached_tokens) for call in calls] == [
        (2, None, 571, 0),
        (4, 2, 681, 571),
        (7, 3, 781, 681),
        (9, 2, 1032, 781),
        (12, 3, 1214, 0),
        (14, 2, 1308, 1214),
        (5, 5, 1094, 0),
        (5, 4, 1233, 0),
        (7, 2, 1374, 1233),
    ]
    assert [causes(call)[:1] for call in calls] == [(), (), (), (), ("tools",), (), ("compaction",), ("model",), ()]
    assert calls[0].first
    assert [call.previous for call in calls[1:]] == [call.event for call in calls[:-1]]
    assert {call.content for call in calls} == {"recorded"}
    assert calls[4].cache_break is not None
    assert calls[4].cache_break.detail == "+mcp__notes__count_lines"


def test_a_compaction_is_between_the_calls_before_and_after_it(notes: Session) -> None:
    entries = list(newest_calls(notes.history))[::-1]
    (at,) = [at for at, entry in enumerate(entries) if isinstance(entry, Compacted)]
    assert at == 6
    entry = entries[at]
    assert isinstance(entry, Compacted)
    assert (entry.trigger, entry.before_tokens, entry.after_tokens) == ("manual", 1318, 542)


def test_of_an_older_program_the_same_calls_are_known_by_their_replies(notes: Session, older: Session) -> None:
    recorded, replies = calls_of(notes), calls_of(older)
    assert [call.event for call in replies] == [call.reply for call in recorded]
    assert [call.input_tokens for call in replies] == [call.input_tokens for call in recorded]
    assert {call.content for call in replies} == {"unknown"}
    assert [causes(call)[:1] for call in replies] == [(), (), (), (), ("unknown",), (), ("compaction",), ("model",), ()]
    assert [call.added for call in replies[1:4]] == [2, 2, 3]


def test_a_session_that_was_recorded_only_in_part_lists_every_call_once(home: str) -> None:
    name = import_recording(home, "half", leave_out=())
    recorded = import_recording(home, "older", leave_out=("api-request",))
    with ExitStack() as stack:
        whole, without = (stack.enter_context(daypack.open_session(each, home=home)) for each in (name, recorded))
        assert [call.reply for call in calls_of(whole)] == [call.event for call in calls_of(without)]


def test_a_clock_that_was_set_back_lists_no_call_twice(home: str, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in load_recording().lines]
    border = [at for at, row in enumerate(rows) if row.get("type") == "api-request"][7]
    later = [{**row, "timestamp": "2025-01-01T00:00:00.000Z"} if "timestamp" in row else row for row in rows[border:]]
    path = tmp_path / "clock.jsonl"
    for count in (border, len(rows)):  # the usage of earlier replies is in the log before the later calls
        lines = [json.dumps(row) for row in (*rows[:border], *later)[:count]]
        path.write_text("".join(f"{line}\n" for line in lines))
        import_file("claude-code", str(path), Destination(home, agent="default", session="clock"))
    with daypack.open_session("clock", home=home, create=False) as session:
        calls = calls_of(session)
        assert {call.at[:4] for call in calls} == {"2025", "2026"}
        assert len(calls) == 9
        assert {call.content for call in calls} == {"recorded"}


def test_a_call_is_found_by_its_event_or_its_reply(notes: Session) -> None:
    newest = calls_of(notes)[-1]
    assert find_call(notes.history) == newest
    assert find_call(notes.history, newest.event) == newest
    assert find_call(notes.history, newest.reply) == newest
    assert find_call(notes.history, "ev-1") is None


def test_a_session_of_daypack_has_no_calls_of_other_programs(session: Session) -> None:
    session.append("user", "Hello")
    session.prepare(budget=8000)
    session.accept("Hi", usage={"prompt_tokens": 30})
    assert list(newest_calls(session.history)) == []


def test_a_listing_of_the_newest_calls_reads_no_others(notes: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(newest_calls(notes.history))
    monkeypatch.setattr(type(notes.history.messages.reader), "pick", None)
    assert next(newest_calls(notes.history)) == first


# Codex


def codex_row(kind: str, at: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-11-18T10:00:{at:02}.000Z", "type": kind, "payload": payload}


def spoken(role: str, text: str, at: int) -> dict[str, Any]:
    kind = "input_text" if role == "user" else "output_text"
    return codex_row("response_item", at, type="message", role=role, content=[{"type": kind, "text": text}])


def tokens(at: int, total: int, given: int, cached: int) -> dict[str, Any]:
    last = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": 7, "total_tokens": given + 7}
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return codex_row("event_msg", at, type="token_count", info=info, rate_limits={"at": at})


@pytest.fixture
def codex(home: str, tmp_path: Path) -> Iterator[Session]:
    rows = [
        codex_row("session_meta", 0, id="s", cwd="/x"),
        spoken("user", "Look", 1),
        spoken("assistant", "I see", 2),
        tokens(3, 5007, 5000, 0),
        tokens(4, 5007, 5000, 0),  # written again: a limit changed
        spoken("user", "And now?", 5),
        spoken("assistant", "Nothing", 6),
        tokens(7, 10_114, 5100, 4992),
        codex_row("compacted", 8, message="A summary."),
        tokens(8, 10_114, 0, 0),
        spoken("assistant", "Done", 9),
        tokens(10, 12_121, 2000, 0),
        codex_row("event_msg", 11, type="token_count", info=None),
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    report = import_file("codex", str(path), Destination(home, agent="default", session="codex"))[0]
    with daypack.open_session(report.session, home=home, create=False) as session:
        yield session


def test_calls_of_codex_are_its_token_counts(codex: Session) -> None:
    entries = list(newest_calls(codex.history))[::-1]
    assert [type(entry).__name__ for entry in entries] == ["Call", "Call", "Compacted", "Call"]
    calls = calls_of(codex)
    assert [(call.input_tokens, call.cached_tokens, call.output_tokens) for call in calls] == [
        (5000, 0, 7),
        (5100, 4992, 7),
        (2000, 0, 7),
    ]
    assert [causes(call) for call in calls] == [(), (), ("compaction",)]
    assert calls[0].at == "2026-11-18T10:00:03.000Z", "the first row that has the count"
