"""Envelopes of daypack keep every rule: for every scope and target, and whatever happened in the session."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.scenes import SECRET, FakeMemory, converse, item, stage
from turn.survey.test_imported_envelopes import FOREIGN

from daypack.errors import DaypackError
from daypack.session import Session
from daypack.turn.conformance.report import Report, conform
from daypack.turn.conformance.rules.rulebook import RULES
from daypack.turn.evidence.export import SCOPES, encode, export
from daypack.turn.ledger import IMPORTED
from daypack.turn.survey.imported_envelopes import keep_envelope, read_envelope
from daypack.turn.survey.memory import ANSWER, MEMORY
from daypack.types.context import ContextEnvelope
from daypack.types.kinds import TARGETS
from daypack.types.memory import Remembered

TOOL: dict[str, Any] = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


def report(envelope: ContextEnvelope) -> Report:
    return conform(encode(envelope))


def broken(found: Report) -> list[Any]:
    return [verdict for verdict in found.verdicts if verdict.outcome == "failed"]


def eventful(home: str) -> Session:
    """A session in which most things have happened."""
    session = stage(home)
    session.memory = FakeMemory("Anna owns the boat.", [Remembered("e1", "Bought in May.", 0.5)])
    session.pin("system", f"You are a pilot. Use {SECRET}.")
    session.put_child("rev-123", result="The reef is charted.")
    session.add_question("Who pays?", requested_from="user:anna")
    session.resolve_question(session.add_question("Which boat?"), status="expired")
    session.resolve_question(session.add_question("Which reef?"), answer="The northern one.")
    session.resolve_question(session.add_question("Which crew?"), status="declined")
    data = FOREIGN.read_bytes()
    session.append_event(IMPORTED, keep_envelope(session.history, data, read_envelope(data)))
    converse(session, 12)
    session.append("user", f"The key is {SECRET}. What of the glacier 1?")
    session.append("assistant", "", tool_calls=[{"id": "c1", "name": "look", "arguments": f'{{"key": "{SECRET}"}}'}])
    session.append("tool", "Ice. " * 4000, tool_call_id="c1")
    session.append("assistant", "Cold.")
    session.append("user", "And now?")
    return session


def callers_items(target: str) -> list[dict[str, Any]]:
    """Items of a caller: inline, of a foreign kind, by reference, redacted by its owner."""
    chart = item(content=None, content_mode="ref", content_ref="file://chart.pdf", item_id="chart", visibility=[target])
    masked = item(content="The key is gone.", redaction_state="masked", item_id="masked", visibility=[target])
    source = {"source_id": "s", "uri": "orbit://7", "source_kind": "telemetry", "external_mappings": [{"orbit": 7}]}
    return [item(visibility=[target]), item("weather", source_refs=[source]), chart, masked]


def envelopes(session: Session, **options: Any) -> Iterator[tuple[str, ContextEnvelope]]:
    """Every envelope of a session: its turns and exports for every target."""
    for target in TARGETS:
        turn = session.prepare(target=target, items=callers_items(target), **options)
        yield f"turn for {target}", turn.envelope
        for scope in SCOPES:
            try:
                call = "c1" if scope == "tool_invocation" else None
                yield f"{scope} for {target}", export(session.turns, scope, target=target, call=call)
            except DaypackError:  # a target that sees no messages sees no calls
                assert scope == "tool_invocation"


@pytest.mark.requirement("S3-H1", "S3-L1", "S3-O0", "S3-A1", "X18")
@pytest.mark.parametrize("compacted", [False, True])
def test_every_envelope_of_an_eventful_session_conforms(home: str, compacted: bool) -> None:
    session = eventful(home)
    if compacted:
        session.compact()
    used: set[str] = set()
    for name, envelope in envelopes(session, budget=2400):
        found = report(envelope)
        assert broken(found) == [], name
        used |= {verdict.rule for verdict in found.verdicts if verdict.outcome == "passed"}
    # A removed content is never in an export.
    assert used >= {rule.id for rule in RULES} - {"redaction.content", *([] if compacted else ["compaction.source"])}


def test_turns_with_tools_limits_and_recorded_events_conform(home: str) -> None:
    session = eventful(home)
    limits = {"tokens": 1600, "bytes": 50_000, "items": 60, "ms": 1}
    for number in range(3):
        turn = session.prepare(budget=limits, tools=[TOOL])
        assert broken(report(turn.envelope)) == []
        assert broken(report(session.replay(turn.event_id or "").envelope)) == []
        assert broken(report(export(session.turns, "turn", event=turn.event_id))) == []
        session.accept(f"Answer {number}. " + "word " * 150)
        session.append("user", f"Question {number}. " + "word " * 150)


def test_a_turn_whose_memory_stops_answering_conforms(home: str) -> None:
    session = eventful(home)
    session.prepare(budget=4000)
    session.memory = FakeMemory(error=OSError("no route"))
    session.accept("Yes.")
    session.append("user", "And the glacier?")
    turn = session.prepare(budget=4000)
    assert MEMORY in {item.item_id for item in turn.envelope.surfaces[0].items}  # the document of the epoch
    assert ANSWER in {gap.id for gap in turn.missing}
    assert broken(report(turn.envelope)) == []
    assert broken(report(session.replay(turn.event_id or "").envelope)) == []


def test_the_event_of_a_surface_counts_the_items_it_holds(home: str) -> None:
    session = eventful(home)
    for _, envelope in envelopes(session, budget=2400):
        [made] = [event for event in envelope.events if event.event_type == "context.surface.created"]
        assert made.data == {"items": len(envelope.surfaces[0].items)}


def test_an_empty_session_conforms(home: str) -> None:
    session = stage(home)
    for target in ("user", "tool", "evidence_export"):
        assert broken(report(export(session.turns, "session", target=target))) == []


def test_what_is_exported_imported_and_exported_again_conforms(home: str) -> None:
    giver, taker = eventful(home), stage(home, "taker")
    data = encode(export(giver.turns, "handoff"))
    taker.append_event(IMPORTED, keep_envelope(taker.history, data, read_envelope(data)))
    taker.append("user", "What of the glacier?")
    for name, envelope in envelopes(taker, budget=4000):
        assert broken(report(envelope)) == [], name


steps = st.lists(
    st.sampled_from(["user", "assistant", "call", "large", "secret", "question", "pin", "child", "compact", "turn"]),
    min_size=3,
    max_size=14,
)


@pytest.mark.requirement("S3-H1")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(taken=steps, budget=st.integers(900, 6000), target=st.sampled_from(TARGETS), scope=st.sampled_from([*SCOPES]))
def test_envelopes_of_any_session_conform(
    tmp_path_factory: pytest.TempPathFactory, taken: list[str], budget: int, target: str, scope: str
) -> None:
    session = stage(str(tmp_path_factory.mktemp("home")))
    session.append("user", "Where does it begin?")
    for number, step in enumerate(taken):
        take(session, step, number, budget)
    session.append("user", "Where does it end?")
    made: list[ContextEnvelope] = []
    try:
        made.append(session.prepare(target=target, budget=budget).envelope)
        made.append(export(session.turns, scope, target=target, call="c"))
    except DaypackError:
        pass  # no room, or no such call
    for envelope in made:
        found = report(envelope)
        assert broken(found) == []
        assert msgspec.json.decode(encode(envelope), type=ContextEnvelope) == envelope
    session.close()


def take(session: Session, step: str, number: int, budget: int) -> None:
    match step:
        case "user" | "assistant":
            session.append(step, f"Number {number}: " + "ebb and flow " * 30)
        case "call" | "large":
            session.append("assistant", "", tool_calls=[{"id": f"c{number}", "name": "look"}])
            session.append("tool", "Ice. " * (5 if step == "call" else 3000), tool_call_id=f"c{number}")
        case "secret":
            session.append("user", f"The key is {SECRET}.")
        case "question":
            session.add_question(f"Why {number}?")
        case "pin":
            session.pin(f"p{number}", f"Rule {number} with {SECRET}.")
        case "child":
            session.put_child(f"ch-{number}", result="Done.")
        case "compact":
            session.compact()
        case _:
            with suppress(DaypackError):  # no room
                session.prepare(budget=budget)
