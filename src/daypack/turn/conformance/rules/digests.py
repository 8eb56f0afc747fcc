"""Rules about digests: each can be computed from the document alone."""

import re
from collections.abc import Iterator

from daypack.turn.conformance.digests import RFC_8785, entries_of
from daypack.turn.conformance.subject import Finding, Subject, text

_FORM = re.compile(r"sha256:[0-9a-f]{64}")


def form(subject: Subject) -> Iterator[Finding]:
    """Look at the digests of the document, and at those of items by the same algorithm."""
    stated = [(f"$.digests[{name!r}]", digest) for name, digest in entries_of(subject.document).items()]
    stated += [
        (f"{item.path}.digest", digest)
        for item in subject.records("items")
        if (digest := text(item.value, "digest")).startswith("sha256")
    ]
    for path, digest in stated if _is_stated(subject) else ():
        if isinstance(digest, str):
            yield Finding(path, "" if _FORM.fullmatch(digest) else f"{digest[:40]!r} is not sha256: and 64 digits")


def complete(subject: Subject) -> Iterator[Finding]:
    """Look at every object and every digest, if the document states their form."""
    if not _is_stated(subject):
        return
    entries = entries_of(subject.document)
    context_id = text(subject.document, "context_id")
    ids = {context_id, *(found.id for found in subject.objects)}
    for path, name in (("$", context_id), *((found.path, found.id) for found in subject.objects)):
        yield Finding(path, "" if name in entries else "has no digest")
    for name in entries:
        yield Finding(f"$.digests[{name!r}]", "" if name in ids else "is the digest of nothing in the document")


def content(subject: Subject) -> Iterator[Finding]:
    """Look at items with content and a digest of it."""
    yield from _compared(subject, "digest.content")


def record(subject: Subject) -> Iterator[Finding]:
    """Look at items and records; a change of the content alone breaks digest.content."""
    yield from _compared(subject, "digest.record")


def envelope(subject: Subject) -> Iterator[Finding]:
    """Look at the envelope, if nothing inside it differs."""
    yield from _compared(subject, "digest.envelope")


def _compared(subject: Subject, rule: str) -> Iterator[Finding]:
    for comparison in subject.verification.comparisons:
        # What is not written as a digest breaks digest.form.
        if comparison.rule == rule and comparison.own and _FORM.fullmatch(comparison.stated):
            yield Finding(comparison.path, "" if comparison.same else f"{comparison.object} {comparison.problem}")


def _is_stated(subject: Subject) -> bool:
    return subject.document.get("digest_form") == RFC_8785
