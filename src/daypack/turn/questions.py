"""Open questions: events that request missing context, and events that resolve the request."""

from hashlib import sha256

from daypack.errors import BadInput, NotFound
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.ledger import ASKED, RESOLVED, Ledger


def add_question(
    history: History, question: str, *, severity: str = "medium", requested_from: str | None = None
) -> str:
    """Record an open question and return its id."""
    if not isinstance(question, str) or not question.strip():  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
        hint = "give the question as text"
        raise BadInput("the question is empty", operation="add question", place="question", hint=hint)
    missing_id = f"q-{sha256(question.encode('utf-8', 'replace')).hexdigest()[:12]}"
    data = {"missing_id": missing_id, "question": question, "severity": severity, "requested_from": requested_from}
    history.append_event(draft_event(ASKED, {name: value for name, value in data.items() if value}))
    return missing_id


def resolve_question(history: History, ledger: Ledger, missing_id: str) -> None:
    """Record that a question is answered."""
    questions = ledger.read().questions
    if missing_id not in questions:
        hint = f"open questions: {', '.join(questions) or 'none'}"
        place = history.layout.name
        raise NotFound(f"no open question {missing_id!r}", operation="resolve question", place=place, hint=hint)
    history.append_event(draft_event(RESOLVED, {"missing_id": missing_id}))
