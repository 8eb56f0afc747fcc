"""When a session is compacted, what the next turn makes of it, and that compacting never blocks, loops or forgets."""

from pathlib import Path

import msgspec
import pytest
from turn.compacting import (
    BUDGET,
    check_files,
    derived,
    document_of,
    fill,
    most_tokens,
    opened_tokens,
    scene,
    step,
    tree,
)
from turn.scenes import in_tail, logs, stage, turn_events
from turn.windows import check_left, check_window

from daypack.derived.records import COMPACTED
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS, parse, problems
from daypack.session import Session
from daypack.turn.budget import Limits
from daypack.types.records import Decision, Fact, Ref


def replay_everything(session: Session) -> None:
    for event in turn_events(session):
        session.replay(event.id)


# The hard threshold


@pytest.mark.requirement("G11", "S4-CP1", "S4-SR3", "S4-SW1", "X17", "S1-I2.3", "S1-L3.2")
def test_a_full_window_is_compacted_at_once_and_the_same_turn_stands_on_it(home: str) -> None:
    session = stage(home)
    raw: bytes = b""
    turn = None
    for number in range(40):
        step(session, number)
        session.append("user", "What is next?")
        raw = logs(session)[0]
        turn = session.prepare(budget=BUDGET)
        assert logs(session)[0] == raw  # whatever a turn does, no line of history changes
        if session.compactions:
            break
    assert turn is not None
    [done] = session.compactions
    events = list(session.events())
    assert [event.type for event in events[-2:]] == [COMPACTED, "context.turn"]
    assert (done.model, done.trigger, done.method) == ("none", "token_pressure", "extractive_summary")
    assert turn.new_epoch == "overflow"
    assert turn.parts.epoch.start == done.through + 1
    [shown] = [item.text for item in turn.parts.epoch.prefix if item.kind == "context_doc"]
    assert shown == document_of(session).strip()
    assert shown in turn.messages()[0]["content"]
    [left] = [one for one in turn.omitted if one.reason == "superseded_by_summary"]
    assert left.item == f"messages:1-{done.through}"
    assert left.note == f"CONTEXT.md ({done.id})"
    assert "its lamp should burn 3 hours" in session.recall(left.swap or "")
    [told] = turn.envelope.compactions
    assert (told.compaction_id, told.replacement_policy) == (done.id, "window_only")
    [summary] = turn.envelope.summaries
    assert summary.source_item_refs == (f"messages:1-{done.through}",)
    check_window(turn, Limits(BUDGET), session.tail(1)[0])
    check_left(turn)
    check_files(session)


@pytest.mark.requirement("S4-CP2", "S4-CP3", "S4-CP4", "S4-CP5", "S4-CP6", "S1-L2", "X13", "S1-C5")
def test_a_compaction_writes_its_files_by_type_and_context_md_is_their_rendering(home: str) -> None:
    session = stage(home)
    said = [
        ("user", "Please move the nightly export to object storage."),
        ("assistant", "We decided to keep boto3 because the old client still works."),
        ("assistant", "The bucket is named exports-eu and its retention is 35 days."),
        ("user", "TODO: add an alert for late exports to jobs/alerts.py."),
        ("assistant", "Understood."),
    ]
    for role, text in said:
        session.append(role, text)
    session.append("assistant", "", tool_calls=[{"id": "x", "name": "bash", "arguments": '{"command": "pytest"}'}])
    session.append("tool", "Exit code 1\nE   TimeoutError: upload took 30 seconds", tool_call_id="x")
    for number in range(4):
        session.append("user", f"Go on, {number}.")
        session.append("assistant", "Working on it. " * 40)
    session.append("user", "Now?")
    assert session.compact(keep_tokens=60).changed
    doc = parse(document_of(session))
    facts = [msgspec.json.decode(line, type=Fact) for line in derived(session, "facts").splitlines()]
    decisions = [msgspec.json.decode(line, type=Decision) for line in derived(session, "decisions").splitlines()]
    assert derived(session, "summary").decode() == f"{doc.task}\n"
    assert doc.facts == tuple(one.text for one in facts)
    assert doc.decisions == tuple(one.decision for one in decisions)
    assert any("exports-eu" in one.text and "35 days" in one.text for one in facts)
    assert any("keep boto3" in one.decision for one in decisions)
    todos = derived(session, "todo").decode().splitlines()
    assert len(todos) == len(doc.pending) > 0
    assert all(line.startswith("- [ ] ") and text in line for line, text in zip(todos, doc.pending, strict=True))
    assert any("alert for late exports" in text for text in doc.pending)
    assert any("TimeoutError" in text for text in doc.errors)
    turn = session.prepare(budget=BUDGET)
    shown = {item.kind for item in turn.parts.epoch.prefix}
    assert "context_doc" in shown
    assert not shown & {"summary", "facts", "decisions", "todo", "errors"}  # the rendering or the records, not both


