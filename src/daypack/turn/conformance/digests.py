"""The digests of an envelope document: computed for an export, and compared when one is read.

`digests` maps the id of each item, of each record and of the envelope to the digest of its canonical form. An item's
own `digest` is that of its content.
"""

from collections.abc import Iterator, Set
from typing import NamedTuple, cast

from daypack.errors import BadSource
from daypack.turn.conformance.objects import Json, Object, items, objects_of
from daypack.types.canonical import digest_json
from daypack.types.digest import digest_of, digest_text

# The name of the canonical form, in `digest_form`. Documents without it have digests of a form that nothing states.
RFC_8785 = "rfc8785"
_OURS = ("sha256:", "sha256-")


class Comparison(NamedTuple):
    """A digest of the document beside the one computed here."""

    rule: str  # "digest.content", "digest.record", "digest.envelope", or "digest.complete" for an object that is gone
    object: str  # its list and id: "budgets ctx-1/budget"
    path: str  # where the digest is
    stated: str
    same: bool
    # False if it differs only because something inside it differs.
    own: bool = True

    def __str__(self) -> str:
        return f"{self.object}: {self.problem}"

    @property
    def problem(self) -> str:
        """What is wrong, for a comparison that is not the same."""
        gone = {"digest.content": "content does not match its digest", "digest.complete": "is not in the document"}
        return gone.get(self.rule, "does not match its digest")


class Verification(NamedTuple):
    """Which digests of a document were compared, and what could not be."""

    comparisons: tuple[Comparison, ...]
    unverified: tuple[str, ...]  # warnings: what could not be compared, and why
    stated: int  # digests of the document: its entries, and those of contents in it

    @property
    def verified(self) -> int:
        """How many digests are right; that of an item on two surfaces is one."""
        return len({comparison.path for comparison in self.comparisons if comparison.same})

    @property
    def unverifiable(self) -> int:
        """How many digests could not be compared."""
        return self.stated - len({comparison.path for comparison in self.comparisons})

    @property
    def differences(self) -> tuple[Comparison, ...]:
        """The digests that differ, each for the innermost object that has the change."""
        return tuple(comparison for comparison in self.comparisons if comparison.own and not comparison.same)


def digests_of(document: Json) -> dict[str, str]:
    """Return the digests of a document: of its items, its records and the envelope itself."""
    digests = {found.id: digest_json(found.value) for found in objects_of(document) if found.id}
    context_id = document.get("context_id")
    if isinstance(context_id, str):
        digests[context_id] = digest_envelope({**document, "digests": digests}, context_id)
    return digests


def digest_envelope(document: Json, context_id: str) -> str:
    """Return the digest of the whole document without its own entry in `digests`."""
    entries = {name: digest for name, digest in entries_of(document).items() if name != context_id}
    return digest_json({**document, "digests": entries})


def digest_content(content: object) -> str:
    """Return the digest of an item's content: of the bytes of a text, of the canonical form of anything else."""
    return digest_text(content) if isinstance(content, str) else digest_json(content)


def verify(document: Json) -> Verification:
    """Compare every digest that can be computed from the document alone."""
    objects = objects_of(document)
    unverified = [*_foreign_contents(objects)]
    comparisons = [_compare_content(found) for found in objects if _has_content_digest(found)]
    entries = entries_of(document)
    stated = len(entries) + sum(_states_content_digest(found) for found in objects)
    if not entries or document.get("digest_form") != RFC_8785:
        unverified += _unstated_form(document, entries)
        return Verification(tuple(comparisons), tuple(unverified), stated)
    context_id = str(document.get("context_id"))
    envelope = Object("envelope", "$", context_id, document)
    if without := [found.id or found.path for found in (*objects, envelope) if found.id not in entries]:
        unverified.append(f"{len(without):,} without a digest: {', '.join(without[:5])}")
    changed = {comparison.path.rpartition(".")[0] for comparison in comparisons if not comparison.same}
    computed: dict[str, set[str]] = {}
    for found in objects:
        computed.setdefault(found.id, set()).add(digest_json(found.value))
    for found in objects:
        if found.id in entries and found.id != context_id:
            inside = {found.path, *(item.path for item in items(found))}
            # Of two objects with one id, which is an error of its own, the digest is that of either.
            same = any(is_same(entries[found.id], digest) for digest in computed[found.id])
            comparisons.append(_comparison("digest.record", found, entries, same, own=not changed & inside))
            if not same:
                changed.add(found.path)
    same = is_same(entries.get(context_id), digest_envelope(document, context_id))
    if not same:
        comparisons += _gone(entries, {context_id, *computed})
    if context_id in entries:
        comparisons.append(_comparison("digest.envelope", envelope, entries, same, own=not changed))
    return Verification(tuple(comparisons), tuple(unverified), stated)


def _gone(entries: Json, ids: Set[str]) -> Iterator[Comparison]:
    """Yield the digests of objects that were removed or got another id; an intact envelope never had those."""
    for name, stated in entries.items():
        if name not in ids:
            yield Comparison("digest.complete", f"object {name}", f"$.digests[{name!r}]", str(stated), same=False)


def _comparison(rule: str, found: Object, entries: Json, same: bool, *, own: bool) -> Comparison:  # noqa: FBT001
    return Comparison(rule, str(found), f"$.digests[{found.id!r}]", str(entries[found.id]), same, own)


def _compare_content(item: Object) -> Comparison:
    stated: str = item.value["digest"]
    same = is_same(stated, digest_content(item.value["content"]))
    return Comparison("digest.content", str(item), f"{item.path}.digest", stated, same)


def is_same(stated: object, computed: str) -> bool:
    """Return True if a digest of the document, in either spelling, is the computed one."""
    try:
        return isinstance(stated, str) and digest_of(stated) == computed
    except BadSource:
        return False


def entries_of(document: Json) -> Json:
    """Return the digests that a document states, by id."""
    entries: object = document.get("digests")
    return cast("Json", entries) if isinstance(entries, dict) else {}


def _states_content_digest(item: Object) -> bool:
    """Return True for an item with content and a digest of it, by any algorithm."""
    return item.list == "items" and isinstance(item.value.get("digest"), str) and item.value.get("content") is not None


def _has_content_digest(item: Object) -> bool:
    return _states_content_digest(item) and item.value["digest"].startswith(_OURS)


def _foreign_contents(objects: tuple[Object, ...]) -> Iterator[str]:
    for found in objects:
        digest = found.value.get("digest") if found.list == "items" else None
        if isinstance(digest, str) and not digest.startswith(_OURS):
            yield f"{found}: digest {digest[:40]!r} cannot be verified; only sha256: can"


def _unstated_form(document: Json, entries: Json) -> Iterator[str]:
    form = document.get("digest_form")
    stated = f"digest_form is {form!r}" if form else "the document states no digest_form"
    if entries:
        yield f"{len(entries):,} digests of records cannot be verified: {stated}, expected {RFC_8785!r}"
    else:
        yield "the records have no digests: changes of them cannot be detected"
