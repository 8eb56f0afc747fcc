"""Envelopes made elsewhere: read, checked against their digests, and kept so that turns can use their items."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BadInput, DaypackError
from daypack.files import atomic, blobs
from daypack.history.session import History
from daypack.turn.items import Item, Missing, Omission, lowest
from daypack.turn.pack.assemble import digest_text
from daypack.types.context import ContextEnvelope, ContextItem
from daypack.types.digest import digest_of, file_name_of
from daypack.types.kinds import Authority, Target, is_known

if TYPE_CHECKING:
    from daypack.turn.survey.sources import Found

_PRIORITY = 0.35


class Checked(Struct, frozen=True):
    """An envelope and what is odd about it."""

    envelope: ContextEnvelope
    items: tuple[ContextItem, ...]
    verified: int  # items whose digest is that of their words
    warnings: tuple[str, ...]


def read_envelope(data: bytes | str, place: str = "envelope") -> Checked:
    """Read an envelope document; one that does not have the model's shape is refused."""
    try:
        envelope = msgspec.json.decode(data, type=ContextEnvelope)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        hint = "it must be one JSON object as schemas/context_envelope.json describes it"
        raise BadInput(str(error), operation="read envelope", place=place, hint=hint) from error
    items = tuple(item for surface in envelope.surfaces for item in surface.items)
    warnings: list[str] = []
    verified = 0
    for item in items:
        if item.digest and isinstance(item.content, str):
            try:
                same = digest_of(item.digest) == digest_text(item.content)
            except DaypackError:
                same = False
            verified += same
            if not same:
                warnings.append(f"{item.item_id}: its words do not match its digest")
    warnings += _unknown(envelope, items)
    if missing := set(envelope.item_refs) - {item.item_id for item in items}:
        warnings.append(f"{len(missing)} items are named and not in it: {', '.join(sorted(missing)[:5])}")
    return Checked(envelope, items, verified, tuple(warnings))


def _unknown(envelope: ContextEnvelope, items: Sequence[ContextItem]) -> Iterator[str]:
    stated = [("scope", envelope.scope), ("lifecycle", envelope.lifecycle)]
    stated += [("content_mode", item.content_mode) for item in items]
    for vocabulary, value in dict.fromkeys(stated):
        if not is_known(vocabulary, value):
            yield f"{vocabulary} {value!r} is not one that daypack knows"


def keep_envelope(history: History, data: bytes, checked: Checked) -> dict[str, Any]:
    """Keep the document in the session; the answer belongs into an event of type `context.imported`."""
    bad = [line for line in checked.warnings if "do not match" in line]
    if bad:
        hint = "ask its maker for the document again; nothing was stored"
        raise BadInput("; ".join(bad[:3]), operation="import envelope", place=checked.envelope.context_id, hint=hint)
    own_items(checked)  # what cannot be used later is refused now
    atomic.make_folders(history.layout.blob)
    digest = digest_of(blobs.put(history.layout.blob, data))
    return {"context_id": checked.envelope.context_id, "items": len(checked.items), "digest": digest}


def imported_items(history: History, digests: Sequence[str]) -> "Iterator[Found]":
    """Return the items of envelopes that were imported; whoever made them speaks as an agent at most."""
    found: dict[str, Item] = {}
    for digest in digests:
        try:
            data = blobs.get(history.layout.blob, file_name_of(digest))
            items = own_items(read_envelope(data, digest))
        except DaypackError as error:
            question = f"What did the imported envelope {digest} say? {error.problem}."
            yield Missing(id=f"import:{digest[7:15]}", question=question, severity="medium", requested=digest)
        else:
            found |= {item.id: item for item in items}  # of a document that came again, the newest
    yield from reversed(found.values())  # what was said last counts first


def within_share(items: Sequence[Item], target: Target, most_tokens: int) -> tuple[list[Item], list[Omission]]:
    """Keep as many of the newest as a share of the window takes; the rest of each document is one record."""
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
        Omission(item=f"import:{document}", reason="budget_limit", note=f"{count} of its items")
        for document, count in counts.items()
    ]


def own_items(checked: Checked) -> tuple[Item, ...]:
    """Return the items of a document as items of ours; one that stands on several surfaces comes once."""
    from daypack.turn.survey.caller_items import read_items  # noqa: PLC0415 — both make items; this one rarely

    # Another session's clock tells this one nothing.
    once = {item.item_id: item for item in checked.items if item.context_kind != "runtime_state"}
    maker = checked.envelope.producer if isinstance(checked.envelope.producer, str) else "elsewhere"
    found: list[Item] = []
    for item in read_items(once.values(), None):
        name = f"import:{checked.envelope.context_id}:{item.id.removeprefix('item:')}"
        title = f"imported from {maker}: {item.title}, {item.id.removeprefix('item:')}"
        authority: Authority = lowest(("agent", item.authority))
        source = f"import:{digest_text(name)[7:19]}"
        found.append(
            replace(
                item,
                id=name,
                title=title,
                source=source,
                authority=authority,
                placement="volatile",
                kind="custom",
                priority=_PRIORITY,
            )
        )
    return tuple(found)