@pytest.mark.requirement("S4-CP7")
def test_refs_point_to_files_outputs_children_and_what_was_swapped(home: str) -> None:
    session = stage(home)
    session.put_child("scout", handoff="Find it.", result="It is in src/lib.py.")
    for number in range(6):
        step(session, number, lines=120)
    session.append("user", "And now?")
    session.compact(keep_tokens=100)
    refs = [msgspec.json.decode(line, type=Ref) for line in derived(session, "refs").splitlines()]
    assert {"file", "tool_output", "swap", "child_result"} <= {one.kind for one in refs}
    assert {f"src/{name}_{at}.py" for at, name in ((0, "harbour"), (4, "lantern"))} <= {one.path for one in refs}
    assert len({one.id for one in refs}) == len(refs)


def test_every_id_that_refs_show_to_a_model_can_be_recalled(home: str) -> None:
    session = stage(home)
    session.put_child("scout", handoff="Find it.", result="It is in src/lib.py.")
    for number in range(6):
        step(session, number, lines=120)
    session.append("user", "And now?")
    session.compact(keep_tokens=100)
    for line in derived(session, "refs").splitlines():
        ref = msgspec.json.decode(line, type=Ref)
        assert session.recall(ref.id).text


def test_the_swap_id_of_an_omission_brings_back_all_that_was_left_out(home: str) -> None:
    session = stage(home)
    turn, _ = fill(session, 3)
    left = [one for one in turn.omitted if one.reason == "superseded_by_summary"]
    backs = [session.recall(one.swap or one.item) for one in left]
    assert any(one.swap for one in left)
    assert [back.source for back in backs] == [one.item for one in left]
    assert "its lamp should burn 3 hours" in backs[0]
    check_left(turn)


def test_a_newest_message_that_is_larger_than_its_share_stays_in_the_window(home: str) -> None:
    session = scene(home)
    session.prepare(budget=BUDGET)
    session.append("user", "Look at this: " + "a long complaint about the lamp. " * 520)
    turn = session.prepare(budget=BUDGET)
    assert turn.new_epoch == "overflow"
    assert in_tail(turn)[-1] == session.tail(1)[0].seq
    assert opened_tokens(turn) > most_tokens(turn)
    check_window(turn, Limits(BUDGET), session.tail(1)[0])


@pytest.mark.requirement("S1-V6")
@pytest.mark.parametrize("tokens", [16_000, 64_000, 1_000_000])
def test_in_common_windows_every_part_fits_whole_behind_a_compaction(home: str, tmp_path: Path, tokens: int) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md"):
        (workspace / name).write_text(f"# {name}\n" + "A rule that is worth its place in the window.\n" * 40)
    session = scene(home, workspace=str(workspace))
    session.pin("system", "You keep the lamps.")
    session.prepare(budget=tokens)
    assert session.compact(keep_tokens=500).changed
    turn = session.prepare(budget=tokens)
    prefix = {item.id: item.text for item in turn.parts.epoch.prefix}
    assert prefix["context_doc"] == document_of(session).strip()
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md"):
        assert (workspace / name).read_text().strip() in turn.system + turn.quoted
    assert not [one for one in turn.omitted if one.reason in ("budget_limit", "too_large")]


# By hand


@pytest.mark.requirement("G11", "S1-V3", "S1-C1", "S1-C2", "S1-C3", "S1-C4", "X34")
def test_compacting_by_hand_leaves_a_clean_template_without_a_model(home: str) -> None:
    session = scene(home)
    done = session.compact(keep_tokens=300)
    text = document_of(session)
    assert done.document == text
    assert problems(text) == []
    lines = text.splitlines()
    assert lines[0] == "# Context"
    headings = [line for line in lines if line.startswith("#")]
    assert headings == ["# Context", "## Task", "## Decisions", "## Facts", "## Pending", "## Errors"]
    doc = parse(text)
    assert len([one for one in lines[lines.index("## Task") + 1 : lines.index("## Decisions")] if one]) == 1
    assert doc.task
    for section in (doc.decisions, doc.facts, doc.pending, doc.errors):
        assert len(section) <= MAX_BULLETS
        assert all(len(one) <= MAX_BULLET_CHARS for one in section)
    assert done.after_tokens < done.before_tokens


