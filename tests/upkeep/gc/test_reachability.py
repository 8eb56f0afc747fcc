"""References are found in texts, events and history; claims of an index are not trusted."""

from collections.abc import Iterator
from typing import Any

import pytest
from turn.scenes import close_all, stage
from upkeep.gc.collectable import LARGE, full_session, layout_path, refer, swap_out, swap_out_output

from daypack.files import blobs
from daypack.session import Session
from daypack.types.history import Event, Message, Text, ToolCall
from daypack.types.records import SwapRecord
from daypack.upkeep.gc.reachability import Reachability
from daypack.upkeep.gc.references import References, captured_by, strings, texts_of

NAME = "sha256-" + "0123456789abcdef" * 4
DIGEST = NAME.replace("-", ":")


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def reachability_of(session: Session) -> Reachability:
    reachability = Reachability(session.history)
    reachability.catch_up()
    return reachability


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
def test_a_digest_is_found_in_any_spelling_and_by_a_prefix(text: str) -> None:
    references = References()
    references.add_text("a.md", text)
    assert references.to_digest(NAME) == ["a.md"]


@pytest.mark.parametrize(
    "text", ["", "sha256-", "sha256-0123456", "0123456789abcdef" * 4, NAME[:18] + "00", NAME[:-1] + "0", NAME + "0"]
)
def test_an_incomplete_or_different_digest_is_not_a_reference(text: str) -> None:
    references = References()
    references.add_text("a.md", text)
    assert references.to_digest(NAME) == []


def test_each_referrer_is_listed_once() -> None:
    references = References()
    for referrer in ("a", "b", "a"):
        references.add_text(referrer, f"{NAME} {NAME[:20]}")
    assert references.to_digest(NAME) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["context/child/rev-1/result.md", "child:rev-1", "child_result:rev-1", "child_refs:rev-1"]
)
def test_a_child_does_not_refer_to_itself(text: str) -> None:
    references = References()
    references.add_text("child rev-1", text)
    assert references.to_child("rev-1") == []
    references.add_text("refs.jsonl", text)
    assert references.to_child("rev-1") == ["refs.jsonl"]
    assert references.to_child("rev-2") == []


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
    session = full_session(home)
    name = blobs.name_of(LARGE.rstrip("\n").encode())
    index = layout_path(session, "dedup", "index.jsonl")
    index.write_text("")
    reachability = reachability_of(session)
    assert reachability.occurrences(name, ()) == ("tool:call-1", "tool:call-2")
    session.append("assistant", "", tool_calls=[{"id": "call-3", "name": "bash", "arguments": "{}"}])
    session.append("tool", LARGE, tool_call_id="call-3")
    assert len(reachability.occurrences(name, ())) == 3
    assert reachability.occurrences(NAME, ()) == ()


@pytest.mark.requirement("X28")
def test_a_chunk_can_be_reproduced_only_while_history_is_unchanged(home: str) -> None:
    session = full_session(home)
    path = swap_out(session, 1, 3)
    data = path.read_bytes()
    assert reachability_of(session).can_make_chunk(path.name, data)
    assert not reachability_of(session).can_make_chunk(NAME, data)
    session.close()
    log = session.path / "messages.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    edited = first.split(b',"crc"')[0].replace(b"Question 1", b"Question 9") + b"}"
    log.write_bytes(edited + b"\n" + rest)
    assert not reachability_of(stage(home)).can_make_chunk(path.name, data)


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
def test_an_index_record_is_reproducible_if_history_contains_its_range(
    home: str, fields: dict[str, Any], *, expected: bool
) -> None:
    session = full_session(home)
    name = swap_out(session, 1, 3).name
    record = SwapRecord(id=name, kind="message_range", summary="", tokens=1, **fields)
    assert reachability_of(session).can_make_record(record) is expected


def test_an_output_has_a_record_by_its_message(home: str) -> None:
    session = full_session(home)
    [seq, _] = [message.seq for message in session.messages() if message.role == "tool"]
    path = swap_out_output(session, seq)
    record = SwapRecord(
        id=path.name, kind="tool_output", source="messages.jsonl", event=f"msg-{seq}", summary="", tokens=1
    )
    assert reachability_of(session).can_make_record(record)


def test_catch_up_reads_later_events(home: str) -> None:
    session = full_session(home)
    reachability = reachability_of(session)
    session.pin("big", "word " * 2000)
    assert not [referrer for referrer in reachability.captured.values() if "pin.set" in referrer]
    reachability.catch_up()
    assert [referrer for referrer in reachability.captured.values() if "pin.set" in referrer]


def test_references_are_found_in_records_that_are_not_valid_json(home: str) -> None:
    session = full_session(home)
    refer(session, "x").write_bytes(b'{"path": broken ' + NAME.encode() + b" \xff")
    assert reachability_of(session).references().to_digest(NAME) == ["refs.jsonl"]
