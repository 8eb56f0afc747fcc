"""Items by reference: what is known about content that stays where it is. Nothing outside the session is opened."""

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from daypack.errors import DaypackError
from daypack.turn.items import Access, Missing, Reference
from daypack.turn.pack.reference import address_of
from daypack.turn.pack.select import objection
from daypack.turn.surface import Surface
from daypack.types import source as grammar
from daypack.types.context import ContextItem, ContextSourceRef
from daypack.types.digest import digest_of, digest_text, file_name_of
from daypack.types.source import Source, Tail, UserLatest

Recall = Callable[[str], tuple[str, str]]  # from a name to its source reference and its text

REFERENCE_MODES = frozenset({"ref", "resource_link", "artifact_ref", "tool_result_ref"})
_SIZES = ("byte_size", "size", "bytes")
_MIME_TYPES = ("mime_type", "mimeType", "media_type")
_DIGESTS = ("digest", "sha256", "hash")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://")
_PATH = re.compile(r"/|~|\.{1,2}/|[A-Za-z]:[\\/]|file:|[^:?#]*\.\w{1,8}\Z")
_OURS = ("sha256-", "msg-", "ev-", "child:")  # ids that recall knows and that may be another system's as well
_ELSEWHERE = "it is in the session that the document comes from"


def is_reference(value: ContextItem, *, local: bool) -> bool:
    """Return True if an item is passed by reference; `local`: references of our grammar are to this session.

    Content inline that is only a reference of our own grammar is not: it is expanded.
    """
    if not value.content_ref:
        return False
    if value.content_mode in REFERENCE_MODES:
        return True
    return value.content is None and not (local and own_source(value.content_ref))


def own_source(ref: object) -> Source | None:
    """Return a reference of our own grammar that names its kind; 7 and 1-3 are ids of other systems as well."""
    return grammar.own_source(ref) if isinstance(ref, str) and ":" in ref else None


def read_reference(value: ContextItem, recall: Recall | None) -> Reference:
    """Return what is known about the content of an item; `recall` looks up what is in this session."""
    assert value.content_ref is not None
    ref = value.content_ref
    fields = ref if isinstance(ref, dict) else {}
    address = address_of(ref)
    reference = Reference(
        ref=ref,
        mode="ref" if value.content_mode == "inline" else value.content_mode,  # modes of other runtimes stay
        access="file" if "path" in fields and fields["path"] == address else _access(address),
        size=value.byte_size if value.byte_size is not None else _number(fields),
        digest=value.digest or _text(fields, _DIGESTS) or _source_digest(value, address) or _own_digest(address),
        mime_type=value.mime_type or _text(fields, _MIME_TYPES),
    )
    source = own_source(address)
    if source is None and not address.startswith((*_OURS, "sha256:")):
        return reference
    if recall is None:
        return replace(reference, problem=_ELSEWHERE) if source else reference
    return _recalled(reference, address, source, recall)


def missing_references(surface: Surface) -> Iterator[Missing]:
    """Return a record of every reference that the target may see and that was not found."""
    for item in (*surface.prefix, *surface.volatile):
        if item.reference and item.reference.problem and not objection(item, surface)[0]:
            ref = address_of(item.reference.ref)
            question = f"What is {item.title}? {ref} was not found: {item.reference.problem}."
            yield Missing(id=f"ref:{item.id}", question=question, needed_for=item.id, requested=ref)


def _recalled(reference: Reference, address: str, source: Source | None, recall: Recall) -> Reference:
    """Return a reference with the size and digest of what recall returns for it."""
    name = address
    if source is None and address.startswith("sha256:"):
        try:
            name = file_name_of(address)  # an id is spelled like a file name
        except DaypackError:
            return reference
    try:
        settled, text = recall(name)
    except DaypackError as error:
        problem = error.problem.removeprefix(f"{source}: ")  # the line begins with the reference
        return replace(reference, access="recall", problem=problem) if source else reference
    if isinstance(source, Tail | UserLatest):
        name = settled  # a reference whose meaning does not change with the next message
    return Reference(
        ref=name if isinstance(reference.ref, str) else reference.ref,
        mode=reference.mode,
        access="recall",
        size=len(text.encode("utf-8", "replace")),
        digest=digest_text(text),
        mime_type=reference.mime_type,
    )


def _access(address: str) -> Access:
    if _PATH.match(address):
        return "file"
    if match := _URL.match(address):
        return "url" if match["scheme"].lower() in ("http", "https", "ftp", "ws", "wss") else "owner"
    return "owner"


def _source_digest(value: ContextItem, address: str) -> str:
    """Return the digest that a source of the same address states."""
    sources = (source for source in value.source_refs if isinstance(source, ContextSourceRef))
    return next((source.digest for source in sources if source.digest and source.uri == address), "")


def _own_digest(address: str) -> str:
    """Return the digest that an address is."""
    try:
        return digest_of(address)
    except DaypackError:
        return ""


def _number(fields: dict[str, object]) -> int | None:
    found = (fields.get(name) for name in _SIZES)
    return next((size for size in found if isinstance(size, int) and not isinstance(size, bool) and size >= 0), None)


def _text(fields: dict[str, object], names: Iterable[str]) -> str:
    found = (fields.get(name) for name in names)
    return next((text for text in found if isinstance(text, str)), "")
