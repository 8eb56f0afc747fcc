"""Bytes that are not what was written: found, placed and told, while the other records stay readable."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import daypack
from daypack.errors import DamageWarning
from daypack.session import Session
from daypack.types.history import Message
from daypack.upkeep.doctor import Finding, examine_session

pytestmark = pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")

TEXTS = [f"message {number}: the path is src/app_{number}.py and the port is {8000 + number}" for number in range(12)]


@pytest.fixture
def written(session: Session) -> Session:
    """A session of twelve messages, about 2 kB."""
    for text in TEXTS:
        session.append("user", text)
    session.close()
    return session


def damage_found(session: Session) -> list[Finding]:
    return [finding for finding in examine_session(session.layout) if finding.severity != "note"]


def fresh(session: Session) -> Session:
    return daypack.open_session("work", home=session.layout.root, create=False)


def log(session: Session) -> Path:
    return session.path / "messages.jsonl"


def lines_of(session: Session) -> list[bytes]:
    return log(session).read_bytes().splitlines(keepends=True)


def read(session: Session) -> tuple[list[Message], Session]:
    opened = fresh(session)
    return list(opened.messages()), opened


@pytest.mark.requirement("S4-R2", "G6")
@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x20], ids=["all bits", "lowest bit", "case bit"])
@pytest.mark.parametrize("sidecar", [True, False], ids=["with sidecar", "without sidecar"])
def test_every_flipped_byte_is_found_and_the_other_records_are_read(written: Session, mask: int, sidecar: bool) -> None:
    whole = log(written).read_bytes()
    originals = list(fresh(written).messages())
    starts = [0]
    for line in lines_of(written):
        starts.append(starts[-1] + len(line))
    if not sidecar:
        shutil.rmtree(written.path / "context")
    for at in range(len(whole)):
        log(written).write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        number = next(line for line, start in enumerate(starts[1:], 1) if at < start)
        messages, _ = read(written)
        hurt = {number, number + 1} if whole[at : at + 1] == b"\n" else {number}
        unhurt = [message for message in originals if message.seq not in hurt]
        assert [message for message in unhurt if message not in messages] == []
        found = damage_found(written)
        assert found, f"byte {at}"
        placed = [
            one for one in found if one.line in hurt or (one.offset is not None and one.offset >= starts[number - 1])
        ]
        assert placed, f"byte {at}: {found}"


@pytest.mark.parametrize("value", [b"\n", b"\0", b'"'], ids=["LF", "NUL", "quote"])
def test_every_byte_replaced_is_found_and_later_appends_are_not_hidden(written: Session, value: bytes) -> None:
    whole = log(written).read_bytes()
    originals = list(fresh(written).messages())
    sidecar = (written.path / "context" / "offsets" / "messages.idx").read_bytes()
    for at in range(0, len(whole), 3):
        if whole[at : at + 1] == value:
            continue
        log(written).write_bytes(whole[:at] + value + whole[at + 1 :])
        (written.path / "context" / "offsets" / "messages.idx").write_bytes(sidecar)
        number = whole[: at + 1].count(b"\n") + (whole[at : at + 1] != b"\n")
        hurt = {number, number + 1} if whole[at : at + 1] == b"\n" else {number}
        opened = fresh(written)
        unhurt = [message for message in originals if message.seq not in hurt]
        assert [message for message in opened.messages() if message.seq in {one.seq for one in unhurt}] == unhurt, at
        assert [message for message in opened.tail(5) if message in unhurt][-3:] == unhurt[-3:], at
        added = opened.append("user", "after the damage")
        assert opened.tail(1)[0] == added == fresh(written).tail(1)[0], at
        torn = [event for event in opened.events() if event.type == "log.torn"]
        assert opened.damage or (torn and at == len(whole) - 1), at


def test_a_block_of_zeros_hides_no_record_behind_it(written: Session) -> None:
    lines = lines_of(written)
    log(written).write_bytes(b"".join([*lines[:5], bytes(512), *lines[5:]]))
    messages, opened = read(written)
    assert [message.text for message in messages] == TEXTS
    assert [(damage.line, "foreign bytes" in damage.reason) for damage in opened.damage] == [(6, True)]
    assert [(one.severity, one.line) for one in damage_found(written) if one.line] == [("damage", 6)]


def test_zeros_at_the_end_are_moved_aside_by_the_next_append(written: Session) -> None:
    with log(written).open("ab") as file:
        file.write(bytes(700))
    opened = fresh(written)
    opened.append("user", "after the zeros")
    assert [message.text for message in opened.messages()] == [*TEXTS, "after the zeros"]
    assert (written.path / "messages.jsonl.torn-1").read_bytes() == bytes(700)


def test_a_torn_line_in_the_middle_does_not_swallow_the_next_record(written: Session) -> None:
    lines = lines_of(written)
    log(written).write_bytes(b"".join([*lines[:5], lines[5][:40], *lines[6:]]))
    messages, opened = read(written)
    assert [message.text for message in messages] == [text for text in TEXTS if text != TEXTS[5]]
    assert [damage.line for damage in opened.damage] == [6]


def test_a_removed_line_is_reported_with_its_number_and_place(written: Session) -> None:
    lines = lines_of(written)
    log(written).write_bytes(b"".join([*lines[:5], *lines[6:]]))
    found = [finding for finding in damage_found(written) if finding.severity == "damage"]
    assert [(one.line, "msg-6 is missing" in one.problem) for one in found] == [(6, True)]
    messages, opened = read(written)
    assert [message.seq for message in messages] == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    assert [message.seq for message in opened.messages(5, 8)] == [5, 7, 8]
    assert opened.append("user", "next").seq == 13


def test_a_copied_line_is_reported(written: Session) -> None:
    lines = lines_of(written)
    log(written).write_bytes(b"".join([*lines, lines[3]]))
    assert any("msg-4 follows msg-12" in finding.problem for finding in damage_found(written))
    assert fresh(written).append("user", "next").seq == 13


def test_damage_is_warned_of_where_it_is_met(written: Session) -> None:
    whole = log(written).read_bytes()
    log(written).write_bytes(whole.replace(b"src/app_3.py", b"src/app_4.py"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        messages = list(fresh(written).messages())
    assert len(messages) == 11
    assert [warning.category for warning in caught] == [DamageWarning]
    assert "line 4, offset" in str(caught[0].message)


def test_damage_in_the_tail_does_not_shorten_the_tail(written: Session) -> None:
    whole = log(written).read_bytes()
    log(written).write_bytes(whole.replace(b"src/app_9.py", b"src/app_8.py"))
    opened = fresh(written)
    assert [message.seq for message in opened.tail(4)] == [8, 9, 11, 12]
    assert [damage.line for damage in opened.damage] == [10]


@pytest.mark.requirement("S4-R4", "S4-G1")
def test_a_wrong_sidecar_is_noticed_and_built_anew(written: Session) -> None:
    sidecar = written.path / "context" / "offsets" / "messages.idx"
    right = sidecar.read_bytes()
    for at in range(len(right)):
        sidecar.write_bytes(right[:at] + bytes([right[at] ^ 0xFF]) + right[at + 1 :])
        opened = fresh(written)
        assert [message.text for message in opened.messages()] == TEXTS, f"byte {at}"
        assert [message.text for message in opened.tail(3)] == TEXTS[-3:], f"byte {at}"
        assert opened.damage == []


def test_an_edited_log_is_not_answered_from_the_table_of_its_former_keys(written: Session) -> None:
    opened = fresh(written)
    stored = opened.append("user", "pay 5", client_key="k")
    opened.close()
    log(written).write_bytes(b'{"role":"user","content":"inserted"}\n' + log(written).read_bytes())
    again = fresh(written).append("user", "pay 5", client_key="k")
    assert (again.text, again.client_key, again.crc) == (stored.text, "k", stored.crc)
    assert sum(message.client_key == "k" for message in fresh(written).messages()) == 1


def test_a_line_that_is_no_message_costs_nothing_and_counts_for_nothing(written: Session) -> None:
    with log(written).open("ab") as file:
        file.write(b'{"role":"robot","content":"x"}\n' * 3)
    opened = fresh(written)
    opened.append("user", "one")
    assert opened.newest_within(1) == 1
    assert opened.newest_within(10**6) == 13 == len(opened.messages())


def test_appending_with_a_wrong_sidecar_gives_the_next_number_and_mends_it(written: Session) -> None:
    sidecar = written.path / "context" / "offsets" / "messages.idx"
    for spoiled in (b"", b"short", bytes(400), sidecar.read_bytes()[:-20], sidecar.read_bytes() + bytes(56)):
        sidecar.write_bytes(spoiled)
        opened = fresh(written)
        before = len(opened.messages())
        assert opened.append("user", "more").seq == before + 1
        opened.close()
        assert damage_found(written) == []


def hand_written() -> Iterator[tuple[str, bytes, str]]:
    yield "only role and content", b'{"role":"user","content":"by hand"}\n', "by hand"
    yield "a taken number", b'{"seq":3,"role":"user","content":"by hand"}\n', "by hand"
    yield "an absurd number", b'{"seq":99999999999,"role":"user","content":"by hand"}\n', "by hand"
    yield "a negative number", b'{"seq":-1,"role":"user","content":"by hand"}\n', "by hand"
    yield "unknown keys", b'{"role":"user","content":"by hand","mood":"good","x":[1]}\n', "by hand"
    yield "spaces", b' { "role" : "user" , "content" : "by hand" } \n', "by hand"
    yield "U+2028", '{"role":"user","content":"by\u2028hand"}\n'.encode(), "by\u2028hand"


@pytest.mark.requirement("S4-F1")
@pytest.mark.parametrize(
    ("line", "text"), [case[1:] for case in hand_written()], ids=[case[0] for case in hand_written()]
)
def test_a_line_written_by_hand_is_a_message(written: Session, line: bytes, text: str) -> None:
    with log(written).open("ab") as file:
        file.write(line)
    opened = fresh(written)
    message = opened.tail(1)[0]
    assert (message.text, message.seq, message.id) == (text, 13, "msg-13")
    assert opened.messages(13, 13)[0] == message
    assert opened.damage == []
    assert {finding.severity for finding in examine_session(opened.history.layout)} == {"note"}
    assert opened.append("user", "next").seq == 14


def test_a_hand_written_line_that_lacks_its_end_is_kept(written: Session) -> None:
    with log(written).open("ab") as file:
        file.write(b'{"role":"user","content":"by hand"}')
    opened = fresh(written)
    opened.append("user", "next")
    assert [message.text for message in opened.messages()] == [*TEXTS, "by hand", "next"]


def test_one_flipped_bit_in_a_slot_changes_no_number_and_no_range(written: Session) -> None:
    sidecar = written.path / "context" / "offsets" / "messages.idx"
    right = sidecar.read_bytes()
    for at in [*range(len(right) - 28, len(right)), 64 + 28 * 4 + 16]:
        sidecar.write_bytes(right[:at] + bytes([right[at] ^ 0x40]) + right[at + 1 :])
        opened = fresh(written)
        assert [message.seq for message in opened.messages(5, 7)] == [5, 6, 7], at
        assert [message.seq for message in opened.messages(11)] == [11, 12], at
    sidecar.write_bytes(right[:-12] + bytes([right[-12] ^ 0x40]) + right[-11:])  # the newest slot's number
    assert fresh(written).append("user", "next").seq == 13


def test_many_damaged_lines_are_told_of_in_a_few_warnings(written: Session) -> None:
    with log(written).open("ab") as file:
        file.write(b"garbage\n" * 500)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = fresh(written)
        assert opened.tail(1)[0].text == TEXTS[-1]
    assert len(caught) == 11
    assert len(opened.damage) == 500


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[1,2]\n",
        b'{"role":"king","content":"x"}\n',
        b"\n",
        b'{"role":"user"\n',
        b"\xff\xfe\n",
        b'{"role":"user","content":"\xff"}\n',
        b"[" * 5000 + b"\n",
    ],
)
def test_a_line_that_is_no_message_is_damage_and_stays(written: Session, line: bytes) -> None:
    with log(written).open("ab") as file:
        file.write(line)
    opened = fresh(written)
    opened.append("user", "next")
    assert [message.text for message in opened.messages()] == [*TEXTS, "next"]
    assert [damage.line for damage in opened.damage] == [13]
    assert line in log(written).read_bytes()
