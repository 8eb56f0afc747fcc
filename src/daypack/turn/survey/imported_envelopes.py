"""Imported envelopes: parsed, checked against their digests, and stored so that turns can use their items."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BadInput, DaypackError
from daypack.history.session import History
from daypack.turn.conformance.digests import Verification
from daypack.turn.conformance.document import read_document
from daypack.turn.conformance.foreign_items import check_duplicates, missing_fields, read_document_items
from daypack.turn.conformance.objects import Json, strings
from daypack.turn.conformance.subject import Subject, text
from daypack.turn.conformance.vocabulary import unknown_terms
from daypack.turn.items import Item, Missing, Omission
from daypack.types.authority import Authority, lowest
from daypack.types.context import ContextItem
from daypack.types.digest import digest_of, digest_text, file_name_of
from daypack.types.kinds import Target

if TYPE_CHECKING:
    from daypack.turn.survey.sources import Found

_PRIORITY = 0.35


class Checked(Struct, frozen=True):
    """A document as it was written, its items, and what is noteworthy about it."""

    subject: Subject
    items: tuple[ContextItem, ...]
    warnings: tuple[str, ...]

    @property
    def document(self) -> Json:
        """The document as plain JSON values."""
        return self.subject.document

    @property
    def verification(self) -> Verification:
        """Its digests, compared."""
        return self.subject.verification

    @property
    def context_id(self) -> str:
        """The id of the envelope."""
        return str(self.document["context_id"])


def read_envelope(data: bytes | str, place: str = "envelope") -> Checked:
    """Parse an envelope document of any runtime and compare its digests; raise BadInput if it is unreadable."""
    document = read_document(data, place)
    subject = Subject(document)
    check_duplicates(subject, place)
    items, warnings = read_document_items(document, place)
    verification = subject.verification
    noted = (*map(str, verification.differences), *verification.unverified, *missing_fields(subject), *warnings)
    referenced = set(strings(document, "item_refs"))
    if elsewhere := sorted(referenced - {item.item_id for item in items}):
        noted += (f"{len(elsewhere)} referenced items are not in the document: {', '.join(elsewhere[:5])}",)
    return Checked(subject, items, (*noted, *unknown_terms(subject)))


def keep_envelope(history: History, data: bytes, checked: Checked) -> dict[str, Any]:
    """Store the document in the session and return the data of its `context.imported` event."""
    if bad := checked.verification.differences:
        hint = "get the document again from its producer; nothing was stored"
        raise BadInput("; ".join(map(str, bad[:3])), operation="import envelope", place=checked.context_id, hint=hint)
    items_of(checked.document, checked.items)  # items that turns could not use are refused now
    digest = digest_of(history.blobs.put(data))
    return {"context_id": checked.context_id, "items": len(checked.items), "digest": digest}


def imported_items(history: History, digests: Sequence[str]) -> "Iterator[Found]":
    """Return the items of imported envelopes. Their authority is at most that of an agent."""
    found: dict[str, tuple[Item, ...]] = {}
    for digest in digests:
        try:
            data = history.blobs.get(file_name_of(digest))
            document = read_document(data, digest)  # its digests were compared when it was imported
            items = items_of(document, read_document_items(document, digest)[0])
        except DaypackError as error:
            question = f"What did the imported envelope {digest} say? {error.problem}."
            yield Missing(id=f"import:{digest[7:15]}", question=question, severity="medium", requested=digest)
        else:
            context_id = str(document["context_id"])
            found.pop(context_id, None)  # a document replaces the former one with its id, and is the newest
            found[context_id] = items
    yield from reversed([item for items in found.values() for item in items])  # the newest first


def within_share(items: Sequence[Item], target: Target, most_tokens: int) -> tuple[list[Item], list[Omission]]:
    """Keep the newest items that fit; the others of each document become one record."""
    kept: list[Item] = []
    counts: dict[str, int] = {}
    tokens = 0
    for item in items:
        tokens += item.tokens if target in item.visibility else 0
        if tokens <= most_tokens or target not in item.visibility:
            kept.append(item)
        else:
            document = item.id.split(":")[1]
            counts[document] = counts.get(document, 0) + 1
    return kept, [
        Omission(item=f"import:{document}", reason="budget_limit", note=f"{count} items")
        for document, count in counts.items()
    ]


def items_of(document: Json, contents: Sequence[ContextItem]) -> tuple[Item, ...]:
    """Return the items of a document; one that is on several surfaces comes once."""
    from daypack.turn.caller.items import read_items  # noqa: PLC0415 — both make items; this one rarely

    # The clock of another session means nothing here.
    once = {item.item_id: item for item in contents if item.context_kind != "runtime_state"}
    maker = text(document, "producer") or "elsewhere"
    found: list[Item] = []
    for item in read_items(once.values(), None):
        name = f"import:{document['context_id']}:{item.id.removeprefix('item:')}"
        title = f"imported from {maker}: {item.title}, {item.id.removeprefix('item:')}"
        authority: Authority = lowest(("agent", item.authority))
        source = f"import:{digest_text(name)[7:19]}"
        origin = {
            "context_id": document["context_id"],
            "item_id": item.id.removeprefix("item:"),
            "producer": document.get("producer"),
            "title": item.title,
        }
        # Of an item that was imported before, the first origin stays.
        metadata = {"imported": origin, **item.stated.get("metadata", {})}
        # The name of the item says where it is from; the line about its content need not say it again.
        reference = replace(item.reference, title=item.title) if item.reference else None
        found.append(
            replace(
                item,
                reference=reference,
                id=name,
                title=title,
                source=source,
                stated=item.stated | {"metadata": metadata},
                authority=authority,
                placement="volatile",
                kind="custom",
                priority=_PRIORITY,
            )
        )
    return tuple(found)
