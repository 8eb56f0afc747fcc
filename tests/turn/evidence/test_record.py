"""What one turn leaves behind: one event of references, texts from outside in blobs, no line of history changed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.compacting import BUDGET, fill
from turn.scenes import Clock, FakeMemory, converse, item, logs, outputs, stage, turn_events

from daypack.errors import Damaged, SourceMissing
from daypack.session import Session
from daypack.turn.evidence import record as evidence
from daypack.turn.evidence import replay
from daypack.turn.evidence.replay import read_turn
from daypack.turn.items import Item
from daypack.types.memory import Remembered

TEXT = "The harbour master keeps the only key."
FORGED: list[dict[str, Any]] = [
    {},
    {"target": "model"},
    {"target": "nobody", "sha256": 5},
    {"renderer": ["1"]},
    {"items": 5},
    {"items": [5, {"id": [], "context_kind": {}}], "opening": {"items": {"a": 1}}},
    {"opening": {"items": 7}},
]


def test_a_turn_appends_one_event_and_no_message(home: str) -> None:
    session = stage(home)
    converse(session, 3)
    session.append("user", "And now?")
    before = logs(session)
    turn = session.prepare()
    messages, events = logs(session)
    assert messages == before[0]
    assert events.startswith(before[1])
    assert len(events[len(before[1]) :].splitlines()) == 1
    assert turn_events(session)[0].id == turn.event_id


@pytest.mark.requirement("X43")
def test_dry_run_replay_and_exports_write_nothing_into_the_logs(home: str) -> None:
    session = stage(home)
    converse(session, 4)
    session.append("user", "And now?")
    turn = session.prepare(budget=1200, items=[item()])
    before = logs(session)
    session.prepare(budget=900, items=[item(content="another")], dry_run=True)
    for target in ("model", "tool", "reviewer", "user"):
        session.prepare(target=target, dry_run=True)
    again = session.replay(turn.event_id or "")
    assert outputs(again) == outputs(turn)
    assert logs(session) == before


def test_a_dry_run_gives_the_same_words_as_the_turn_and_has_no_event(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello")
    dry = session.prepare(dry_run=True)
    real = session.prepare()
    assert dry.event_id is None
    assert dry.messages() == real.messages()
    assert dry.pack_json == real.pack_json


def test_the_event_holds_references_and_digests_and_no_text(home: str) -> None:
    session = stage(home)
    session.memory = FakeMemory("The lighthouse is white.", [Remembered("e1", "Painted last spring.")])
    session.pin("system", TEXT)
    session.put_child("rev", result="The reef is charted.")
    session.append("user", "Where is the violin?")
    session.prepare(items=[item(content="A note on orchards.", title="note")])
    data = msgspec.json.encode(turn_events(session)[0].data).decode()
    for words in (TEXT, "lighthouse is white", "Painted last", "reef is charted", "note on orchards", "the violin"):
        assert words not in data
    assert "pin:system.md" in data


def test_the_event_of_a_turn_that_goes_on_is_small_however_long_the_prefix_is(home: str) -> None:
    session = stage(home)
    for number in range(20):
        session.pin(f"rule-{number}", f"Rule {number}: " + "words " * 50)
    session.append("user", "One")
    session.prepare()
    session.accept("Fine.")
    session.append("user", "Two")
    session.prepare()
    first, second = turn_events(session)
    assert "opening" in first.data
    assert second.data["epoch"] == first.id
    assert "opening" not in second.data
    assert len(msgspec.json.encode(second.data)) < 1500


def test_texts_from_outside_are_kept_in_blobs_as_they_were_shown(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi")
    turn = session.prepare(items=[item(content=TEXT)])
    blobs = [path.read_text() for path in Path(session.history.layout.blob).iterdir()]
    assert TEXT in blobs
    restored = replay.restore(session.history, read_turn(session.history, turn.event_id or "").items)
    assert TEXT in [one.text for one in restored]


def test_the_time_stands_in_the_event_and_needs_no_blob(home: str) -> None:
    session = stage(home, clock=Clock())
    session.switch("identity", on=True)
    session.append("user", "Hi")
    session.prepare()
    blobs = [path.read_text() for path in Path(session.history.layout.blob).iterdir()]
    assert not any("Current time" in text for text in blobs)
    assert turn_events(session)[0].data["items"][0]["text"] == "Current time: 2027-01-15T08:00:00Z"


def test_a_runtime_item_of_a_caller_is_kept_in_a_blob_and_not_in_the_log(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi")
    session.prepare(items=[item("runtime_state", "cwd is /srv")])
    assert b"/srv" not in logs(session)[1]


def test_restore_reads_an_item_without_words_back_as_it_was(home: str) -> None:
    session = stage(home)
    name = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    one = Item(id="x", kind="custom", context_kind="custom", source="caller:x", digest=name, bytes=2)
    kept = evidence.capture(session.history, [one])
    assert replay.restore(session.history, kept) == (one,)


def test_an_event_that_is_no_turn_is_not_read_as_one(home: str) -> None:
    session = stage(home)
    other = session.append_event("note", {"text": "hello"})
    with pytest.raises(SourceMissing, match="is not a turn"):
        read_turn(session.history, other.id)
    with pytest.raises(SourceMissing):
        read_turn(session.history, "ev-99")
    with pytest.raises(SourceMissing):
        read_turn(session.history, "nonsense")


@pytest.mark.parametrize("data", FORGED)
def test_a_turn_written_by_somebody_else_is_damage_when_it_does_not_read_as_one(
    home: str, data: dict[str, Any]
) -> None:
    session = stage(home)
    event = session.append_event("context.turn", data)
    with pytest.raises(Damaged, match="is not a valid turn"):
        session.replay(event.id)


def test_a_turn_that_names_an_epoch_that_is_none_is_damage(home: str) -> None:
    session = stage(home)
    session.append("user", "One")
    session.prepare()
    session.append("assistant", "Yes.")
    session.append("user", "Two")
    session.prepare()
    _, second = turn_events(session)
    forged = session.append_event("context.turn", {**second.data, "epoch": second.id})
    with pytest.raises(Damaged, match="no epoch begins"):
        session.replay(forged.id)


def test_the_record_says_what_was_counted_how_and_for_whom(home: str) -> None:
    session = stage(home)
    converse(session, 2)
    session.append("user", "Hi")
    turn = session.prepare(budget={"tokens": 5000, "items": 50, "ms": 1000})
    data = turn_events(session)[0].data
    assert data["limits"] == {"tokens": 5000, "items": 50, "ms": 1000}
    assert data["tokenizer"] == "o200k_base"
    assert data["target"] == "model"
    assert data["used"][0] == turn.tokens
    assert (data["first"], data["last"], data["user"]) == (1, 5, 5)
    assert set(data["sha256"]) == {"assembly", "openai", "responses", "anthropic"}
    assert data["stable"]["prefix_sha256"] == turn.prefix_sha256


def crowded(home: str) -> Session:
    """A session with two pins and more than its window holds; its newest turn has 20 items and opens an epoch."""
    session = stage(home)
    session.pin("system.md", "You are a careful engineer.")
    session.pin("goal.md", "The harbour opens in spring.")
    session.append("user", "From now on, always answer in French.")
    session.append("assistant", "D'accord.")
    fill(session, 2)
    session.refresh()
    session.append("user", "What of the harbour lamp and the glacier?")
    items = [
        item(
            item_id=f"src/module_{number}.py",
            title=f"src/module_{number}.py, lines 1 to 40",
            content=f"def lamp_{number}(): ...",
            source_refs=[f"file:///src/module_{number}.py"],
        )
        for number in range(20)
    ]
    turn = session.prepare(budget=BUDGET, items=items)
    assert turn.new_epoch
    assert len(turn.parts.volatile) >= 20
    return session


def test_the_event_of_a_turn_with_twenty_items_that_opens_an_epoch_has_at_most_8_kb(home: str) -> None:
    session = crowded(home)
    line = Path(session.history.layout.events).read_bytes().splitlines()[-1]
    assert b'"opening"' in line
    assert len(line) <= 8000


def test_items_of_the_prefix_leave_out_what_their_ids_say_and_older_events_have_it(home: str) -> None:
    session = crowded(home)
    [*_, event] = turn_events(session)
    stored = {found["id"]: found for found in event.data["opening"]["items"]}
    assert set(stored["context_doc"]) == {"id", "context_kind", "digest", "tokens"}
    assert set(stored["refs"]) == {"id", "context_kind", "digest", "tokens"}
    assert set(stored["rules"]) == {"id", "context_kind", "digest", "tokens", "metadata"}
    assert set(stored["pin:goal.md"]) == {"id", "context_kind", "digest", "tokens", "title"}
    record = read_turn(session.history, event.id)
    assert record.opening
    for found in record.opening.items:
        whole = msgspec.to_builtins(found)  # as it was stored before: all fields that are no default of Item
        assert msgspec.convert(evidence.expand({"items": [whole]})["items"][0], Item) == found
    session.replay(event.id)
