"""Repeated contents: stored once, referred to everywhere, made again from history, and never believed blindly."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from derived.repeating import FILE, LOG, NUMBERED, SUMMARY, by_hash, files, furnish, hash_of, run
from hypothesis import given, settings
from hypothesis import strategies as st

import daypack
from daypack.derived import dedup, occurrences
from daypack.derived.children import put_child
from daypack.derived.dedup import fold, lookup, read_index, records_of, recount, refresh, write
from daypack.derived.occurrences import OccurrenceIndex, advance
from daypack.derived.swap import swap_output, swap_range
from daypack.errors import BadInput, SourceMissing, UnsafePath
from daypack.files import blobs
from daypack.history.session import LARGE_BYTES, History
from daypack.session import Session
from daypack.text.tokens import counter_named
from daypack.types.records import DedupRecord


@pytest.mark.requirement("S4-DD1", "S4-DD2", "S4-DD3", "S4-SR5")
def test_what_occurs_again_is_stored_once_and_named_wherever_it_occurs(session: Session) -> None:
    furnish(session)
    records = refresh(session.history)
    assert by_hash(records) == {
        hash_of(LOG): ("tool:t1", "tool:t5"),
        hash_of(FILE): ("messages:3", "tool:t3"),
        hash_of(SUMMARY): ("child:rev", "events:ev-11"),
    }
    place = session.path / "context" / "dedup"
    assert sorted(path.name for path in place.iterdir()) == ["blob", "index.jsonl"]
    lines = [json.loads(line) for line in (place / "index.jsonl").read_text().splitlines()]
    assert [line["hash"] for line in lines] == sorted(by_hash(records))
    for line in lines:
        data = (place / "blob" / line["hash"]).read_bytes()
        assert blobs.name_of(data) == line["hash"]
        assert line["bytes"] == len(data)
        assert line["tokens"] == counter_named(session.history.tokenizer).count(data.decode())
    assert read_index(session.history) == records == fold(session.history)
    assert len(os.listdir(place / "blob")) == 3


@pytest.mark.requirement("S4-DD4")
def test_a_large_tool_output_a_hundred_times_is_one_blob(session: Session) -> None:
    for number in range(100):
        run(session, f"t{number}", LOG)
    (record,) = refresh(session.history)
    assert record.refs == tuple(f"tool:t{number}" for number in range(100))
    assert os.listdir(session.path / "context" / "dedup" / "blob") == [record.hash]


@pytest.mark.requirement("S4-DD5")
def test_a_file_that_is_written_and_read_again_is_one_blob(session: Session) -> None:
    first = run(session, "w", "ok", path="a.py", file_text=FILE) - 1
    run(session, "r", NUMBERED)
    run(session, "c", FILE)
    (record,) = refresh(session.history)
    assert record.refs == (f"messages:{first}", "tool:c", "tool:r")
    assert lookup(session.history, record.hash) == FILE.rstrip("\n")


def test_small_and_single_contents_are_left_where_they_are(session: Session) -> None:
    run(session, "t1", "small")
    run(session, "t2", "small")
    assert refresh(session.history) == ()
    assert files(session) == {}
    run(session, "t3", LOG)
    assert refresh(session.history) == ()
    assert not any("blob/" in name for name in files(session))


@pytest.mark.parametrize("call", [None, "späť", "a\nb", " a", "x" * 256])
def test_an_output_without_an_id_that_can_be_spelled_is_named_by_its_message(
    session: Session, call: str | None
) -> None:
    draft = {"role": "tool", "content": LOG, "tool_call_id": call}
    session.append_many([draft, draft, {"role": "user", "content": "Thanks."}])
    assert fold(session.history)[0].refs == ("messages:1", "messages:2")


def test_an_id_that_is_used_again_names_the_first_result(session: Session) -> None:
    first = run(session, "t", LOG)
    other = run(session, "t", FILE)
    run(session, "u", LOG)
    run(session, "u", FILE)
    assert by_hash(fold(session.history)) == {
        hash_of(LOG): ("tool:t", "tool:u"),
        hash_of(FILE): (f"messages:{other}", "messages:8"),
    }
    run(session, "t", "short")
    assert lookup(session.history, "tool:t") == lookup(session.history, f"messages:{first}") == LOG.rstrip("\n")


def test_an_output_that_left_the_window_is_named_by_its_swap_id(session: Session) -> None:
    run(session, "t1", LOG)
    run(session, "t2", LOG)
    run(session, "t3", FILE)
    messages = list(session.messages())
    swapped = [swap_output(messages[at], "shown", 9) for at in (1, 5)]
    swapped.append(swap_range(messages, 1, 6, "all", 99))
    (record,) = refresh(session.history, swapped=swapped)
    assert record.refs == (f"swap:{swapped[0].id}", "tool:t1", "tool:t2")
    assert lookup(session.history, f"swap:{swapped[0].id}") == LOG.rstrip("\n")
    assert recount(session.history, swapped=swapped)[hash_of(FILE)] == (f"swap:{swapped[1].id}", "tool:t3")
    (record,) = refresh(session.history)
    assert record.refs == ("tool:t1", "tool:t2")


def test_what_was_recalled_or_shown_is_not_counted(session: Session) -> None:
    run(session, "t1", LOG)
    run(session, "t2", session.call("recall", {"id": "messages:2"}))
    session.append_event("context.turn", {"digest": "sha256:0", "text": LOG})
    assert fold(session.history) == ()
    session.append_event("mine", {"kept": session.history.capture(LOG.encode())})
    assert by_hash(fold(session.history)) == {hash_of(LOG): ("events:ev-6", "tool:t1")}


def test_a_captured_text_that_is_lost_or_no_text_is_passed_over(session: Session) -> None:
    session.pin("a", SUMMARY * 2)
    session.append_event("mine", {"digest": "sha256:0", "blob": "../../../etc/passwd"})
    session.append_event("mine", {"digest": 7, "text": 7})
    shutil.rmtree(session.path / "blob")
    assert fold(session.history) == ()


# Lookup


def test_a_hash_or_a_ref_is_expanded_when_it_is_asked_for(session: Session) -> None:
    furnish(session)
    refresh(session.history)
    assert lookup(session.history, hash_of(LOG)) == LOG.rstrip("\n")
    assert lookup(session.history, hash_of(LOG).replace("-", ":")) == LOG.rstrip("\n")
    for ref in ("tool:t1", "tool:t5", "messages:10"):
        assert lookup(session.history, ref) == LOG.rstrip("\n")
    for ref in ("messages:3", "tool:t3"):
        assert lookup(session.history, ref) == FILE.rstrip("\n")
    for ref in ("child:rev", "events:ev-11"):
        assert lookup(session.history, ref) == SUMMARY
    assert lookup(session.history, "messages:4") == lookup(session.history, "tool:t2") == "ok"


def test_a_result_that_was_put_again_is_looked_up_as_it_is_now(session: Session) -> None:
    put_child(session.history, "rev", result=SUMMARY)
    put_child(session.history, "rev", result="short")
    put_child(session.history, "rev", handoff="again")
    assert lookup(session.history, "child:rev") == "short"


@pytest.mark.parametrize(
    "name", ["sha256-" + "0" * 64, "child:none", "swap:none", "tool:none", "messages:99", "events:ev-99"]
)
def test_what_is_not_there_is_an_error(session: Session, name: str) -> None:
    furnish(session)
    refresh(session.history)
    with pytest.raises(SourceMissing):
        lookup(session.history, name)


def test_a_message_with_several_contents_is_asked_for_by_hash(session: Session) -> None:
    run(session, "t1", "ok", one=LOG, two=FILE)
    with pytest.raises(BadInput, match="several contents"):
        lookup(session.history, "messages:1")
    assert lookup(session.history, hash_of(FILE)) == FILE.rstrip("\n")


@pytest.mark.parametrize("data", [None, b"", b"!" * 4199], ids=["gone", "empty", "other bytes"])
def test_a_blob_is_never_the_only_copy(session: Session, data: bytes | None) -> None:
    furnish(session)
    for record in refresh(session.history):
        before = lookup(session.history, record.hash)
        path = session.path / "context" / "dedup" / "blob" / record.hash
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        assert lookup(session.history, record.hash) == before


# Counting


@pytest.mark.requirement("X30")
def test_references_are_counted_in_history_whatever_the_index_says(session: Session) -> None:
    furnish(session)
    honest = refresh(session.history)
    index = session.path / "context" / "dedup" / "index.jsonl"
    forged = [
        DedupRecord(honest[0].hash, (), 1, 1),
        DedupRecord("sha256-" + "0" * 64, ("messages:1", "tool:t9"), 5000, 9),
    ]
    index.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in forged) + b"not json\n")
    (session.path / "context" / "offsets" / "dedup.idx").unlink()
    counted = recount(session.history)
    assert {name: counted[name] for name in by_hash(honest)} == by_hash(honest)
    assert counted[hash_of("x" * 3000)] == ("tool:t4",)
    assert "sha256-" + "0" * 64 not in counted
    assert len(read_index(session.history)) == 2
    assert refresh(session.history) == honest == read_index(session.history)


@pytest.mark.parametrize(
    "forged",
    [
        {"messages": 4, "places": {}},
        {"marks": [0, 0], "places": {}},
        {"tokenizer": "other", "sizes": {}},
        {"messages": 999},
        {"messages": "x"},
    ],
)
def test_a_sidecar_that_is_not_about_these_logs_is_not_believed(session: Session, forged: dict[str, Any]) -> None:
    furnish(session)
    honest = refresh(session.history)
    path = session.path / "context" / "offsets" / "dedup.idx"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | forged))
    assert refresh(session.history) == honest


def test_less_history_than_before_can_be_asked_for(session: Session) -> None:
    furnish(session)
    whole = refresh(session.history)
    assert by_hash(refresh(session.history, 6, events=0)) == {hash_of(FILE): ("messages:3", "tool:t3")}
    assert refresh(session.history) == whole


@pytest.mark.parametrize("noted_on_append", [False, True])
def test_only_what_is_new_is_read(noted_on_append: bool, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(session)
    refresh(session.history)
    asked: list[tuple[int, int | None]] = []
    real = session.history.messages.records

    def records(start: int = 1, stop: int | None = None) -> Any:
        asked.append((start, stop))
        return real(start, stop)

    monkeypatch.setattr(session.history.messages, "records", records)
    if not noted_on_append:
        session.history.on_large = None
    run(session, "t6", FILE)
    assert hash_of(FILE) in by_hash(refresh(session.history))
    assert asked == ([] if noted_on_append else [(11, 12)])  # what was just appended is at hand


@pytest.mark.requirement("S4-R7")
def test_a_long_history_without_large_contents_is_read_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup, "REREAD_MESSAGES", 4)
    session.append_many([{"role": "user", "content": f"short {number}"} for number in range(3)])
    assert refresh(session.history) == ()
    assert files(session) == {}  # a short one leaves no file behind
    session.append_many([{"role": "user", "content": f"short {number}"} for number in range(3)])
    assert refresh(session.history) == ()
    assert list(files(session)) == ["context/offsets/dedup.idx"]
    session.append("user", "one more")
    started: list[int] = []

    def counted(history: History, index: OccurrenceIndex, upto: int | None, *, events: int | None) -> None:
        started.append(index.messages)
        advance(history, index, upto, events=events)

    monkeypatch.setattr(dedup, "advance", counted)
    assert refresh(session.history) == ()
    assert started == [6]


def test_large_contents_among_short_messages_are_all_found(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occurrences, "_STRETCH", 3)
    for text in ("short", "x" * LARGE_BYTES, "é" * (LARGE_BYTES // 2), "\n" * 5):
        session.append_many([{"role": "user", "content": f"short {number}"} for number in range(7)])
        run(session, f"call of {text[:5]!r}", text, file_path="a.py", content=FILE)
    index = OccurrenceIndex()
    advance(session.history, index)
    found = {(blobs.name_of(one.content.encode()), one.ref) for one in occurrences.all_of(session.history)}
    assert found == {(name, ref) for name, refs in index.places.items() for ref in refs}
    assert len(found) == 6


CONTENTS = st.sampled_from(["log", "file", "numbered", "write", "pin", "child", "small", "other"])
TEXTS = {"log": LOG, "file": FILE, "numbered": NUMBERED, "small": "ok", "other": "o" * 2500}


def append_kind(session: Session, number: int, kind: str) -> None:
    if kind == "write":
        run(session, f"t{number % 4}", "ok", content=FILE)
    elif kind == "pin":
        session.pin(f"p{number % 2}", SUMMARY if number % 3 else LOG)
    elif kind == "child":
        put_child(session.history, f"c{number % 2}", result=SUMMARY if number % 2 else LOG)
    else:
        run(session, f"t{number % 4}", TEXTS[kind])


@settings(max_examples=25, deadline=None)
@given(kinds=st.lists(st.tuples(CONTENTS, st.booleans()), max_size=14))
def test_reading_on_is_the_same_as_reading_all_at_once(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[tuple[str, bool]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    with daypack.open_session("work", home=home, durability="os") as session:
        seen = OccurrenceIndex()
        for number, (kind, refreshing) in enumerate(kinds):
            append_kind(session, number, kind)
            if refreshing:
                refresh(session.history)
                advance(session.history, seen)
        advance(session.history, seen)
        assert records_of(seen) == fold(session.history) == refresh(session.history)
        grown = files(session)
        for place in ("dedup", "offsets"):
            shutil.rmtree(session.path / "context" / place, ignore_errors=True)
        refresh(session.history)
        assert files(session) == grown
        for record in read_index(session.history):
            assert set(record.refs) == set(recount(session.history)[record.hash])
            assert lookup(session.history, record.hash).encode() == grown[f"context/dedup/blob/{record.hash}"]
    shutil.rmtree(home)


# Files


@pytest.mark.requirement("S4-DD1")
def test_a_deleted_folder_comes_back_byte_by_byte(session: Session) -> None:
    furnish(session)
    refresh(session.history)
    before = files(session)
    assert len(before) == 5
    shutil.rmtree(session.path / "context" / "dedup")
    write(session.history, fold(session.history))
    assert files(session) == before
    shutil.rmtree(session.path / "context")
    refresh(session.history)
    assert files(session) == before


def test_a_content_that_history_no_longer_has_is_not_listed(session: Session) -> None:
    furnish(session)
    records = fold(session.history)
    gone = DedupRecord("sha256-" + "0" * 64, ("tool:t1", "messages:3"), 3000, 100)
    assert write(session.history, [gone, *records]) == records == read_index(session.history)


@pytest.mark.parametrize("place", ["dedup", "dedup/blob"])
def test_no_link_is_followed(session: Session, tmp_path: Path, place: str) -> None:
    furnish(session)
    (tmp_path / "outside").mkdir()
    link = session.path / "context" / place
    shutil.rmtree(link)
    link.symlink_to(tmp_path / "outside")
    run(session, "t6", LOG)
    for act in (refresh, read_index):
        with pytest.raises(UnsafePath):
            act(session.history)
    assert list((tmp_path / "outside").iterdir()) == []
