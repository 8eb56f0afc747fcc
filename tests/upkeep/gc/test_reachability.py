"""Who names what: found in texts, in events and in history, and never believed of an index."""

from collections.abc import Iterator
from typing import Any

import pytest
from turn.scenes import close_all, stage
from upkeep.gc.remains import LARGE, furnish, layout_path, refer, swap_out, swap_out_output

from daypack.files import blobs
from daypack.session import Session
from daypack.types.history import Event, Message, Text, ToolCall
from daypack.types.records import SwapRecord
from daypack.upkeep.gc.reachability import Named, Reach, captured_by, strings, texts_of

NAME = "sha256-" + "0123456789abcdef" * 4
DIGEST = NAME.replace("-", ":")


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def reach_of(session: Session) -> Reach:
    reach = Reach(session.history)
    reach.catch_up()
    return reach


@pytest.mark.parametrize(
    "text",
    [
        NAME,
        DIGEST,
        f"context/swap/chunk/{NAME}",
        f"swap:{NAME}.",
        f"see [{NAME[:19]}]",
        f"\n{NAME[:15]} and more",
        f"{'x' * 1000}{NAME}{'y'}",
    ],
)
def test_a_digest_is_found_in_any_spelling_and_by_its_beginning(text: str) -> None:
    named = Named()
    named.take("somebody", text)
    assert named.digest(NAME) == ["somebody"]


@pytest.mark.parametrize(
    "text", ["", "sha256-", "sha256-0123456", "0123456789abcdef" * 4, NAME[:18] + "00", NAME[:-1] + "0", NAME + "0"]
)
def test_what_is_no_digest_or_another_one_names_nothing(text: str) -> None:
    named = Named()
    named.take("somebody", text)
    assert named.digest(NAME) == []


def test_everybody_who_names_it_is_told_once() -> None:
    named = Named()
    for who in ("a", "b", "a"):
        named.take(who, f"{NAME} {NAME[:20]}")
    assert named.digest(NAME) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["context/child/rev-1/result.md", "child:rev-1", "child_result:rev-1", "child_refs:rev-1"]
)
def test_a_child_is_named_by_others_and_not_by_itself(text: str) -> None:
    named = Named()
    named.take("child rev-1", text)
    assert named.child("rev-1") == []
    named.take("refs.jsonl", text)
    assert named.child("rev-1") == ["refs.jsonl"]
    assert named.child("rev-2") == []


def test_strings_are_found_however_deep() -> None:
    value = {"a": [1, None, {"b": ("c", ["d"])}], "e": True}
    assert sorted(strings(value)) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("type", "data", "expected"),
    [
        ("pin.set", {"name": "a", "digest": DIGEST, "blob": NAME, "bytes": 9}, [NAME]),
        ("child.updated", {"name": "a", "result": {"digest": DIGEST, "blob": NAME}}, [NAME]),
        ("child.updated", {"artifacts": [{"name": "x", "digest": DIGEST, "blob": NAME}]}, [NAME]),
        ("context.turn", {"items": [{"id": "x", "digest": DIGEST}]}, [NAME]),
        ("context.turn", {"opening": {"items": [{"id": "x", "digest": DIGEST}]}}, [NAME]),
        ("context.turn", {"items": [{"id": "x", "digest": DIGEST, "text": "now"}]}, []),
        ("context.turn", {"items": "many", "opening": 7}, []),
        ("context.imported", {"digest": DIGEST}, [NAME]),
        ("context.imported", {"digest": None}, []),
        ("yours", {"blob": NAME}, []),
        ("yours", {"blob": NAME, "digest": "md5:1"}, []),
        ("pin.set", {"digest": DIGEST, "text": "short"}, []),
    ],
)
def test_the_blobs_an_event_refers_to(type: str, data: dict[str, Any], expected: list[str]) -> None:  # noqa: A002
    assert list(captured_by(Event(type=type, data=data))) == expected


def test_the_texts_of_a_message_are_its_words_its_parts_and_what_its_calls_hold() -> None:
    calls = (ToolCall("c", "write", '{"path":"a","content":"x"}'), ToolCall("d", "odd", "{broken"))
    message = Message(role="assistant", content=(Text("one"), Text("two")), tool_calls=calls)
    found = list(texts_of(message))
    assert {"one\ntwo", "one", "two", "x", "{broken"} <= set(found)


@pytest.mark.requirement("X30")
def test_occurrences_are_counted_in_history_and_again_when_it_grows(home: str) -> None:
    session = furnish(home)
    name = blobs.name_of(LARGE.rstrip("\n").encode())
    index = layout_path(session, "dedup", "index.jsonl")
    index.write_text("")
    reach = reach_of(session)
    assert reach.occurrences(name, ()) == ("tool:call-1", "tool:call-2")
    session.append("assistant", "", tool_calls=[{"id": "call-3", "name": "bash", "arguments": "{}"}])
    session.append("tool", LARGE, tool_call_id="call-3")
    assert len(reach.occurrences(name, ())) == 3
    assert reach.occurrences(NAME, ()) == ()


@pytest.mark.requirement("X28")
def test_a_chunk_can_be_made_again_only_as_long_as_history_says_the_same(home: str) -> None:
    session = furnish(home)
    path = swap_out(session, 1, 3)
    data = path.read_bytes()
    assert reach_of(session).can_make_chunk(path.name, data)
    assert not reach_of(session).can_make_chunk(NAME, data)
    session.close()
    log = session.path / "messages.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    edited = first.split(b',"crc"')[0].replace(b"Question 1", b"Question 9") + b"}"
    log.write_bytes(edited + b"\n" + rest)
    assert not reach_of(stage(home)).can_make_chunk(path.name, data)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"source": "messages.jsonl", "range": "1-3"}, True),
        ({"source": "messages.jsonl", "range": "1-2"}, False),
        ({"source": "messages.jsonl", "range": "all"}, False),
        ({"source": "messages.jsonl"}, False),
        ({"source": "events.jsonl", "event": "ev-1"}, True),
        ({"source": "events.jsonl", "event": "ev-999"}, False),
        ({"source": "events.jsonl"}, False),
    ],
)
def test_a_record_of_the_index_is_good_when_history_has_what_it_stands_for(
    home: str, fields: dict[str, Any], *, expected: bool
) -> None:
    session = furnish(home)
    name = swap_out(session, 1, 3).name
    record = SwapRecord(id=name, kind="message_range", summary="", tokens=1, **fields)
    assert reach_of(session).can_make_record(record) is expected


def test_an_output_has_a_record_by_its_message(home: str) -> None:
    session = furnish(home)
    [seq, _] = [message.seq for message in session.messages() if message.role == "tool"]
    path = swap_out_output(session, seq)
    record = SwapRecord(
        id=path.name, kind="tool_output", source="messages.jsonl", event=f"msg-{seq}", summary="", tokens=1
    )
    assert reach_of(session).can_make_record(record)


def test_events_that_come_later_are_taken_in(home: str) -> None:
    session = furnish(home)
    reach = reach_of(session)
    session.pin("big", "word " * 2000)
    assert not [who for who in reach.blobs.values() if "pin.set" in who]
    reach.catch_up()
    assert [who for who in reach.blobs.values() if "pin.set" in who]


def test_records_that_cannot_be_read_as_json_still_name_what_they_say(home: str) -> None:
    session = furnish(home)
    refer(session, "x").write_bytes(b'{"path": broken ' + NAME.encode() + b" \xff")
    assert reach_of(session).named().digest(NAME) == ["refs.jsonl"]
