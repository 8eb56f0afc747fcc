"""Exports: one document for one target, for any of six scopes, with what that target may see and nothing else."""

from typing import Any

import msgspec
import pytest
from turn.scenes import SECRET, converse, item, logs, stage, turn_events

from daypack.errors import BadInput, NoUserMessage, SourceMissing
from daypack.session import Session
from daypack.turn.evidence.export import SCOPES, encode, export
from daypack.turn.survey.imported_envelopes import read_envelope
from daypack.types.context import ContextEnvelope
from daypack.types.kinds import TARGETS


def furnished(home: str) -> Session:
    session = stage(home)
    session.pin("system", "You are a pilot.")
    converse(session, 2)
    session.append("user", "Look twice.")
    session.append(
        "assistant",
        "I look.",
        tool_calls=[{"id": "c1", "name": "look", "arguments": '{"at": 1}'}, {"id": "c2", "name": "look"}],
    )
    session.append("tool", "Ice.", tool_call_id="c1")
    session.append("tool", "Snow.", tool_call_id="c2")
    session.append("assistant", "Cold.")
    return session


def shown(envelope: ContextEnvelope) -> list[str]:
    return list(envelope.item_refs)


def left(envelope: ContextEnvelope) -> dict[str, str]:
    return {one.item_ref: one.reason for one in envelope.selections[0].omitted_item_refs}


@pytest.mark.requirement("S3-O1", "X43")
@pytest.mark.parametrize("scope", SCOPES)
def test_every_scope_can_be_exported_and_read_and_changes_no_log(home: str, scope: str) -> None:
    session = furnished(home)
    before = logs(session)
    envelope = export(session.turns, scope, call="c1" if scope == "tool_invocation" else None)
    assert envelope.scope == scope
    assert envelope.selections[0].target == SCOPES[scope]
    checked = read_envelope(encode(envelope))
    assert checked.warnings == ()
    assert checked.verification.verified == len(checked.verification.comparisons) > 2 * len(checked.items) > 0
    assert envelope.surfaces[0].surface_kind != "custom"
    assert logs(session) == before
    assert envelope.events[-1].event_type == "context.exported"


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_gets_an_export_of_its_own(home: str, target: str) -> None:
    session = furnished(home)
    envelope = export(session.turns, "session", target=target)
    said = encode(envelope).decode()
    assert all(target in one.visibility for one in envelope.surfaces[0].items)
    assert ("You are a pilot." in said) == (target in ("model", "reviewer", "evidence_export"))
    assert ("Look twice." in said) == (target not in ("tool", "runtime"))


def test_a_session_is_exported_whole_whatever_the_budget_is(home: str) -> None:
    session = furnished(home)
    session.set_budget(400)
    converse(session, 20)
    envelope = export(session.turns, "session")
    assert [name for name in shown(envelope) if name.startswith("messages:")] == [f"messages:{n}" for n in range(1, 50)]
    assert "budget_limit" in left(export(session.turns, "turn")).values()


def test_a_task_begins_with_the_newest_question(home: str) -> None:
    envelope = export(furnished(home).turns, "task")
    assert [name for name in shown(envelope) if name.startswith("messages:")] == [f"messages:{n}" for n in range(5, 10)]
    assert left(envelope) == {"messages:1-4": "custom"}


def test_a_tool_call_is_exported_with_its_batch_and_what_lies_between_is_named(home: str) -> None:
    session = furnished(home)
    envelope = export(session.turns, "tool_invocation", call="c2")
    assert shown(envelope) == ["messages:6", "messages:8"]
    assert left(envelope) == {"messages:1-5": "custom", "messages:7": "custom", "messages:9": "custom"}
    assert "Ice." not in encode(envelope).decode()
    [budget] = envelope.budgets
    assert 0 < (budget.actual_tokens or 0) < 80
    assert envelope.assemblies[0].hash == dict(_renderings(envelope))["assembly"]


def _renderings(envelope: ContextEnvelope) -> list[tuple[str, str]]:
    found: list[Any] = list(envelope.evidence_refs)
    return [(one["rendering"], one["digest"]) for one in found]


@pytest.mark.parametrize("call", [None, "c9", ""])
def test_a_call_that_is_not_there_cannot_be_exported(home: str, call: str | None) -> None:
    with pytest.raises(SourceMissing, match="call") as caught:
        export(furnished(home).turns, "tool_invocation", call=call)
    assert "c1, c2" in caught.value.hint


def test_a_recorded_turn_is_exported_as_it_was(home: str) -> None:
    session = furnished(home)
    session.append("user", "And now?")
    turn = session.prepare(items=[item(content="Wind.", visibility=["model", "evidence_export"])])
    session.accept("Later.")
    session.pin("system", "You are a captain.")
    same = export(session.turns, "turn", event=turn.event_id, target="model")
    assert msgspec.json.encode(same.surfaces) == msgspec.json.encode(turn.envelope.surfaces)
    evidence = export(session.turns, "turn", event=turn.event_id)
    assert "Wind." in encode(evidence).decode()
    assert "You are a pilot." in encode(evidence).decode()
    assert "captain" not in encode(evidence).decode()


def test_what_only_the_model_saw_is_not_in_the_evidence_of_its_turn(home: str) -> None:
    session = furnished(home)
    session.append("user", "And now?")
    turn = session.prepare(items=[item(content="Between us.", item_id="x", visibility=["model"])])
    envelope = export(session.turns, "turn", event=turn.event_id)
    assert "Between us." not in encode(envelope).decode()
    assert left(envelope)["item:x"] == "not_visible_to_target"
    assert "item:x" not in shown(envelope)


def test_what_cannot_be_exported_is_refused(home: str) -> None:
    session = furnished(home)
    with pytest.raises(BadInput, match="is not a scope"):
        export(session.turns, "galaxy")
    with pytest.raises(BadInput, match="is not a target"):
        export(session.turns, "session", target="everybody")
    with pytest.raises(SourceMissing):
        export(session.turns, "turn", event="ev-99")
    with pytest.raises(NoUserMessage):
        export(stage(home, "empty").turns, "turn", target="model")


def test_an_empty_session_has_an_empty_export(home: str) -> None:
    envelope = export(stage(home).turns, "session", target="user")
    assert shown(envelope) == []
    assert read_envelope(encode(envelope)).warnings == ()


def test_an_export_after_turns_of_its_target_says_the_same(home: str) -> None:
    session = furnished(home)
    before = encode(export(session.turns, "review"))
    session.prepare(target="reviewer")
    assert len(turn_events(session)) == 1
    later = export(session.turns, "review")
    assert [one.content for one in later.surfaces[0].items] == [one.content for one in read_envelope(before).items]


@pytest.mark.requirement("G18")
def test_secrets_are_not_exported(home: str) -> None:
    session = furnished(home)
    session.append("user", f"The key is {SECRET}.")
    session.append("assistant", "", tool_calls=[{"id": "c3", "name": "login", "arguments": f'{{"token": "{SECRET}"}}'}])
    session.append("tool", f"logged in with {SECRET}", tool_call_id="c3")
    for scope in SCOPES:
        assert SECRET not in encode(export(session.turns, scope, call="c3")).decode()
