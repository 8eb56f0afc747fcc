"""Every call ever made can be made again from history alone, or replay says that it cannot."""

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE

import msgspec
import pytest
from campaigns import Campaign
from turn.scenes import Clock, FakeMemory, converse, digest, item, logs, outputs, release, stage, turn_events

from daypack.errors import BadInput, Damaged, DamageWarning, DaypackError, ReplayMismatch, SourceMissing
from daypack.session import Session
from daypack.turn.items import Excerpt
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.turn.turn import Turn
from daypack.types.context import ContextEnvelope, ContextItem, ContextSurface
from daypack.types.memory import Remembered

WORKER = """
import sys
from turn.scenes import stage
session = stage(sys.argv[1])
for number in range(12):
    session.append("user", f"{sys.argv[2]} asks {number}: " + "what of the harbour? " * 20)
    turn = session.prepare(budget=1500, target="model" if number % 4 else "reviewer", items=[
        {"context_kind": "manual_note", "content": f"note {number} of {sys.argv[2]}"}])
    session.accept(f"To {sys.argv[2]}: answer {number}.")
session.close()
"""
REPLAYER = """
import sys
from turn.scenes import stage, turn_events
session = stage(sys.argv[1])
print(sum(1 for event in turn_events(session) if session.replay(event.id).event_id == event.id))
"""


def run(script: str, *calls: tuple[str, ...]) -> list[str]:
    """Run a script in as many processes as there are calls, at the same time, and return what they printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", script, *args], env=environment, stdout=PIPE, text=True)
            )
            for args in calls
        ]
        printed = [worker.communicate()[0].strip() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(calls)
    return printed


def replay_all(session: Session) -> int:
    events = turn_events(session)
    for event in events:
        session.replay(event.id)
    return len(events)


def envelope(text: str, context_id: str = "ctx-elsewhere") -> bytes:
    one = ContextItem(
        item_id="i1", context_kind="document_excerpt", content_mode="inline", visibility=("model",), content=text
    )
    surface = ContextSurface(surface_id="s", scope="handoff", created_at="2027-01-01T00:00:00Z", items=(one,))
    return msgspec.json.encode(
        ContextEnvelope(
            context_id=context_id,
            scope="handoff",
            lifecycle="available",
            created_at="2027-01-01T00:00:00Z",
            item_refs=("i1",),
            surfaces=(surface,),
        )
    )


@pytest.fixture
def furnished(home: str, tmp_path: Path) -> Session:
    """A session whose turns have something from every source outside of the logs."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "AGENTS.md").write_text("Ask before you sail.\n")
    session = stage(home, workspace=str(workspace))
    session.memory = FakeMemory("Anna owns the boat.", [Remembered("e1", "The boat is red.", 0.5)])
    session.pin("system", "You are a harbour pilot.")
    session.pin("style", "Answer in one line.")
    session.put_child("rev-1", result="The reef is charted.")
    data = envelope("Tides turn at noon.")
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))
    converse(session, 8)
    session.append("user", "When do we sail past the harbour?")
    return session


def prepare(session: Session) -> Turn:
    return session.prepare(budget=1600, items=[item("tool_result", "Wind: five knots.", title="wind")])


def check_kept(session: Session, turn: Turn, change: Callable[[], object]) -> None:
    before = outputs(turn)
    change()
    with stage(str(session.path.parents[5])) as fresh:
        again = fresh.replay(turn.event_id or "")
        assert outputs(again) == before
        assert again.messages("anthropic") == turn.messages("anthropic")


@pytest.mark.requirement("S3-L1", "S4-PK14")
def test_a_replayed_turn_is_the_same_value_in_every_word(furnished: Session) -> None:
    turn = prepare(furnished)
    assert {"memory_document", "system", "child_result", "custom", "memory_entries", "recent_messages"} <= {
        one.kind for one in turn.items
    }
    check_kept(furnished, turn, lambda: None)


@pytest.mark.parametrize("how", ["changed", "deleted"])
def test_files_of_the_workspace_may_change_afterwards(furnished: Session, how: str) -> None:
    turn = prepare(furnished)
    path = Path(furnished.turns.inputs.workspace) / "AGENTS.md"
    check_kept(furnished, turn, path.unlink if how == "deleted" else lambda: path.write_text("Sail at once."))


