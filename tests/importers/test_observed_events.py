"""Recorded requests of Claude Code: rows of a transcript become observed turns, and are rebuilt as they were sent."""

import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded_requests import ROW_TYPES, SUMMARISING, Recording, assert_rebuilt, load_recording, observed_turns

from daypack.errors import Damaged, DaypackError, ReplayMismatch, SourceMissing
from daypack.importers.import_events import ImportLog
from daypack.importers.import_transcript import ImportReport
from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.turn.evidence.observed.digests import RunDigest, message_bytes
from daypack.turn.evidence.observed.request import open_observed
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.digest import digest_bytes
from daypack.types.history import Event

Write = Callable[..., str]
Bring = Callable[..., ImportReport]
Opened = Callable[[str], Session]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load_recording()


@pytest.fixture
def rows(recording: Recording) -> list[Row]:
    return [json.loads(line) for line in recording.lines]


def calls_of(session: Session) -> list[Call]:
    return [entry for entry in newest_calls(session.history) if isinstance(entry, Call)]


def reported(call: Call) -> tuple[int | None, int | None, str]:
    return call.input_tokens, call.cached_tokens, str(call.cache_break)


def raw_rows(session: Session) -> list[Row]:
    return [event.data.get("row") or {} for event in session.events() if event.type == "import.row"]


