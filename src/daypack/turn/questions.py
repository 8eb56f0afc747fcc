"""Questions: events that request missing context, and events that answer, decline or withdraw the request.

An answered question stays on record with its status and where its answer is. Asking it again reopens it; what is not
given again stays as it was.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, TypedDict, Unpack, cast

import msgspec

from daypack.errors import BadInput, DaypackError, NotFound
from daypack.history.draft import draft_event, plain
from daypack.history.resolve import settle
from daypack.turn.items import Missing
from daypack.turn.ledger import ASKED, RESOLVED
from daypack.turn.survey.inputs import TurnInputs
from daypack.turn.survey.missing import may_know, redact_missing
from daypack.types.kinds import SEVERITIES, Target
from daypack.types.names import did_you_mean
from daypack.types.shapes import Link
from daypack.types.source import is_source_ref, own_source

ENDINGS = ("resolved", "declined", "expired")
MAX_LISTED = 100  # blocked actions, or candidate sources
_ADD, _RESOLVE = "add question", "resolve question"
_REFS = (
    "a source ref is messages:12-18, events:ev-9, tool:<call id>, a URI such as https://example.org/a or user:anna,"
    " a path such as docs/plan.md, or an object"
)


class QuestionDetails(TypedDict, total=False):
    """What is known about a question besides its words."""

    needed_for: str | None  # what the answer is for
    blocked_actions: Sequence[str]  # what cannot be done without it
    candidate_sources: Sequence[Link]  # source refs of where it may be
    requested_from: Link | None  # source ref of who or what was asked
    severity: str  # info, low, medium, high or blocking


class Answer(TypedDict, total=False):
    """How a question ended."""

    answer: str | None  # its words, stored with the event
    answer_ref: Link | None  # source ref of where they are
    status: str  # resolved, declined or expired


class Questions:
    """The questions of one session."""

    def __init__(self, inputs: TurnInputs) -> None:
        self._inputs = inputs

    def add(self, question: str, **details: Unpack[QuestionDetails]) -> str:
        """Record an open question and return its id, which is the same for the same words."""
        text = _words(question, "question", _ADD)
        _refuse_unknown(details, QuestionDetails, _ADD)
        missing_id = f"q-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"
        given = self._details(details)
        folded = self._inputs.ledger.read()
        before = folded.questions.get(missing_id) or folded.answered.get(missing_id)
        known = _known(before) if before else {"severity": "medium"}
        data = {name: value for name, value in {**known, **given}.items() if value}
        if missing_id not in folded.questions or data != known:
            self._append(ASKED, {"missing_id": missing_id, "question": text, **data})
        return missing_id

    def _details(self, details: QuestionDetails) -> dict[str, Any]:
        """Return the details that are given, checked; None is not given, an empty list is."""
        given: dict[str, Any] = {name: value for name, value in details.items() if value is not None}
        if "severity" in given:
            _require(given["severity"], SEVERITIES, "severity", _ADD)
        if "needed_for" in given:
            _words(given["needed_for"], "needed_for", _ADD)
        if "requested_from" in given:
            given["requested_from"] = self._ref(given["requested_from"], "requested_from", _ADD)
        for name, check in (("blocked_actions", _words), ("candidate_sources", self._ref)):
            if name in given:
                listed = enumerate(_listed(given[name], name))
                given[name] = [check(value, f"{name}[{at}]", _ADD) for at, value in listed]
        return given

    def resolve(self, missing_id: str, **answer: Unpack[Answer]) -> None:
        """Record how an open question ended."""
        _refuse_unknown(answer, Answer, _RESOLVE)
        status = "resolved" if answer.get("status") is None else answer.get("status")
        words, ref = answer.get("answer"), answer.get("answer_ref")
        _words(missing_id, "missing_id", _RESOLVE)
        _require(status, ENDINGS, "status", _RESOLVE)
        data: dict[str, Any] = {"missing_id": missing_id, "status": status}
        if ref is not None:
            data["resolution_refs"] = [self._ref(ref, "answer_ref", _RESOLVE)]
        text = None if words is None else _words(words, "answer", _RESOLVE)
        folded = self._inputs.ledger.read()
        if missing_id not in folded.questions:
            raise self._not_open(missing_id, folded.questions, folded.answered)
        if status == "resolved" and words is None and ref is None:
            hint = "give answer or answer_ref (--answer, --answer-ref); without one the status is declined or expired"
            raise BadInput(f"no answer to {missing_id!r}", operation=_RESOLVE, place="answer", hint=hint)
        if text is not None:
            data |= self._inputs.history.capture(_encoded(text))
        self._append(RESOLVED, data)

    def open(self) -> tuple[Missing, ...]:
        """Return the open questions, in the order asked."""
        return tuple(self._inputs.ledger.read().questions.values())

    def ended(self) -> tuple[Missing, ...]:
        """Return the questions that were resolved, declined or have expired."""
        return tuple(self._inputs.ledger.read().answered.values())

    def ended_for(self, target: Target) -> tuple[Missing, ...]:
        """Return the ended questions that an export for a target has, redacted."""
        ended = (question for question in self.ended() if may_know(question, target))
        return tuple(redact_missing(question) if self._inputs.redacting else question for question in ended)

    def _ref(self, value: object, place: str, operation: str) -> Link:
        """Return a source ref whose meaning does not change with the next message."""
        ref = _ref(value, place, operation)
        if not isinstance(ref, str) or not (source := own_source(ref)):
            return ref
        try:
            return str(settle(self._inputs.history, source))
        except DaypackError as error:
            raise BadInput(error.problem, operation=operation, place=place, hint=error.hint) from error

    def _append(self, kind: str, data: Mapping[str, Any]) -> None:
        self._inputs.history.append_event(draft_event(kind, data))

    def _not_open(self, missing_id: str, known: Mapping[str, Missing], ended: Mapping[str, Missing]) -> NotFound:
        problem, hint = f"no open question {missing_id!r}", f"open questions: {', '.join(known) or 'none'}"
        if former := ended.get(missing_id):
            problem = f"no open question {missing_id!r}: it is {former.status}"
            hint = "ask it again to open it again"
        return NotFound(problem, operation=_RESOLVE, place=self._inputs.history.layout.name, hint=hint)


def _known(question: Missing) -> dict[str, Any]:
    """Return the details of a question, as an event has them."""
    known = {
        "severity": question.severity,
        "needed_for": question.needed_for,
        "requested_from": question.requested,
        "blocked_actions": list(question.blocked_actions),
        "candidate_sources": list(question.candidate_sources),
    }
    return {name: value for name, value in known.items() if value}


# What is given


def _words(value: object, place: str, operation: str) -> str:
    if not isinstance(value, str) or not value.strip():
        noun = "the question" if place == "question" else place
        hint = "give the question as text" if place == "question" else "give it as text"
        raise BadInput(f"{noun} is empty", operation=operation, place=place, hint=hint)
    return value


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        problem = "has a lone surrogate, which UTF-8 cannot encode"
        hint = "decode the text with errors='replace' first"
        raise BadInput(problem, operation=_RESOLVE, place="answer", hint=hint) from error


def _listed(value: object, place: str) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        given = type(cast(object, value)).__name__
        raise BadInput(f"must be a list, not {given}", operation=_ADD, place=place, hint=f"{place}=[…]")
    listed = cast(Sequence[object], value)
    if len(listed) > MAX_LISTED:
        problem = f"has {len(listed):,} entries, the limit is {MAX_LISTED}"
        raise BadInput(problem, operation=_ADD, place=place, hint="name the most important ones")
    return listed


def _ref(value: object, place: str, operation: str) -> Link:
    if isinstance(value, Mapping) and value:
        return cast(dict[str, Any], plain(cast(object, value), place))
    if isinstance(value, msgspec.Struct):
        return cast(dict[str, Any], msgspec.to_builtins(value))
    if isinstance(value, str) and is_source_ref(value):
        return value
    raise BadInput(f"{value!r} is not a source ref", operation=operation, place=place, hint=_REFS)


def _require(value: object, allowed: Sequence[str], place: str, operation: str) -> None:
    if value not in allowed:
        hint = (isinstance(value, str) and did_you_mean(value, allowed)) or f"use one of {', '.join(allowed)}"
        raise BadInput(f"{value!r} is not a {place}", operation=operation, place=place, hint=hint)


def _refuse_unknown(given: Mapping[str, object], known: type, operation: str) -> None:
    names = tuple(known.__annotations__)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
            raise BadInput(f"no argument {name!r}", operation=operation, place=name, hint=hint)
