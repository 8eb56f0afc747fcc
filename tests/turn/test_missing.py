"""Records, refs, children and memory: what a turn takes from them, and what it says is missing."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import Clock, FakeMemory, converse, excerpts_in, item, lost, reasons, sent, stage

from daypack.errors import BadInput, NotFound
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.types.memory import Remembered
from daypack.types.records import Ref


def opened(home: str, workspace: Path | None = None) -> Session:
    if workspace:
        workspace.mkdir(exist_ok=True)
    session = stage(home, workspace=str(workspace or ""))
    session.append("user", "Hi")
    return session


def prefix(turn: Turn) -> dict[str, str]:
    return {one.id: one.text for one in turn.parts.epoch.prefix}


def derive(session: Session, name: str, text: str) -> Path:
    path = Path(session.history.layout.derived(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# Records and refs


@pytest.mark.requirement("X13", "S1-I2.1")
def test_a_pack_has_the_document_or_the_records_and_never_both(home: str) -> None:
    session = opened(home)
    derive(session, "summary", "Sail north.\n")
    derive(session, "facts", '{"id":"f1","text":"The reef is charted.","source":"messages:1"}\n')
    derive(session, "decisions", '{"id":"d1","decision":"Sail at noon.","source":"messages:1"}\n')
    derive(session, "todo", "- [ ] Buy rope\n")
    derive(session, "errors", '{"id":"e1","error":"Torn sail","resolution":"Sewn","source":"messages:1"}\n')
    records = session.prepare(dry_run=True)
    kinds = ["summary", "facts", "decisions", "todo", "errors"]
    assert [one.kind for one in records.parts.epoch.prefix] == kinds
    assert prefix(records)["facts"] == "- The reef is charted. [f1, messages:1]"
    assert prefix(records)["errors"] == "- Torn sail — Sewn [e1, messages:1]"
    derive(session, "context_doc", "# Context\n\n## Task\nSail north.\n")
    document = session.prepare()
    assert [one.kind for one in document.parts.epoch.prefix] == ["context_doc"]
    assert {name: reasons(document)[name] for name in kinds} == dict.fromkeys(kinds, "duplicate")
    assert document.quoted.count("Sail north.") == 1


@pytest.mark.requirement("S4-PK5", "S4-PK6")
def test_records_name_their_files(home: str) -> None:
    session = opened(home)
    derive(session, "summary", "Sail north.")
    derive(session, "facts", '{"id":"f1","text":"The reef is charted.","source":"messages:1"}')
    found = {one.kind: one.source for one in session.prepare().items}
    assert found["summary"] == "context/summary.md"
    assert found["facts"] == "context/facts.jsonl"


def test_a_line_that_is_no_record_is_told_and_the_others_are_read(home: str) -> None:
    session = opened(home)
    derive(session, "facts", '{"id":"f1","text":"One","source":"messages:1"}\n{"id":\n\n{"text":5}\n')
    turn = session.prepare()
    assert prefix(turn)["facts"] == "- One [f1, messages:1]"
    assert [one.id for one in turn.missing] == ["facts:2", "facts:4"]
    assert lost(turn, "facts:2").requested == "context/facts.jsonl"


def test_a_derived_file_that_cannot_be_read_is_told_and_the_turn_goes_on(home: str, tmp_path: Path) -> None:
    session = opened(home)
    derive(session, "summary", "x").unlink()
    (tmp_path / "x").write_text("The key is under the mat.")
    Path(session.history.layout.derived("summary")).symlink_to(tmp_path / "x")
    Path(session.history.layout.derived("facts")).mkdir()
    turn = session.prepare()
    assert lost(turn, "summary").requested == "context/summary.md"
    assert lost(turn, "facts").severity == "high"
    assert "under the mat" not in turn.pack_md


@pytest.mark.requirement("S4-PK12", "S3-O12")
def test_a_reference_to_a_file_that_is_gone_is_missed(home: str, tmp_path: Path) -> None:
    session = opened(home, tmp_path / "w")
    (tmp_path / "w" / "here.py").write_text("x")
    refs = [
        Ref("r1", "here.py", "file", "is here"),
        Ref("r2", "gone.py", "file", "is gone"),
        Ref("r3", "https://example.org/a", "file", "elsewhere"),
        Ref("r4", "sha256-0", "swap", "swapped"),
    ]
    derive(session, "refs", "".join(msgspec.json.encode(ref).decode() + "\n" for ref in refs))
    turn = session.prepare()
    assert prefix(turn)["refs"].split("\n")[1] == "- r2 file gone.py: is gone"
    assert [one.id for one in turn.missing] == ["ref:r2"]
    assert (lost(turn, "ref:r2").severity, lost(turn, "ref:r2").requested) == ("low", "gone.py")


# Children and memory


@pytest.mark.requirement("T12", "S4-PK8", "S4-DD6", "X31")
def test_a_childs_answer_is_there_and_its_messages_never(home: str) -> None:
    session = opened(home)
    session.put_child("rev-123", handoff="Chart it.", result="It is charted.", refs=[Ref("r1", "a.md", "file", "map")])
    folder = Path(session.history.layout.derived("child")) / "rev-123"
    for name in ("messages.jsonl", "events.jsonl", "notes.md"):
        (folder / name).write_text('{"role":"user","content":"inner thoughts"}\n')
    (folder / "artifact").mkdir()
    (folder / "artifact" / "chart.svg").write_text("inner thoughts")
    turn = session.prepare()
    found = {one.source: one for one in turn.items}
    assert found["context/child/rev-123/result.md"].kind == "child_result"
    assert prefix(turn)["child_result:rev-123"] == "It is charted."
    assert prefix(turn)["child_refs:rev-123"].split("\n") == [
        "- r1 file a.md: map",
        "- artifact context/child/rev-123/artifact/chart.svg",
    ]
    assert "inner thoughts" not in turn.pack_md + sent(turn)
    assert not any("messages.jsonl" in one.source and "child" in one.source for one in turn.items)


@pytest.mark.requirement("S4-DD6")
def test_two_children_with_the_same_result_are_both_named(home: str) -> None:
    session = opened(home)
    for name in ("first", "second"):
        session.put_child(name, handoff="Look.", result="Nothing is wrong.")
    said = sent(session.prepare())
    assert "result of child first" in said
    assert "result of child second" in said


def test_a_child_that_has_not_answered_is_missed(home: str) -> None:
    session = opened(home)
    session.put_child("rev-1", handoff="Chart the reef.")
    missing = lost(session.prepare(), "child:rev-1")
    assert missing.requested == "context/child/rev-1/result.md"
    assert missing.severity == "medium"
    assert "Chart the reef." not in missing.question  # who may know of the child need not know its task
    session.put_child("rev-1", result="Done.")
    assert session.prepare().missing == ()


def test_memory_gives_its_document_and_what_fits_the_question(home: str) -> None:
    session = stage(home)
    session.append("user", "Who owns the boat?")
    memory = FakeMemory("Anna owns the boat.", [Remembered("e1", "Bought in May.", 0.7, "2026-05-01")])
    session.memory = memory
    turn = session.prepare()
    assert memory.queries == ["Who owns the boat?"]
    kinds = {one.item_ref: (one.kind, one.context_kind, one.source) for one in turn.items}
    assert kinds["memory"] == ("memory_document", "durable_memory", "memory:document")
    assert kinds["memory:e1"] == ("memory_entries", "retrieval_result", "memory:e1")
    assert 'name="memory 2026-05-01"' in sent(turn).replace("\\", "")


@pytest.mark.parametrize("error", [RuntimeError("no route to host"), OSError(5, "io"), ValueError()])
def test_a_memory_that_fails_is_missed_and_the_turn_goes_on(home: str, error: Exception) -> None:
    session = opened(home)
    session.memory = FakeMemory(error=error)
    turn = session.prepare()
    assert {one.severity for one in turn.missing} == {"medium"}
    assert [one.requested for one in turn.missing] == ["memory:document"] * len(turn.missing)
    assert session.replay(turn.event_id or "").missing == turn.missing


def test_a_memory_without_a_document_is_no_item(home: str) -> None:
    session = opened(home)
    session.memory = FakeMemory()
    assert prefix(session.prepare()) == {}


def test_targets_outside_are_not_given_memory(home: str) -> None:
    session = opened(home)
    memory = FakeMemory("Anna owns the boat.", [Remembered("e1", "Bought in May.")])
    session.memory = memory
    turn = session.prepare(target="user", items=[item(visibility=["user"])])
    assert memory.queries == []
    assert "Anna" not in turn.pack_md


# Calls, questions, time


@pytest.mark.requirement("S3-L2", "S3-O12")
def test_a_call_without_a_result_is_missed(home: str) -> None:
    session = opened(home)
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "look"}, {"id": "c2", "name": "look"}])
    session.append("tool", "seen", tool_call_id="c1")
    turn = session.prepare()
    missing = lost(turn, "tool:c2")
    assert (missing.severity, missing.requested) == ("high", "tool:c2")
    assert missing.needed_for
    assert {reasons(turn)[name] for name in ("messages:2", "messages:3")} == {"custom"}
    session.append("tool", "seen too", tool_call_id="c2")
    assert session.prepare().missing == ()


@pytest.mark.requirement("S3-O12")
def test_an_open_question_is_missed_until_it_is_resolved(home: str) -> None:
    session = opened(home)
    first = session.add_question("Who pays?", severity="blocking", requested_from="user:anna")
    second = session.add_question("When?")
    assert session.add_question("Who pays?", severity="blocking", requested_from="user:anna") == first
    turn = session.prepare()
    assert [(one.id, one.severity, one.requested) for one in turn.missing] == [
        (first, "blocking", "user:anna"),
        (second, "medium", None),
    ]
    states = {one.missing_id: one.status for one in turn.envelope.missing_contexts}
    assert states == {first: "requested", second: "open"}
    session.resolve_question(first, answer="Anna.")
    assert [one.id for one in session.prepare().missing] == [second]
    with pytest.raises(NotFound, match="no open question"):
        session.resolve_question(first)


@pytest.mark.parametrize("question", ["", "  ", None, 7])
def test_a_question_has_words(home: str, question: Any) -> None:
    session = opened(home)
    with pytest.raises(BadInput, match="question is empty"):
        session.add_question(question)
    assert len(session.events()) == 0


@pytest.mark.requirement("S3-O6")
def test_a_deadline_that_has_passed_is_recorded_and_replayed(home: str) -> None:
    clock = Clock()
    session = stage(home, clock=lambda: clock.now)
    session.memory = FakeMemory("x", [Remembered("e1", "Bought in May.")])
    converse(session, 12)
    session.append("user", "What of the glacier 1?")
    ticking = iter(range(1000))
    session.turns.inputs.timer = lambda: 10.0 * next(ticking)
    turn = session.prepare(budget={"tokens": 900, "ms": 5000})
    assert {one.id: one.severity for one in turn.missing} == {"excerpts": "info", "memory:answer": "info"}
    assert lost(turn, "excerpts").requested.startswith("messages:1-")
    assert not excerpts_in(turn)
    session.turns.inputs.timer = clock
    again = session.replay(turn.event_id or "")
    assert again.missing == turn.missing
    assert again.messages() == turn.messages()
    in_time = session.prepare(budget={"tokens": 900, "ms": 5000})
    assert in_time.envelope.budgets[0].max_ms == 5000
    assert in_time.envelope.budgets[0].actual_ms is not None
    assert in_time.missing == ()
    assert in_time.new_epoch == "memory_bound", "the document comes when the memory answers"
    assert excerpts_in(in_time), "what there was no time for is searched by the next turn"
