"""Questions: what is known about them, how they end, and what exports keep."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import SECRET, FakeMemory, stage

import daypack
from daypack.errors import BadInput, NotFound
from daypack.session import Session
from daypack.turn.evidence.export import SCOPES, export
from daypack.types.context import ContextEnvelope, MissingContext
from daypack.types.records import Ref
from daypack.types.source import is_source_ref

DETAILS: dict[str, Any] = {
    "needed_for": "the deployment plan",
    "blocked_actions": ["deploy", "tag the release"],
    "candidate_sources": ["messages:1", "docs/plan.md", "https://example.org/a", {"kind": "wiki", "page": 4}],
    "requested_from": "user:anna",
    "severity": "blocking",
}


def opened(home: str) -> Session:
    session = stage(home)
    session.append("user", "Deploy it.")
    return session


def question_in(envelope: ContextEnvelope, missing_id: str) -> MissingContext:
    (found,) = [missing for missing in envelope.missing_contexts if missing.missing_id == missing_id]
    return found


@pytest.mark.requirement("S3-O12")
def test_an_envelope_has_everything_that_is_known_about_a_question(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?", **DETAILS)
    at = list(session.events())[-1].ts
    turn = session.prepare(budget=8000)
    found = question_in(turn.envelope, asked)
    assert found.needed_for == DETAILS["needed_for"]
    assert found.blocked_actions == tuple(DETAILS["blocked_actions"])
    assert found.candidate_sources == tuple(DETAILS["candidate_sources"])
    assert (found.requested_from, found.severity, found.status) == ("user:anna", "blocking", "requested")
    assert found.created_at == at
    assert question_in(session.replay(turn.event_id or "").envelope, asked) == found


@pytest.mark.requirement("S3-O12")
@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope != "tool_invocation"])
@pytest.mark.parametrize("status", ["resolved", "declined", "expired"])
def test_an_ended_question_stays_in_exports_and_leaves_turns(home: str, status: str, scope: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?", **DETAILS)
    session.resolve_question(asked, answer="Port 8080.", answer_ref="messages:1", status=status)
    event = list(session.events())[-1]
    turn = session.prepare(budget=8000)
    assert turn.missing == ()
    assert turn.envelope.missing_contexts == ()
    assert "Which port?" not in json.dumps(turn.request("openai"))
    found = question_in(export(session.turns, scope), asked)
    assert (found.status, found.resolution_refs) == (status, ("messages:1", f"events:{event.id}"))
    assert found.needed_for == DETAILS["needed_for"]
    assert event.data["text"] == "Port 8080."


def test_asking_again_opens_a_question_again(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?")
    session.resolve_question(asked, status="declined")
    with pytest.raises(NotFound, match=f"no open question '{asked}': it is declined"):
        session.resolve_question(asked)
    assert session.add_question("Which port?", severity="high") == asked
    assert [(gap.id, gap.severity, gap.status) for gap in session.prepare(budget=8000).missing] == [
        (asked, "high", "open")
    ]
    assert question_in(export(session.turns, "session"), asked).status == "open"
    session.resolve_question(asked, status="expired")
    ended = question_in(export(session.turns, "session"), asked)
    assert ended.resolution_refs == (f"events:{session.events()[-1].id}",)


def test_asking_again_keeps_what_is_not_given_again(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?", **DETAILS)
    (before,) = session.turns.questions.open()
    events = len(session.events())
    assert session.add_question("Which port?") == asked
    assert session.add_question("Which port?", needed_for=None, severity=DETAILS["severity"]) == asked
    assert session.turns.questions.open() == (before,)
    assert len(session.events()) == events  # nothing changed, nothing is recorded
    session.add_question("Which port?", severity="low", blocked_actions=[])
    (after,) = session.turns.questions.open()
    assert (after.severity, after.blocked_actions) == ("low", ())
    assert (after.needed_for, after.candidate_sources) == (before.needed_for, before.candidate_sources)
    session.resolve_question(asked, status="declined")
    session.add_question("Which port?")
    (reopened,) = session.turns.questions.open()
    assert (reopened.needed_for, reopened.severity, reopened.resolution_refs) == (before.needed_for, "low", ())


def test_a_question_is_not_resolved_without_an_answer(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?")
    with pytest.raises(BadInput, match="no answer to") as refused:
        session.resolve_question(asked)
    assert "answer_ref" in str(refused.value)
    with pytest.raises(BadInput, match="no answer to"):
        session.resolve_question(asked, status="resolved")
    assert [question.id for question in session.turns.questions.open()] == [asked]


def test_an_open_question_is_evidence_and_not_in_the_request(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?")
    turn = session.prepare(budget=8000)
    assert [gap.id for gap in turn.missing] == [asked]
    assert question_in(turn.envelope, asked).status == "open"
    assert "Which port?" not in json.dumps(turn.request("openai"))


def test_questions_survive_a_new_process_and_a_lost_ledger(home: str) -> None:
    with opened(home) as session:
        open_id = session.add_question("Which port?", **DETAILS)
        ended_id = session.add_question("Which host?")
        session.resolve_question(ended_id, answer_ref={"page": "hosts"})
        before = (session.turns.questions.open(), session.turns.questions.ended())
        ledger = Path(session.layout.derived("ledger"))
    ledger.unlink(missing_ok=True)
    with daypack.open_session("work", home=home) as again:
        assert (again.turns.questions.open(), again.turns.questions.ended()) == before
        assert [question.id for question in again.turns.questions.open()] == [open_id]
        assert again.turns.questions.ended()[0].resolution_refs == ({"page": "hosts"},)


@pytest.mark.parametrize("word", ["Anna", "the docs", "", "memory", "wiki page"])
@pytest.mark.parametrize("place", ["candidate_sources", "requested_from", "answer_ref"])
def test_a_bare_word_is_no_source_ref(home: str, word: str, place: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?")
    before = len(session.events())
    attempts: dict[str, Callable[[], object]] = {
        "answer_ref": lambda: session.resolve_question(asked, answer_ref=word),
        "requested_from": lambda: session.add_question("Who?", requested_from=word),
        "candidate_sources": lambda: session.add_question("Who?", candidate_sources=["messages:1", word]),
    }
    with pytest.raises(BadInput, match="is not a source ref") as caught:
        attempts[place]()
    assert "messages:12-18" in caught.value.hint
    assert caught.value.place.startswith(place)
    assert len(session.events()) == before


@pytest.mark.parametrize(
    "ref",
    [
        *("messages:12", "messages:3-9", "events:ev-9", "tool:call 7", "swap:sha256-1", "user:anna"),
        *("https://example.org/a", "mailto:anna@example.org", "docs/plan.md", "plan.md", "/etc/hosts", "./Makefile"),
    ],
)
def test_what_a_source_ref_looks_like(home: str, ref: str) -> None:
    session = opened(home)
    session.add_question("Who?", candidate_sources=[ref])
    assert session.turns.questions.open()[0].candidate_sources == (ref,)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"severity": "hihg"}, "did you mean high?"),
    ({"severity": "zzz"}, "use one of info, low"),
    ({"blocked_actions": "deploy"}, "blocked_actions=[…]"),
    ({"candidate_sources": {"a": 1}}, "candidate_sources=[…]"),
    ({"blocked_actions": [" "]}, "give it as text"),
    ({"needed_for": 7}, "give it as text"),
    ({"candidate_source": []}, "did you mean candidate_sources?"),
    ({"blocked_actions": ["x"] * 101}, "the most important"),
]
WRONG_ENDS: list[tuple[dict[str, Any], str]] = [
    ({"status": "resovled"}, "did you mean resolved?"),
    ({"status": "open"}, "use one of resolved, declined, expired"),
    ({"answer": " "}, "give it as text"),
    ({"answers": "x"}, "did you mean answer?"),
]


@pytest.mark.parametrize(("details", "said"), WRONG)
def test_wrong_details_are_refused_and_nothing_is_recorded(home: str, details: dict[str, Any], said: str) -> None:
    session = opened(home)
    with pytest.raises(BadInput) as caught:
        session.add_question("Who?", **details)
    assert said in caught.value.hint
    assert list(session.events()) == []


@pytest.mark.parametrize(("answer", "said"), WRONG_ENDS)
def test_a_wrong_answer_is_refused_and_the_question_stays_open(home: str, answer: dict[str, Any], said: str) -> None:
    session = opened(home)
    asked = session.add_question("Who?")
    with pytest.raises(BadInput) as caught:
        session.resolve_question(asked, **answer)
    assert said in caught.value.hint
    assert [question.id for question in session.turns.questions.open()] == [asked]


def test_an_ended_question_is_redacted_in_exports(home: str) -> None:
    session = opened(home)
    asked = session.add_question(
        f"Is {SECRET} right?",
        needed_for=f"use of {SECRET}",
        blocked_actions=[f"send {SECRET}"],
        candidate_sources=[f"https://example.org/{SECRET}", {"token": SECRET, "more": [SECRET, {"x": SECRET}]}],
    )
    assert SECRET not in msgspec.json.encode(session.prepare(budget=8000).envelope).decode()
    session.resolve_question(asked, answer=f"Yes: {SECRET}", answer_ref={"value": SECRET})
    assert SECRET not in msgspec.json.encode(export(session.turns, "session")).decode()


def test_a_long_answer_is_a_blob_and_a_half_written_one_stays_nowhere(home: str) -> None:
    session = opened(home)
    asked = session.add_question("Which port?")
    with pytest.raises(BadInput, match="lone surrogate"):
        session.resolve_question(asked, answer="port \ud800")
    assert [question.id for question in session.turns.questions.open()] == [asked]
    session.resolve_question(asked, answer="Port 8080. " * 1000)
    event = list(session.events())[-1]
    assert "text" not in event.data
    assert session.history.captured(event.data).decode() == "Port 8080. " * 1000


@pytest.mark.requirement("S3-O12")
def test_whatever_daypack_misses_itself_has_source_refs(home: str) -> None:
    session = opened(home)
    refs = [Ref("r1", "Makefile", "file", "is gone"), Ref("r2", "gone/a b.py", "file", "is gone")]
    path = Path(session.layout.derived("refs"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(msgspec.json.encode(ref).decode() + "\n" for ref in refs))
    Path(session.layout.derived("facts")).write_text('{"id":\n')
    session.memory = FakeMemory(error=RuntimeError("offline"))
    session.put_child("rev", handoff="Review it.")
    session.append("assistant", "", tool_calls=[{"id": "call 1", "name": "run"}])
    envelope = session.prepare(budget=8000).envelope
    sources = [ref for missing in envelope.missing_contexts for ref in missing.candidate_sources]
    assert len(sources) >= 5
    assert [ref for ref in sources if not (isinstance(ref, str) and is_source_ref(ref))] == []


@pytest.mark.parametrize("ref", ["user:latest", "messages:tail:1", "tail:1"])
def test_a_ref_keeps_its_meaning_when_more_messages_come(home: str, ref: str) -> None:
    session = stage(home)
    session.append("user", "The northern one.")
    question = session.add_question("Which reef?", candidate_sources=[ref])
    session.resolve_question(question, answer_ref=ref)
    session.append("user", "Never mind.")
    [found] = [
        missing for missing in export(session.turns, "session").missing_contexts if missing.missing_id == question
    ]
    assert (found.candidate_sources, found.resolution_refs) == (("messages:1",), ("messages:1",))


@pytest.mark.parametrize("ref", ["messages:0", "messages:9-2", "messages:x", "swap:"])
def test_a_ref_that_our_grammar_does_not_have_is_no_uri_of_others(home: str, ref: str) -> None:
    with pytest.raises(BadInput, match="not a source ref"):
        stage(home).add_question("Which reef?", candidate_sources=[ref])


@pytest.mark.parametrize("value", ["", 0, [], {}])
def test_an_empty_value_is_no_severity_no_status_and_no_id(home: str, value: Any) -> None:
    session = stage(home)
    with pytest.raises(BadInput, match="severity"):
        session.add_question("Which reef?", severity=value)
    question = session.add_question("Which reef?")
    with pytest.raises(BadInput, match="status"):
        session.resolve_question(question, status=value)
    with pytest.raises(BadInput, match="missing_id"):
        session.resolve_question(value)
    assert [asked.id for asked in session.turns.questions.open()] == [question]
