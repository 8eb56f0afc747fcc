"""Missing context: who may know that something is missing, and its texts without secrets."""

from typing import Any, cast

from msgspec.structs import replace

from daypack.text.redact.redact import redact
from daypack.turn.items import SEEN_BY_DEFAULT, Missing
from daypack.turn.survey.visibility import OUTSIDE
from daypack.types.kinds import Target
from daypack.types.shapes import Link


def may_know(missing: Missing, target: Target) -> bool:
    """Return True if a target may learn that something is missing; outside targets learn of questions and children."""
    return target in SEEN_BY_DEFAULT or (target in OUTSIDE and missing.id.startswith(("q-", "child:")))


def redact_missing(missing: Missing) -> Missing:
    """Redact the texts of a question: they quote what they are about."""
    texts = {name: getattr(missing, name) for name in ("id", "question", "needed_for")}
    return replace(
        missing,
        **{name: redact(text).text for name, text in texts.items() if text},
        requested=_redact_ref(missing.requested) if missing.requested else None,
        blocked_actions=tuple(redact(action).text for action in missing.blocked_actions),
        candidate_sources=tuple(map(_redact_ref, missing.candidate_sources)),
        resolution_refs=tuple(map(_redact_ref, missing.resolution_refs)),
    )


def _redact_ref(ref: Link) -> Link:
    if isinstance(ref, str):
        return redact(ref).text
    return {name: _redact_value(value) for name, value in ref.items()}


def _redact_value(value: Any) -> Any:  # noqa: ANN401 — a JSON value
    if isinstance(value, str):
        return redact(value).text
    if isinstance(value, list):
        return [_redact_value(inner) for inner in cast(list[Any], value)]
    if isinstance(value, dict):
        return {name: _redact_value(inner) for name, inner in cast(dict[str, Any], value).items()}
    return value