def test_every_recorded_request_is_rebuilt_as_it_was_sent(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    report = bring("claude-code", write(f"{recording.session}.jsonl", recording.text))
    session = opened(report.session)
    assert assert_rebuilt(session, recording.wire) == len(recording.wire) - 1 == report.calls
    sent = [turn.request for turn in observed_turns(session)]
    assert "detailed summary" in json.dumps(recording.wire[SUMMARISING])  # the one that Claude Code does not record
    assert [len(body["messages"]) for body in sent if body] == [
        len(body["messages"]) for at, body in enumerate(recording.wire) if at != SUMMARISING
    ]


def test_a_transcript_that_grows_gives_the_same_turns_as_one_that_is_whole(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    whole = opened(bring("claude-code", write("whole.jsonl", recording.text), "whole").session)
    for count in range(10, len(recording.lines), 3):
        path = write("grown.jsonl", b"\n".join((*recording.lines[:count], b"")))
        bring("claude-code", path, "grown")
    grown = opened(bring("claude-code", write("grown.jsonl", recording.text), "grown").session)
    assert assert_rebuilt(grown, recording.wire) == len(recording.wire) - 1
    assert [turn.request for turn in observed_turns(grown)] == [turn.request for turn in observed_turns(whole)]
    assert list(map(reported, calls_of(grown))) == list(map(reported, calls_of(whole)))


def test_a_second_import_adds_nothing(write: Write, bring: Bring, opened: Opened, recording: Recording) -> None:
    path = write(f"{recording.session}.jsonl", recording.text)
    report = bring("claude-code", path)
    session = opened(report.session)
    before = len(session.events())
    blobs = sorted(file.name for file in (session.path / "blob").iterdir())
    assert bring("claude-code", path).new_rows == 0
    assert len(session.events()) == before
    assert sorted(file.name for file in (session.path / "blob").iterdir()) == blobs


def test_an_import_that_was_killed_before_its_progress_is_recorded_is_completed(
    write: Write, bring: Bring, opened: Opened, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(f"{recording.session}.jsonl", recording.text)
    record = ImportLog.record

    def stop_at_progress(log: ImportLog, kind: str, facts: Row) -> None:
        if kind == "import.progress":
            raise KeyboardInterrupt
        record(log, kind, facts)

    with monkeypatch.context() as patched:
        patched.setattr(ImportLog, "record", stop_at_progress)
        with pytest.raises(KeyboardInterrupt):
            bring("claude-code", path)
    report = bring("claude-code", path)
    session = opened(report.session)
    assert assert_rebuilt(session, recording.wire) == len(recording.wire) - 1
    assert sum(event.type == USAGE for event in session.events()) == len(recording.wire) - 1


def test_request_rows_are_stored_once_and_small(
    write: Write, bring: Bring, opened: Opened, recording: Recording, rows: list[Row]
) -> None:
    session = opened(bring("claude-code", write(f"{recording.session}.jsonl", recording.text)).session)
    assert not [row for row in raw_rows(session) if row.get("type") in ROW_TYPES]
    events = [event for event in session.events() if event.type == OBSERVED]
    assert max(len(json.dumps(event.data)) for event in events) < 2048
    named = {sent["digest"] for event in events for sent in event.data["tail"] if "messages" in sent}
    stored = {f"sha256:{file.name[7:]}" for file in (session.path / "blob").iterdir()}
    assert named, "messages that history has are references"
    assert not named & stored, "and not stored a second time"
    hashes = {f"sha256:{row.get('hash') or row.get('shapeHash')}" for row in rows if row.get("type") in ROW_TYPES[:2]}
    assert hashes <= named | stored


def test_replies_have_the_usage_that_was_reported(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    session = opened(bring("claude-code", write(f"{recording.session}.jsonl", recording.text)).session)
    turns = [event.id for event in session.events() if event.type == OBSERVED]
    usages = [event.data for event in session.events() if event.type == USAGE]
    assert [usage["turn"] for usage in usages] == turns
    assert usages[1] == {
        "message": "msg-4",
        "turn": turns[1],
        "input_tokens": 681,
        "cached_tokens": 571,
        "output_tokens": 5,
        "cache_written_tokens": 107,
    }


def test_an_older_transcript_has_no_observed_turns(write: Write, bring: Bring, opened: Opened, rows: list[Row]) -> None:
    older = [row for row in rows if row.get("type") not in ROW_TYPES]
    session = opened(bring("claude-code", write("older.jsonl", older)).session)
    assert not [event for event in session.events() if event.type in (OBSERVED, USAGE)]
    assert len(raw_rows(session)) == len([row for row in older if row.get("type") not in ("user", "assistant")])


# Rows that are missing, of other versions, or hostile


def imported(write: Write, bring: Bring, opened: Opened, rows: Sequence[Row]) -> Session:
    return opened(bring("claude-code", write("changed.jsonl", rows)).session)


def test_a_missing_base_makes_only_the_kept_messages_unknown(
    write: Write, bring: Bring, opened: Opened, rows: list[Row]
) -> None:
    first = next(row["id"] for row in rows if row.get("type") == "api-request")
    session = imported(write, bring, opened, [row for row in rows if row.get("id") != first])
    turn = observed_turns(session)[0]
    assert [message.known for message in turn.messages] == [False, False, True, True]
    assert turn.request is None
    with pytest.raises(SourceMissing, match="messages 1, 2 of the request"):
        turn.verify()
    assert turn.record.row["base"] == first, "what the row stated is kept"


def test_a_missing_blob_or_shape_is_unknown_and_nothing_else(
    write: Write, bring: Bring, opened: Opened, rows: list[Row]
) -> None:
    missing = next(row for row in rows if row.get("type") == "api-request-blob")
    shape = next(row for row in rows if row.get("type") == "api-request-shape")
    session = imported(write, bring, opened, [row for row in rows if row not in (missing, shape)])
    turns = observed_turns(session)
    assert [message.known for message in turns[0].messages] == [False, True]
    assert turns[0].shape is None
    assert turns[-1].verdict.verified, "a later shape and chain are whole"


NO_BLOBS: list[Row] = [
    {"hash": "0" * 64},
    {"message": {"role": "user", "content": "something else"}},
    {"message": "no object"},
    {"message": {"content": []}},
    {"message": {"role": "user", "content": [1]}, "hash": digest_bytes(b'{"content":[1],"role":"user"}')[7:]},
    {"hash": None},
    {"hash": "../../../etc/passwd"},
]


@pytest.mark.parametrize("change", NO_BLOBS, ids=str)
def test_a_blob_row_without_its_hash_is_kept_verbatim_and_used_for_nothing(
    write: Write, bring: Bring, opened: Opened, rows: list[Row], change: Row
) -> None:
    at = next(at for at, row in enumerate(rows) if row.get("type") == "api-request-blob")
    rows[at] = {**rows[at], **change}
    session = imported(write, bring, opened, rows)
    assert rows[at] in raw_rows(session)
    assert not observed_turns(session)[0].messages[0].known


NO_REQUESTS: list[Row] = [
    {"id": ""},
    {"id": 7},
    {"keep": -1},
    {"keep": 10**15},
    {"keep": "many"},
    {"tail": ["not a hash"]},
    {"tail": "abc"},
    {"tail": ["2" * 64 + "\n"]},
    {"shapeHash": "../x"},
    {"params": None},
    {"requestDigest": "x"},
    {"cacheControl": [{"path": [{}], "value": {}}]},
]


@pytest.mark.parametrize("change", NO_REQUESTS, ids=str)
def test_a_request_row_of_another_shape_is_kept_verbatim(
    write: Write, bring: Bring, opened: Opened, rows: list[Row], change: Row
) -> None:
    at = next(at for at, row in enumerate(rows) if row.get("type") == "api-request")
    rows[at] = {**rows[at], **change}
    session = imported(write, bring, opened, rows)
    assert rows[at] in raw_rows(session)
    for turn in observed_turns(session):
        assert turn.verdict is not None


WRONG: list[Row] = [
    {"base": "no such request", "keep": 99_999},
    {"keep": 50},
    {"cacheControl": [{"path": ["messages", 99, "content", 0], "value": {}}, {"path": ["x", "y"], "value": {}}]},
    {"shapeHash": "1" * 64},
    {"tail": ["2" * 64]},
    {"requestDigest": "3" * 64},
    {"timestamp": "yesterday"},
    {"version": ""},
    {"params": {}},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_what_a_row_states_wrongly_is_reported_by_replay(
    write: Write, bring: Bring, opened: Opened, rows: list[Row], change: Row
) -> None:
    at = [at for at, row in enumerate(rows) if row.get("type") == "api-request"][1]
    rows[at] = {**rows[at], **change}
    session = imported(write, bring, opened, rows)
    turn = observed_turns(session)[1]
    if set(change) & {"timestamp", "version"}:
        turn.verify()
    else:
        with pytest.raises((ReplayMismatch, SourceMissing)):
            turn.verify()


def test_fields_that_a_newer_version_adds_are_kept(write: Write, bring: Bring, opened: Opened, rows: list[Row]) -> None:
    news = {"api-request": {"lane": "main"}, "api-request-blob": {"reason": "rewritten"}, "api-request-shape": {"v": 2}}
    changed = [{**row, **news.get(row.get("type", ""), {})} for row in rows]
    session = imported(write, bring, opened, changed)
    turns = observed_turns(session)
    assert all(turn.record.row["lane"] == "main" for turn in turns)
    kept = [row for row in raw_rows(session) if row.get("type") in ROW_TYPES]
    assert {"type": "api-request-shape", "digest": turns[0].record.shape, "v": 2} in kept
    assert sum(row.get("reason") == "rewritten" for row in kept) == sum(r.get("type") == ROW_TYPES[1] for r in rows)
    assert all("message" not in row for row in kept), "their contents are in blobs"


# Messages that history has in another form


def conversation(blocks: list[Row], result: Row) -> list[Row]:
    """Return rows of a call and its result, with the request that contains both."""
    ids: Row = {"sessionId": "s", "cwd": "/x", "timestamp": "2026-11-18T00:00:00.000Z"}
    prompt: Row = {**ids, "type": "user", "uuid": "u1", "message": {"role": "user", "content": "look"}}
    answer: Row = {
        **ids,
        "type": "assistant",
        "uuid": "u2",
        "message": {"role": "assistant", "id": "m1", "content": blocks},
    }
    answered: Row = {**ids, "type": "user", "uuid": "u3", "message": {"role": "user", "content": [result]}}
    messages: list[Row] = [row["message"] for row in (prompt, answer, answered)]
    sent = [{"role": message["role"], "content": message["content"]} for message in messages]
    request = {
        **ids,
        "type": "api-request",
        "id": "r1",
        "params": {"model": "claude-opus-5-5"},
        "keep": 0,
        "tail": [digest_bytes(message_bytes(message))[7:] for message in sent],
    }
    return [prompt, answer, answered, request]


CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"n": 1.0, "big": 12345678901234567890}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
FORMS: dict[str, tuple[list[Row], Row]] = {
    "a text": ([{"type": "text", "text": "I look."}, CALL], RESULT),
    "a list of one text": ([CALL], {**RESULT, "content": [{"type": "text", "text": "seen"}]}),
    "no content": ([CALL], {"type": "tool_result", "tool_use_id": "t1", "is_error": True}),
    "a text after a call": ([CALL, {"type": "text", "text": "Looking."}], RESULT),
    "hidden thoughts": ([{"type": "redacted_thinking", "data": "abc"}, CALL], RESULT),
    "an unsigned thought": ([{"type": "thinking", "thinking": "hm", "signature": ""}, CALL], RESULT),
    "a null": ([{**CALL, "caller": None}], {**RESULT, "note": None}),
    "a cited text": ([{"type": "text", "text": "Yes.", "citations": None}, CALL], RESULT),
    "marks for the cache": ([CALL], {**RESULT, "cache_control": {"type": "ephemeral"}}),
    "empty": ([CALL], {**RESULT, "content": []}),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_message_is_rebuilt_whatever_its_form(write: Write, bring: Bring, opened: Opened, form: str) -> None:
    rows = conversation(*FORMS[form])
    session = imported(write, bring, opened, rows)
    (turn,) = observed_turns(session)
    assert turn.verdict.unknown == turn.verdict.changed == ()


def test_a_message_that_history_cannot_give_back_is_stored_as_it_was_sent(
    write: Write, bring: Bring, opened: Opened
) -> None:
    session = imported(write, bring, opened, conversation(*FORMS["a null"]))
    (turn,) = observed_turns(session)
    assert [bool(sent.messages) for sent in turn.sent] == [True, False, False]


def test_the_digest_of_a_message_that_grows_is_that_of_the_whole() -> None:
    blocks = [{"type": "text", "text": "é"}, {"b": 1, "a": [2.0, 1e21]}]
    run = RunDigest("user")
    for count in (1, 2):
        whole = {"role": "user", "content": blocks[:count]}
        assert run.add([blocks[count - 1]]) == digest_bytes(message_bytes(whole))


def test_requests_of_a_sub_agent_belong_to_its_own_session(
    write: Write, bring: Bring, opened: Opened, recording: Recording, rows: list[Row], tmp_path: Path
) -> None:
    write("main.jsonl", rows)
    agent = [
        {**row, "agentId": "a1", "isSidechain": True}
        for row in conversation([CALL], RESULT)
        if row["type"] != "api-request"
    ] + [{**conversation([CALL], RESULT)[-1], "agentId": "a1"}]
    write("main/subagents/agent-a1.jsonl", agent)
    parent = bring("claude-code", str(tmp_path / "from" / "main.jsonl"))
    child = opened(f"{parent.session}--a1")
    (turn,) = observed_turns(child)
    assert turn.record.agent == "a1"
    assert turn.verdict.unknown == ()
    assert assert_rebuilt(opened(parent.session), recording.wire) == parent.calls


def test_an_observed_turn_that_builds_on_itself_is_unknown_and_ends(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    session = opened(bring("claude-code", write(f"{recording.session}.jsonl", recording.text)).session)
    newest = len(session.events()) + 1
    for follows in (f"ev-{newest}", f"ev-{newest + 5}", "ev-1", "nonsense"):
        data = {"program": "x", "request": "loop", "keep": 3, "follows": follows}
        event = session.history.append_event(Event(type=OBSERVED, data=data))
        turn = open_observed(session.history, event.id)
        assert [message.known for message in turn.messages] == [False] * 3
        with pytest.raises(DaypackError):
            turn.verify()


def test_an_observed_turn_of_more_messages_than_any_window_holds_is_damaged(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    session = opened(bring("claude-code", write(f"{recording.session}.jsonl", recording.text)).session)
    data = {"program": "x", "request": "large", "keep": 10**15}
    event = session.history.append_event(Event(type=OBSERVED, data=data))
    with pytest.raises(Damaged):
        open_observed(session.history, event.id)
    assert len(calls_of(session)) == len(recording.wire) - 1


def test_a_long_run_of_rows_with_an_unknown_message_is_read_in_little_memory(
    write: Write, bring: Bring, opened: Opened, recording: Recording
) -> None:
    first = next(at for at, line in enumerate(recording.lines) if json.loads(line).get("type") == "user")
    rows: list[Row] = [json.loads(line) for line in recording.lines]
    run = [
        {**rows[first], "uuid": f"u-{at}", "message": {"role": "user", "content": f"{at} {'x' * 4_000}"}}
        for at in range(900)
    ]
    request = next(row for row in rows if row.get("type") == "api-request")
    request["tail"] = ["2" * 64, *request["tail"]]
    tracemalloc.start()
    session = imported(write, bring, opened, [*rows[:first], *run, *rows[first:]])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200 << 20  # with the bytes of every beginning of the run: 1.6 GB
    assert not observed_turns(session)[0].messages[0].known
