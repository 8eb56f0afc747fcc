"""Terms outside the known vocabularies: legal, kept as they are, and worth a warning."""

from collections.abc import Iterator

from daypack.turn.conformance.objects import Json, Object, elements, strings
from daypack.turn.conformance.subject import Subject, text
from daypack.types.kinds import CONTEXT_KINDS, TARGETS, is_known

# The fields of each list that hold a term, and the vocabulary of the term.
_TERMS = {
    "surfaces": {"scope": "scope", "surface_kind": "surface_kind"},
    "items": {"content_mode": "content_mode", "redaction_state": "redaction_state"},
    "budgets": {"overflow_strategy": "overflow_strategy"},
    "assemblies": {"redaction_state": "redaction_state"},
    "injections": {"injection_point": "injection_point"},
    "compactions": {
        "method": "compaction_method",
        "trigger": "compaction_trigger",
        "replacement_policy": "replacement_policy",
    },
    "missing_contexts": {"severity": "severity", "status": "missing_status"},
    "events": {"event_type": "event_type"},
}


def unknown_terms(subject: Subject) -> tuple[str, ...]:
    """Return a warning for each unknown term, with the first place of it."""
    first: dict[tuple[str, str], str] = {}
    for vocabulary, term, path in _terms(subject):
        known = (
            term in CONTEXT_KINDS
            if vocabulary == "context_kind"
            else (term in TARGETS if vocabulary == "target" else is_known(vocabulary, term))
        )
        if term and not known:
            first.setdefault((vocabulary, term), path)
    return tuple(f"{vocabulary} {term!r} is unknown: {path}" for (vocabulary, term), path in first.items())


def _terms(subject: Subject) -> Iterator[tuple[str, str, str]]:
    for field in ("scope", "lifecycle"):
        yield field, text(subject.document, field), f"$.{field}"
    for found in subject.objects:
        yield from _terms_of(found)


def _terms_of(found: Object) -> Iterator[tuple[str, str, str]]:
    for field, vocabulary in _TERMS.get(found.list, {}).items():
        yield vocabulary, text(found.value, field), f"{found.path}.{field}"
    yield from _targets(found.value, found.path)
    if found.list == "items":
        yield "context_kind", text(found.value, "context_kind"), f"{found.path}.context_kind"
    for path, omission in elements(found.value, "omitted_item_refs", found.path):
        yield "omission_reason", text(omission, "reason"), f"{path}.reason"
    for path, block in elements(found.value, "ordered_blocks", found.path):
        yield from _targets(block, path)


def _targets(value: Json, path: str) -> Iterator[tuple[str, str, str]]:
    yield "target", text(value, "target"), f"{path}.target"
    for at, target in enumerate(strings(value, "visibility")):
        yield "target", target, f"{path}.visibility[{at}]"
