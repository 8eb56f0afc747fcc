"""What left the window has an id, the id proves what it stood for, and a stub says enough to ask for it."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.swap import (
    MAX_OUTLINE_CHARS,
    SHORT_ID,
    chunk_for,
    chunk_of,
    digest_messages,
    id_of,
    preview,
    range_of,
    stub,
    swap_output,
    swap_range,
)
from daypack.files import blobs
from daypack.session import Session
from daypack.text.injected import SWAPPED
from daypack.types.history import Message
from daypack.types.records import SwapRecord, SwapReference
from daypack.types.source import Messages


def talk(session: Session) -> None:
    session.append("user", "Show me the log.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "cat", "arguments": '{"path": "a.log"}'}])
    session.append("tool", "a line of the log\n" * 300, tool_call_id="a")
    session.append("assistant", "There it is.")


@pytest.mark.requirement("S4-SW6", "S4-SW7")
def test_a_chunk_refers_to_history_and_holds_no_word_of_it(session: Session) -> None:
    talk(session)
    record = swap_range(session.messages(1, 4), 1, 4, "a talk", 900)
    chunk = chunk_for(session.history, record)
    assert chunk is not None
    assert b"line" not in chunk
    reference = msgspec.json.decode(chunk, type=SwapReference)
    assert (reference.source, reference.start_event, reference.end_event) == ("messages.jsonl", "msg-1", "msg-4")
    assert reference.hash == digest_messages(session.messages(1, 4))
    assert reference.hash.startswith("sha256:")
    assert record.id == blobs.name_of(chunk)


@pytest.mark.requirement("S4-SW3", "S4-SW4", "S4-SW5")
def test_records_name_a_range_or_one_message_and_equal_words_have_equal_ids(session: Session) -> None:
    talk(session)
    record = swap_range(session.messages(1, 4), 1, 4, "a talk", 900)
    assert msgspec.to_builtins(record) == {
        "id": record.id,
        "kind": "message_range",
        "source": "messages.jsonl",
        "range": "1-4",
        "summary": "a talk",
        "tokens": 900,
    }
    assert range_of(record) == Messages(1, 4)
    [message] = session.messages(3, 3)
    output = swap_output(message, message.text, 800)
    assert (output.kind, output.event, output.tokens) == ("tool_output", "msg-3", 800)
    assert output.id == id_of(message)
    assert range_of(output) == Messages(3, 3)
    assert swap_range(session.messages(1, 4), 1, 4, "other words", 1).id == record.id
    assert swap_range(session.messages(1, 3), 1, 3, "a talk", 900).id != record.id


@pytest.mark.parametrize("part", ["role", "content", "tool_calls", "tool_call_id", "name"])
def test_the_digest_sees_every_part_that_is_said_and_nothing_else(part: str) -> None:
    message = Message(seq=1, id="msg-1", role="tool", content="a", tool_call_id="c")
    changed = {"role": "user", "content": "b", "tool_calls": ("x",), "tool_call_id": "d", "name": "n"}
    other = msgspec.structs.replace(message, **{part: changed[part]})
    assert digest_messages((message,)) != digest_messages((other,))
    later = msgspec.structs.replace(message, ts="2030-01-01T00:00:00Z", meta={"x": 1})
    assert digest_messages((message,)) == digest_messages((later,))


def test_two_messages_are_not_one_with_both_words() -> None:
    first, second = Message(role="user", content="a"), Message(role="user", content="b")
    assert digest_messages((first, second)) != digest_messages((Message(role="user", content="ab"),))
    assert digest_messages((first, second)) != digest_messages((second, first))


def test_a_chunk_is_not_made_again_when_history_says_something_else(session: Session) -> None:
    talk(session)
    [message] = session.messages(3, 3)
    record = swap_output(message, message.text, 800)
    assert chunk_for(session.history, record)
    other = msgspec.structs.replace(record, event="msg-1")
    assert chunk_for(session.history, other) is None
    beyond = SwapRecord(id=record.id, kind="message_range", source="messages.jsonl", range="1-9", summary="", tokens=0)
    assert chunk_for(session.history, beyond) is None


def test_a_stub_is_one_line_with_id_size_and_how_it_begins(session: Session) -> None:
    talk(session)
    [message] = session.messages(3, 3)
    line = stub(message, message.text)
    assert "\n" not in line
    assert line.startswith(f"{SWAPPED}{id_of(message)[:SHORT_ID]}, 5,400 characters, 301 lines; recall")
    assert line.endswith('a line of the log a line of"]')
    assert len(line) < 300


def test_a_stub_lists_the_names_of_what_it_stands_for() -> None:
    text = "\n".join(f"{number}: def read_{number}(path): open_log_{number}()" for number in range(1, 30))
    line = stub(Message(seq=3, id="msg-3", role="tool", content=text), text)
    assert "\n" not in line
    assert re.search(r" and names \d+ read_\d+ open_log_\d+ ", line)
    assert line.endswith("29 read_29 open_log_29]")
    assert len(line) < len(text) / 2 + 200


def test_the_names_in_a_stub_are_bounded_however_long_the_output() -> None:
    text = "\n".join(f"{number}: name_{number} = value_{number}" for number in range(20_000))
    line = stub(Message(seq=3, id="msg-3", role="tool", content=text), text)
    assert len(line) < MAX_OUTLINE_CHARS + 300
    assert "name_1" in line


@given(st.text(max_size=400))
def test_a_preview_is_one_short_line_that_the_text_begins_with(text: str) -> None:
    line = preview(text)
    assert len(line) <= 100
    assert "\n" not in line
    assert " ".join(text.split()).startswith(line) or line == "" or " ".join(line.split()) == line


def test_the_name_of_a_chunk_is_its_digest() -> None:
    chunk = chunk_of(1, 2, "sha256:" + "0" * 64)
    assert blobs.name_of(chunk).startswith("sha256-")
    assert chunk.endswith(b"}\n")
