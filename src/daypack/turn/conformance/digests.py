"""The digests of an envelope document: computed for an export, and compared when one is read.

`digests` maps the id of each item, of each record and of the envelope to the digest of its canonical form. An item's
own `digest` is that of its content.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

from daypack.errors import BadSource
from daypack.turn.conformance.objects import Json, Object, items, objects_of
from daypack.types.canonical import digest_json
from daypack.types.digest import digest_of, digest_text

# The name of the canonical form, in `digest_form`. Documents without it have digests of a form that nothing states.
RFC_8785 = "rfc8785"
_OURS = ("sha256:", "sha256-")


class Difference(NamedTuple):
    """A digest of the document that is not the digest of what it is for."""

    rule: str  # "digest.content", "digest.record" or "digest.envelope"
    object: str  # its list and id: "budgets ctx-1/budget"
    path: str  # where the digest is
    problem: str

    def __str__(self) -> str:
        return f"{self.object}: {self.problem}"


class Verification(NamedTuple):
    """Which digests of a document were compared, and what they show."""

    compared: int  # digests that could be computed here
    differences: tuple[Difference, ...]
    unverified: tuple[str, ...]  # warnings: what could not be compared, and why

    @property
    def verified(self) -> int:
        """How many digests are right; a digest of something that contains a difference is not."""
        return self.compared - len(self.differences)


def digests_of(document: Json) -> dict[str, str]:
    """Return the digests of a document: of its items, its records and the envelope itself."""
    digests = {found.id: digest_json(found.value) for found in objects_of(document) if found.id}
    context_id = document.get("context_id")
    if isinstance(context_id, str):
        digests[context_id] = digest_envelope({**document, "digests": digests}, context_id)
    return digests


def digest_envelope(document: Json, context_id: str) -> str:
    """Return the digest of the whole document without its own entry in `digests`."""
    entries = {name: digest for name, digest in _entries(document).items() if name != context_id}
    return digest_json({**document, "digests": entries})


def digest_content(content: object) -> str:
    """Return the digest of an item's content: of the bytes of a text, of the canonical form of anything else."""
    return digest_text(content) if isinstance(content, str) else digest_json(content)


def verify(document: Json) -> Verification:
    """Compare every digest that can be computed from the document alone.

    A change is reported for the innermost object that has it: that a surface and the envelope differ too follows.
    """
    objects = objects_of(document)
    entries = _entries(document)
    context_id = document.get("context_id")
    contents = [found for found in objects if found.list == "items" and _has_content_digest(found)]
    checks = [*_content_differences(contents)]
    changed = {difference.path.rpartition(".")[0] for difference in checks}
    unverified = [*_foreign_contents(objects)]
    if not entries or document.get("digest_form") != RFC_8785:
        unverified += _unstated_form(document, entries)
        return Verification(len(contents), tuple(checks), tuple(unverified))
    compared = len(contents)
    if without := [found.id or found.path for found in objects if found.id not in entries]:
        unverified.append(f"{len(without):,} objects have no digest: {', '.join(without[:5])}")
    for found in objects:
        if found.id not in entries:
            continue
        compared += 1
        inside = {item.path for item in items(found)} if found.list == "surfaces" else {found.path}
        if not changed & inside and not is_same(entries[found.id], digest_json(found.value)):
            changed.add(found.path)
            checks.append(_differs("digest.record", found, f"$.digests[{found.id!r}]"))
    if isinstance(context_id, str) and context_id in entries:
        compared += 1
        if not checks and not is_same(entries[context_id], digest_envelope(document, context_id)):
            envelope = Object("envelope", "$", context_id, document)
            checks.append(_differs("digest.envelope", envelope, f"$.digests[{context_id!r}]"))
    return Verification(compared, tuple(checks), tuple(unverified))


def is_same(stated: object, computed: str) -> bool:
    """Return True if a digest of the document, in either spelling, is the computed one."""
    try:
        return isinstance(stated, str) and digest_of(stated) == computed
    except BadSource:
        return False


def _entries(document: Json) -> Json:
    entries: object = document.get("digests")
    return cast("Json", entries) if isinstance(entries, dict) else {}


def _differs(rule: str, found: Object, path: str) -> Difference:
    return Difference(rule, str(found), path, "does not match its digest")


def _has_content_digest(item: Object) -> bool:
    digest = item.value.get("digest")
    return isinstance(digest, str) and digest.startswith(_OURS) and item.value.get("content") is not None


def _content_differences(contents: list[Object]) -> Iterator[Difference]:
    for item in contents:
        if not is_same(item.value["digest"], digest_content(item.value["content"])):
            yield Difference("digest.content", str(item), f"{item.path}.digest", "content does not match its digest")


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
