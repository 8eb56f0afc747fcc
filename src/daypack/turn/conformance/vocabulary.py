"""Terms, versions and fields outside the known vocabularies: legal, kept as they are, and worth a warning."""

from collections.abc import Iterator

from daypack.turn.conformance.objects import ITEMS, LISTS, Json, Object, elements, strings
from daypack.turn.conformance.subject import Subject, text
from daypack.types.context import OBJECTS, SCHEMA_VERSION
from daypack.types.kinds import CONTEXT_KINDS, TARGETS, is_known
from daypack.types.names import did_you_mean

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


_CLOSED = {"context_kind": CONTEXT_KINDS, "target": TARGETS, "schema_version": (SCHEMA_VERSION,)}
_SIMILAR = 0.8  # ratio of difflib: omitted_items is 0.87 of omitted_item_refs, model_refs 0.74 of tool_refs


def unknown_terms(subject: Subject) -> tuple[str, ...]:
    """Return a warning for each unknown term, with the first place of it."""
    first: dict[tuple[str, str], str] = {}
    for vocabulary, term, path in _terms(subject):
        closed = _CLOSED.get(vocabulary)
        known = is_known(vocabulary, term) if closed is None else term in closed
        if term and not known:
            first.setdefault((vocabulary, term), path)
    unknown = (f"{vocabulary} {term!r} is unknown: {path}" for (vocabulary, term), path in first.items())
    return (*unknown, *_misspelt(subject))


def _terms(subject: Subject) -> Iterator[tuple[str, str, str]]:
    for field in ("scope", "lifecycle"):
        yield field, text(subject.document, field), f"$.{field}"
    for value, path in ((subject.document, "$"), *((found.value, found.path) for found in subject.objects)):
        yield "schema_version", text(value, "schema_version"), f"{path}.schema_version"
    for found in subject.objects:
        yield from _terms_of(found)


def _misspelt(subject: Subject) -> Iterator[str]:
    """Yield a warning for unknown fields that resemble a known field which the object lacks, once for each name."""
    kinds = {ITEMS: "context_item", **{name: kind for name, (kind, _) in LISTS.items()}}
    looked: set[tuple[str, str]] = set()
    objects = (
        ("context_envelope", "$", subject.document),
        *((kinds[o.list], o.path, o.value) for o in subject.objects),
    )
    for kind, path, value in objects:
        known = OBJECTS[kind].__struct_fields__
        for name in value.keys() - set(known):
            if (kind, name) in looked:
                continue
            looked.add((kind, name))
            if hint := did_you_mean(name, (field for field in known if field not in value), similar=_SIMILAR):
                yield f"field {name[:80]!r} of a {kind} is unknown, {hint} {path}"


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