@pytest.mark.parametrize("how", ["changed", "removed", "edited by hand", "deleted by hand"])
def test_pins_may_change_afterwards(furnished: Session, how: str) -> None:
    turn = prepare(furnished)
    path = Path(furnished.history.layout.pin("style"))
    changes: dict[str, Callable[[], object]] = {
        "changed": lambda: furnished.pin("style", "Answer at length."),
        "removed": lambda: furnished.unpin("style"),
        "edited by hand": lambda: path.write_text("Answer in verse."),
        "deleted by hand": path.unlink,
    }
    check_kept(furnished, turn, changes[how])


def test_a_child_may_answer_again_or_vanish_afterwards(furnished: Session) -> None:
    turn = prepare(furnished)
    check_kept(furnished, turn, lambda: furnished.put_child("rev-1", result="The reef has moved."))
    check_kept(furnished, turn, lambda: shutil.rmtree(furnished.history.layout.derived("child")))


def test_another_import_and_another_memory_do_not_change_what_was(furnished: Session) -> None:
    turn = prepare(furnished)
    data = envelope("Tides turn at midnight.")

    def change() -> None:
        furnished.append_event(IMPORTED, keep_envelope(furnished.history, data, read_envelope(data)))
        furnished.memory = FakeMemory("Nobody owns the boat.")

    check_kept(furnished, turn, change)


def test_a_value_that_a_caller_changes_later_does_not_change_what_was(furnished: Session) -> None:
    mine = item("tool_result", "Wind: five knots.", metadata={"place": "tool_argument"})
    turn = furnished.prepare(budget=1600, items=[mine])

    def change() -> None:
        mine["content"] = "Wind: a storm."
        mine["metadata"]["place"] = "elsewhere"

    check_kept(furnished, turn, change)


@pytest.mark.requirement("S4-R4", "S4-R6")
def test_all_of_context_may_go_and_every_turn_still_replays(furnished: Session) -> None:
    turn = prepare(furnished)
    check_kept(furnished, turn, lambda: shutil.rmtree(furnished.history.layout.context))


def _line_with(path: str, words: bytes) -> tuple[bytes, bytes]:
    data = Path(path).read_bytes()
    [line] = [line for line in data.splitlines(keepends=True) if words in line]
    return data, line


def test_a_message_that_was_changed_makes_replay_fail(furnished: Session) -> None:
    turn = prepare(furnished)
    release(furnished)
    path = furnished.history.layout.messages
    data, line = _line_with(path, b"When do we sail")
    Path(path).write_bytes(data.replace(line, line.replace(b"sail", b"sink")))
    with stage(str(furnished.path.parents[5])) as fresh, warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        with pytest.raises(ReplayMismatch, match="replay digest mismatch"):
            fresh.replay(turn.event_id or "")


def test_a_message_that_was_edited_and_lost_its_seal_makes_replay_fail(furnished: Session) -> None:
    turn = prepare(furnished)
    release(furnished)
    path = furnished.history.layout.messages
    data, line = _line_with(path, b"When do we sail")
    edited = line.replace(b"sail", b"sink").rpartition(b',"crc"')[0] + b"}\n"
    Path(path).write_bytes(data.replace(line, edited))
    with stage(str(furnished.path.parents[5])) as fresh, pytest.raises(ReplayMismatch):
        fresh.replay(turn.event_id or "")


def test_a_message_that_an_excerpt_quotes_is_missed_when_it_is_lost(home: str) -> None:
    session = stage(home)
    converse(session, 12)
    session.append("user", "Tell me about the glacier 1 again")
    turn = session.prepare(budget=900)
    quoted = next(one for one in turn.inserted if isinstance(one, Excerpt))
    release(session)
    path = session.history.layout.messages
    data = Path(path).read_bytes().splitlines(keepends=True)
    data[int(quoted.range or 0) - 1] = b"x" * (len(data[int(quoted.range or 0) - 1]) - 1) + b"\n"
    Path(path).write_bytes(b"".join(data))
    with stage(home) as fresh, warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        with pytest.raises(ReplayMismatch, match="quoted"):
            fresh.replay(turn.event_id or "")


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_every_blob_of_a_turn_is_needed_and_checked(furnished: Session, how: str) -> None:
    turn = prepare(furnished)
    texts = [one.text for one in turn.inserted if not isinstance(one, Excerpt)]
    blobs = [path for path in Path(furnished.history.layout.blob).iterdir() if path.read_text() in texts]
    assert len(blobs) > 6
    for path in blobs:
        data = path.read_bytes()
        path.write_bytes(data + b"!") if how == "changed" else path.unlink()
        with stage(str(furnished.path.parents[5])) as fresh, pytest.raises(DaypackError, match="is gone") as caught:
            fresh.replay(turn.event_id or "")
        assert how == "gone" or isinstance(caught.value, Damaged)
        path.write_bytes(data)