@pytest.mark.parametrize("keep", [0, 1, 200, 700])
def test_so_much_of_the_newest_messages_stays_as_was_asked_for(home: str, keep: int) -> None:
    session = scene(home)
    done = session.compact(keep_tokens=keep)
    assert done.changed
    turn = session.prepare(budget=BUDGET)
    assert turn.new_epoch == "first"
    assert in_tail(turn)[-1] == len(session.messages())
    kept = [message for message in turn.parts.messages if message.seq >= done.kept_from]
    assert kept
    newest = session.tail(1)[0]
    scales = session.turns.inputs.meter(None)
    tokens = turn.record.stable.tokens - turn.record.stable.prefix_tokens
    assert tokens <= max(keep, session.turns.inputs.messages(scales).measure(newest).cost.tokens)


def test_a_dry_run_says_the_same_and_writes_nothing_at_all(home: str) -> None:
    session = scene(home)
    session.prepare(budget=BUDGET)
    before = tree(session)
    would = session.compact(keep_tokens=300, dry_run=True)
    assert tree(session) == before
    assert (would.changed, would.id) == (True, None)
    done = session.compact(keep_tokens=300)
    assert done.id
    assert msgspec.structs.replace(done, id=None) == would


def test_a_dry_run_on_a_session_without_any_turn_writes_nothing_either(home: str) -> None:
    session = scene(home, steps=30)
    session.set_budget(BUDGET)
    before = tree(session)
    assert session.compact(dry_run=True).changed
    assert tree(session) == before


@pytest.mark.parametrize("roles", [(), ("user",), ("assistant", "assistant"), ("system", "user")])
def test_where_there_is_nothing_to_compact_that_is_said(home: str, roles: tuple[str, ...]) -> None:
    session = stage(home)
    for role in roles:
        session.append(role, "Hello.")
    before = logs(session)
    done = session.compact()
    assert not done.changed
    assert done.problem
    assert logs(session) == before
    assert not document_of(session)


def test_compacting_again_and_again_comes_to_an_end(home: str) -> None:
    session = scene(home, steps=40)
    session.prepare(budget=BUDGET)
    made = 0
    while session.compact().changed:
        made += 1
        assert made < 12
    before = tree(session)
    for _ in range(3):
        assert not session.compact().changed
        assert not session.compact(keep_tokens=0).changed
    assert {name: data for name, data in tree(session).items() if "search" not in name} == {
        name: data for name, data in before.items() if "search" not in name
    }
    newest = session.tail(1)[0].seq
    turn = session.prepare(budget=BUDGET)
    assert in_tail(turn)[-1] == newest


@pytest.mark.requirement("G11")
def test_a_provider_that_said_the_window_was_exceeded_gets_a_smaller_one_each_time(home: str) -> None:
    session = scene(home, steps=9)
    before = session.prepare(budget=BUDGET)
    done = session.compact_on_overflow()
    assert (done.changed, done.model, done.trigger) == (True, "none", "provider_context_editing")
    after = session.prepare(budget=BUDGET)
    assert after.new_epoch == "compaction"
    assert opened_tokens(after) - after.record.stable.prefix_tokens <= most_tokens(after) / 2
    assert after.stable_tokens < before.stable_tokens
    times = 0
    while session.compact_on_overflow().changed:
        times += 1
        assert times < 10
    assert not session.compact_on_overflow().changed


def test_what_is_too_long_for_a_turn_is_told_and_read_by_the_next_compaction(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.turn.compaction.MAX_INLINE_COMPACTION_BYTES", 3000)
    session = stage(home)
    session.turns.compactions.start = lambda _: None
    fill(session, 1)
    [first] = session.compactions
    [unread] = [one for one in first.losses if one.reason == "unread"]
    assert unread.what == f"messages:1-{first.start - 1}"
    assert first.start > 1
    step(session, 90)
    session.append("user", "Go on.")
    done = session.compact(keep_tokens=200)
    assert done.source.startswith("messages:1-")
    assert not [one for one in done.losses if one.reason == "unread"]
