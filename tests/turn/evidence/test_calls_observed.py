"""Calls of other programs as rows: those of `newest_calls`, with the tokens of what their requests contained."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from recorded_requests import ROW_TYPES, import_recording, load_recording, observed_turns
from upkeep.erase.secrets import place

import daypack
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.turn.evidence.calls.fold import CallFold
from daypack.turn.evidence.calls.parts import PARTS, part_of_source
from daypack.turn.evidence.calls.request_split import CountedSplit
from daypack.turn.evidence.calls.rows import NO_SPLIT, CallRow, Calls
from daypack.turn.evidence.observed.calls import Call, Compacted, newest_calls
from daypack.turn.evidence.observed.explain import explain_observed
from daypack.turn.evidence.words import cause_words
from daypack.upkeep.erase.apply import apply
from daypack.upkeep.erase.plan import Request

UNKNOWN = PARTS.index("unknown")


@pytest.fixture
def notes(home: str) -> Iterator[Session]:
    """A session with recorded requests."""
    with daypack.open_session(import_recording(home), home=home, create=False) as session:
        yield session


@pytest.fixture
def older(home: str) -> Iterator[Session]:
    """The same of an older program, which did not record its requests."""
    name = import_recording(home, "older", leave_out=ROW_TYPES)
    with daypack.open_session(name, home=home, create=False) as session:
        yield session


def compare(session: Session, calls: Calls) -> None:
    """Compare rows with the list of the commands."""
    listed = list(newest_calls(session.history))[::-1]
    found = [call for call in listed if isinstance(call, Call)]
    assert [row.event for row in calls.rows if row.kind == "observed"] == [call.event for call in found]
    rows = {row.event: row for row in calls.rows}
    for call in found:
        row, lost = rows[call.event], call.cache_break
        assert (row.at, row.model, row.input) == (call.at, call.model, call.input_tokens)
        assert (row.cached, row.output) == (call.cached_tokens, call.output_tokens)
        assert row.cache_break == (cause_words(lost) if lost else None)
        assert row.lost == (lost.lost_tokens if lost else None)
        assert row.reply == (int(call.reply[4:]) if call.reply else None)
        assert sum(row.split) == (row.tokens or 0)
    compactions = [at for at, call in enumerate(listed) if isinstance(call, Compacted)]
    places = [sum(isinstance(call, Call) for call in listed[:at]) for at in compactions]
    if not calls.own:
        assert [(fold.event, fold.before) for fold in calls.folds] == [
            (listed[at].event, before) for at, before in zip(compactions, places, strict=True)
        ]


def test_recorded_requests_are_listed_with_their_breaks(notes: Session) -> None:
    calls = notes.turns.calls.read()
    compare(notes, calls)
    assert len(calls.rows) == 9
    assert {row.tokens == row.input for row in calls.rows} == {True}
    assert "tools changed: +mcp__notes__count_lines" in {row.cache_break for row in calls.rows}
    [fold] = calls.folds
    assert (fold.trigger, fold.own, fold.before) == ("manual", False, 6)


def test_the_split_is_what_explain_says_of_each_source(notes: Session) -> None:
    calls = {call.event: call for call in newest_calls(notes.history) if isinstance(call, Call)}
    for row in notes.turns.calls.read().rows:
        (turn,) = (turn for turn in observed_turns(notes) if turn.event_id == row.event)
        found = explain_observed(notes.history, calls[row.event], turn)
        expected = dict.fromkeys(PARTS, 0)
        for total in found.sources:
            expected[part_of_source(total.source)] += total.tokens or 0
        assert found.tokens == sum(expected.values())
        for tokens, part in zip(row.split, PARTS, strict=True):
            assert abs(tokens - (found.scaled(expected[part]) or 0)) <= len(PARTS)
        assert sum(row.split) == calls[row.event].input_tokens


def test_replies_alone_have_unknown_contents(older: Session) -> None:
    calls = older.turns.calls.read()
    compare(older, calls)
    assert len(calls.rows) == 9
    for row in calls.rows:
        assert row.split == (*NO_SPLIT[:UNKNOWN], row.input)
        assert (row.budget, row.omitted, row.epoch, row.expected) == (None, None, None, None)


def test_a_request_of_unknown_content_counts_its_rest_as_unknown() -> None:
    known = CountedSplit((40, 0, 0, 0, 0, 60, 0, 0, 0))
    assert known.scaled(200) == (200, (80, 0, 0, 0, 0, 120, 0, 0, 0))
    assert known.scaled(None) == (100, known.split)
    partly = known._replace(whole=False)
    assert partly.scaled(250) == (250, (40, 0, 0, 0, 0, 60, 0, 0, 150))
    assert partly.scaled(50) == (50, (20, 0, 0, 0, 0, 30, 0, 0, 0))
    assert partly.scaled(None) == (None, NO_SPLIT)


@pytest.mark.parametrize("leave_out", [(), ROW_TYPES, ROW_TYPES[1:2]])
def test_a_growing_transcript_gives_the_rows_of_a_whole_one(home: str, tmp_path: Path, leave_out: Any) -> None:
    lines = [line for line in load_recording().lines if json.loads(line).get("type") not in leave_out]
    path = tmp_path / "growing.jsonl"
    fold: CallFold | None = None
    session: Session | None = None
    for stop in (*range(3, len(lines), 7), len(lines)):
        path.write_bytes(b"\n".join((*lines[:stop], b"")))
        import_file("claude-code", str(path), Destination(home, agent="default", session="growing"))
        session = session or daypack.open_session("growing", home=home, create=False)
        fold = fold or CallFold(session.history)
        grown = fold.read()
        compare(session, grown)
        Path(session.layout.derived("calls")).unlink()
        assert grown == CallFold(session.history).read()
    assert session is not None
    session.close()


def codex(*payloads: Mapping[str, Any]) -> bytes:
    rows: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "s1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [_text("input_text")]}},
    ]
    rows += [{"type": "event_msg", "payload": payload} if "info" in payload else dict(payload) for payload in payloads]
    stamped = [{"timestamp": f"2026-01-01T00:{at:02}:00.000Z", **row} for at, row in enumerate(rows)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in stamped)


def _text(kind: str) -> dict[str, str]:
    return {"type": kind, "text": "Paint the gate."}


def counts(total: int, sent: int, cached: int) -> dict[str, Any]:
    last = {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": 7, "total_tokens": sent + 7}
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return {"type": "token_count", "info": info}


def test_token_counts_of_codex_are_one_call_however_often_they_are_written(home: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    compacted = {"type": "compacted", "payload": {"message": "a summary"}}
    rows = [counts(110, 100, 0), counts(110, 100, 0), counts(260, 150, 90), compacted, counts(260, 150, 0)]
    path.write_bytes(codex(*rows, counts(900, 640, 500)))
    (done,) = import_file("codex", str(path), Destination(home, agent="codex"))
    with daypack.open_session(done.session, agent="codex", home=home, create=False) as session:
        calls = session.turns.calls.read()
        compare(session, calls)
        assert [row.input for row in calls.rows] == [100, 150, 150, 640]
        assert [fold.before for fold in calls.folds] == [2]


def claude(*rows: Mapping[str, Any]) -> bytes:
    lines: list[dict[str, Any]] = []
    for at, row in enumerate(rows):
        fields = {"uuid": f"u{at}", "sessionId": "s", "timestamp": f"2026-01-01T00:{at:02}:00.000Z", "version": "2.1.0"}
        lines.append({**fields, **row})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def said(text: str, model: str = "claude-x", **row: Any) -> dict[str, Any]:
    usage = {"input_tokens": 900, "output_tokens": 3, "cache_read_input_tokens": 100}
    content = [{"type": "text", "text": text}]
    message = {"id": f"m-{text}", "role": "assistant", "model": model, "content": content, "usage": usage}
    return {"type": "assistant", "message": message, **row}


def asked(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def test_the_call_after_a_refused_one_is_a_retry(home: str, tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    error = said("API Error: 529", "<synthetic>", isApiErrorMessage=True)
    stopped = said("No response requested.", "<synthetic>", isApiErrorMessage=False)
    path.write_bytes(claude(asked("a"), said("b"), asked("c"), error, asked("d"), said("e"), stopped, said("f")))
    (done,) = import_file("claude-code", str(path), Destination(home, agent="claude-code"))
    with daypack.open_session(done.session, agent="claude-code", home=home, create=False) as session:
        assert [row.mark for row in session.turns.calls.read().rows] == [None, "retry", None]


def test_a_recorded_request_that_was_refused_is_an_error(home: str) -> None:
    lines = load_recording().lines
    requests = [at for at, line in enumerate(lines) if json.loads(line).get("type") == "api-request"]
    last = json.loads(lines[requests[-1]])
    error = said("API Error: 529", "<synthetic>", isApiErrorMessage=True)
    row = {**error, "uuid": "e1", "sessionId": last["sessionId"], "timestamp": "2030-01-01T00:00:00.000Z"}
    kept = [line for line in lines[: requests[-1] + 1] if json.loads(line)]
    name = _import(home, [*kept, json.dumps(row).encode()])
    with daypack.open_session(name, home=home, create=False) as session:
        rows = session.turns.calls.read().rows
        assert [(row.reply is None, row.mark) for row in rows[-2:]] == [(False, None), (True, "error")]
        assert rows[-1].tokens == sum(rows[-1].split) > 0, "what was sent is known, and counted"


def _import(home: str, lines: list[bytes]) -> str:
    path = Path(home).parent / "recording.jsonl"
    path.write_bytes(b"\n".join((*lines, b"")))
    return import_file("claude-code", str(path), Destination(home, agent="default", session="cut"))[0].session


def test_calls_of_both_kinds_are_in_the_order_of_time(notes: Session) -> None:
    before = notes.turns.calls.read()
    notes.append("user", "What is left to do?")
    turn = notes.prepare(budget=8000)
    calls = notes.turns.calls.read()
    compare(notes, calls)
    assert [row.event for row in calls.rows] == [*(row.event for row in before.rows), turn.event_id]
    assert (calls.own, calls.observed) == (True, True)
    assert calls.rows[-1].kind == "prepared"
    assert [fold.before for fold in calls.folds] == [6]
    compacted = notes.compact(keep_tokens=50)
    again = notes.turns.calls.read()
    assert [(fold.own, fold.before) for fold in again.folds] == [(False, 6), (True, 10)]
    assert again.folds[1].event == compacted.id


def test_erased_calls_are_marked_and_the_file_is_made_again(notes: Session, home: str) -> None:
    before = notes.turns.calls.read()
    apply(place(home), Request(literal="Recalled: the gate was painted in May.", session="notes"))
    path = Path(notes.layout.derived("calls"))
    assert not path.exists()
    after = notes.turns.calls.read()
    assert {row.mark for row in before.rows} == {None}
    assert {row.mark for row in after.rows} == {"erased"}
    assert path.exists()


def test_no_text_of_history_is_in_the_file(notes: Session) -> None:
    notes.turns.calls.read()
    data = Path(notes.layout.derived("calls")).read_text("utf-8")
    lines = {line for message in notes.messages() for line in message.text.splitlines() if len(line) > 9}
    assert len(lines) > 5
    assert [line for line in lines if line in data] == []


def test_rows_are_arrays_in_the_order_of_the_columns() -> None:
    fields = CallRow.__struct_fields__
    assert fields[:6] == ("event", "at", "kind", "target", "model", "tokens")
    assert fields[-2:] == ("reply", "mark")