def test_a_turn_of_another_renderer_is_refused_and_not_guessed_at(
    furnished: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = prepare(furnished)
    monkeypatch.setattr("daypack.turn.evidence.record.VERSION", "0.0")
    with pytest.raises(ReplayMismatch, match="version"):
        furnished.replay(turn.event_id or "")
    assert furnished.turns.replay(turn.event_id or "", verify_digests=False).messages() == turn.messages()


def test_an_id_that_is_no_turn_is_refused_with_the_way_to_find_one(furnished: Session) -> None:
    with pytest.raises(SourceMissing, match=r"ev-999: the session has .* events") as caught:
        furnished.replay("ev-999")
    assert caught.value.hint == f"`daypack turns {furnished.name}` lists the turns"
    with pytest.raises(BadInput, match=r"replay: event_id: must be text, got 1 \(hint: .* 'ev-12'"):
        furnished.replay(1)  # type: ignore[arg-type]


def long_session(home: str, turns: int) -> Session:
    """Tool loops, changing pins, items of a caller, two targets, several budgets."""
    clock = Clock()
    session = stage(home, clock=clock)
    session.pin("system", "You keep a lighthouse.")
    for number in range(turns):
        clock.now += 61
        topic = ("harbour", "glacier", "orchard", "violin", "lantern")[number % 5]
        session.append("user", f"Question {number} about the {topic}: " + f"{topic} number {number} " * 8)
        if number % 6 == 0:
            calls = [{"id": f"c{number}-{at}", "name": "look", "arguments": f'{{"at": {at}}}'} for at in range(2)]
            session.append("assistant", "", tool_calls=calls)
            for call in calls:
                session.append("tool", f"It shows {topic} {number}. " * 6, tool_call_id=call["id"])
            session.prepare(budget=2400)
        if number % 40 == 7:
            session.pin("rule", f"Rule {number}: mind the {topic}.")
        if number % 90 == 50:
            session.refresh()
        items = [item("tool_result", f"Reading {number}: {number * 7} lux")] if number % 4 == 1 else []
        session.prepare(budget=2400, items=items)
        if number % 10 == 0:
            session.prepare(budget=2000, target="reviewer")
        session.accept(f"Answer {number}: the {topic} is fine. " * 4)
    return session


@pytest.mark.requirement("S4-R4")
def test_every_call_of_a_long_session_replays_also_elsewhere_and_without_context(home: str, campaign: Campaign) -> None:
    turns = campaign.size("turns", 300, least=60)
    session = long_session(home, turns)
    raw = Path(session.history.layout.messages).read_bytes()
    events = turn_events(session)
    epochs = [event for event in events if "opening" in event.data]
    assert len(events) == turns + turns // 6 + turns // 10
    assert len(epochs) > turns // 35
    assert {event.data["target"] for event in events} == {"model", "reviewer"}
    before = logs(session)
    release(session)
    with stage(home) as fresh:
        assert replay_all(fresh) == len(events)
    shutil.rmtree(session.history.layout.context)
    assert run(REPLAYER, (home,)) == [str(len(events))]
    with stage(home) as fresh:
        assert logs(fresh) == before
        assert digest(Path(fresh.history.layout.messages).read_bytes()) == digest(raw)


def test_two_processes_prepare_at_the_same_time_and_every_turn_replays(home: str) -> None:
    with stage(home) as session:
        converse(session, 6)
    run(WORKER, (home, "Anna"), (home, "Bert"))
    with stage(home) as session:
        assert replay_all(session) == 24
        assert len(session.messages()) == 12 + 48


def test_a_message_that_another_appends_during_the_survey_does_not_break_the_replay(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = stage(home), stage(home)
    session.append("user", "Mine")
    recent = session.turns.inputs.messages(session.turns.inputs.meter(None))
    newest, found = recent.newest, recent.newest_user
    left = [3]

    def late_newest(*args: object) -> object:
        other.append("assistant", "in between")
        return newest(*args)  # type: ignore[arg-type]

    def late_user() -> object:
        if left[0]:
            left[0] -= 1
            other.append("user", "in between")
        return found()

    monkeypatch.setattr(recent, "newest_user", late_user)
    turn = session.prepare()
    assert session.replay(turn.event_id or "").messages() == turn.messages()
    assert turn.record.user == turn.record.last == 1
    monkeypatch.setattr(recent, "newest", late_newest)
    turn = session.prepare(budget=3000)
    assert session.replay(turn.event_id or "").messages() == turn.messages()
