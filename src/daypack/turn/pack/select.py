"""Selection: which of the available items may be shown to a target at all, and why the others may not."""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from daypack.turn.items import Item, Omission
from daypack.turn.survey.surface import Surface
from daypack.types.kinds import OmissionReason

_KEPT_FROM = {"secret": frozenset({"tool", "runtime"})}  # sensitivity -> the only targets that may see it
_DOCUMENT = frozenset({"context_doc"})
_RECORDS = frozenset({"summary", "facts", "decisions", "todo", "errors"})


class Selection(Struct, frozen=True, kw_only=True):
    """The items that may be shown, best first, and those that may not."""

    prefix: tuple[Item, ...]
    volatile: tuple[Item, ...]
    notes: tuple[Item, ...]  # what changed since the epoch began; needed only if it goes on
    omitted: tuple[Omission, ...]


def select(surface: Surface) -> Selection:
    """Choose by who may see it, by what is said twice, and by age; the budget comes later."""
    omitted: list[Omission] = list(surface.omitted)
    prefix = _ranked(_allowed(surface.prefix, surface, omitted))
    prefix = _either_document_or_records(prefix, omitted)
    volatile = _ranked(_allowed(surface.volatile, surface, omitted))
    # What may not be shown has been told of under its own id: the note about it is the same thing.
    notes = [item for item in surface.notes if not _objection(item, surface)[0]]
    return Selection(prefix=tuple(prefix), volatile=tuple(volatile), notes=tuple(notes), omitted=tuple(omitted))


def _allowed(items: Iterable[Item], surface: Surface, omitted: list[Omission]) -> list[Item]:
    kept: list[Item] = []
    seen: dict[tuple[str, str], str] = {}
    for item in items:
        reason, note = _objection(item, surface)
        if not reason and item.placement == "prefix" and item.digest:
            first = seen.setdefault((item.digest, item.kind), item.id)
            if first != item.id:
                reason, note = "duplicate", f"said by {first}"
        if reason:
            # Whoever may not see an item learns its id and the reason, not even how large it is.
            tokens = None if reason == "not_visible_to_target" else item.tokens or None
            omitted.append(
                Omission(item=item.id, reason=reason, tokens=tokens, note=note, high_impact=bool(item.problem))
            )
        else:
            kept.append(item)
    return kept


def _objection(item: Item, surface: Surface) -> tuple[OmissionReason | Literal[""], str | None]:
    if surface.target not in item.visibility:
        return "not_visible_to_target", None
    if item.blocked:
        return "policy_blocked", "its owner forbids to show it"
    allowed = _KEPT_FROM.get(item.sensitivity or "")
    if allowed is not None and surface.target not in allowed:
        return "sensitive", f"{item.sensitivity} is not shown to {surface.target}"
    if item.expires and _is_past(item.expires, surface.now):
        return "stale", f"expired at {item.expires}"
    if item.problem:
        return "custom", item.problem
    if item.media:
        return "unsupported_media", "it has no text"
    return "", None


def _is_past(moment: str, now: str) -> bool:
    """Whether a moment is over; one without a zone is in UTC, one that cannot be read never comes."""
    from datetime import UTC, datetime  # noqa: PLC0415 — few items expire

    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return False
    return (read if read.tzinfo else read.replace(tzinfo=UTC)) <= datetime.fromisoformat(now)


def _ranked(items: Iterable[Item]) -> list[Item]:
    """Best first; among equals the order in which they were found."""
    return sorted(items, key=lambda item: -item.priority)


def _either_document_or_records(items: Sequence[Item], omitted: list[Omission]) -> list[Item]:
    """Keep CONTEXT.md or the records it renders, never both."""
    if not any(item.kind in _DOCUMENT for item in items):
        return list(items)
    omitted += [
        Omission(item=item.id, reason="duplicate", tokens=item.tokens, note="CONTEXT.md says it")
        for item in items
        if item.kind in _RECORDS
    ]
    return [item for item in items if item.kind not in _RECORDS]
