"""Select: which of the available items the target may see, and why it may not see the others."""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from daypack.turn.items import Item, Omission
from daypack.turn.surface import Surface
from daypack.types.kinds import OmissionReason

_ALLOWED_TARGETS = {"secret": frozenset({"tool", "runtime"})}  # sensitivity -> the only targets that may see it
_DOCUMENT = frozenset({"context_doc"})
_RECORDS = frozenset({"summary", "facts", "decisions", "todo", "errors"})


class Selection(Struct, frozen=True, kw_only=True):
    """The items that the target may see, best first, and a record of the others."""

    prefix: tuple[Item, ...] = ()
    volatile: tuple[Item, ...] = ()
    excerpts: tuple[Item, ...] = ()  # for the epoch, and for a new one
    window_excerpts: tuple[Item, ...] = ()
    notes: tuple[Item, ...] = ()
    omitted: tuple[Omission, ...] = ()


def select(surface: Surface) -> Selection:
    """Choose by visibility, duplication and age; the budget comes later."""
    omitted: list[Omission] = list(surface.omitted)
    prefix = sorted(_allowed(surface.prefix, surface, omitted), key=_rank)
    prefix = _document_or_records(prefix, omitted)
    volatile = sorted(_allowed(surface.volatile, surface, omitted), key=_rank)
    # The item that a note is about has its own record if it may not be shown.
    notes = tuple(item for item in surface.notes if not objection(item, surface)[0]) if surface.notes else ()
    return Selection(
        prefix=tuple(prefix),
        volatile=tuple(volatile),
        excerpts=tuple(_allowed(surface.excerpts, surface, omitted)),
        window_excerpts=tuple(_allowed(surface.window_excerpts, surface, omitted)),
        notes=notes,
        omitted=tuple(omitted),
    )


def _allowed(items: Iterable[Item], surface: Surface, omitted: list[Omission]) -> list[Item]:
    allowed: list[Item] = []
    first_of: dict[tuple[str, str], str] = {}
    for item in items:
        reason, note = objection(item, surface)
        # That two children came to the same result is news.
        if not reason and item.placement == "prefix" and item.digest and item.kind != "child_result":
            first = first_of.setdefault((item.digest, item.kind), item.id)
            if first != item.id:
                reason, note = "duplicate", f"same text as {first}"
        if reason:
            # A target that may not see an item learns its id and the reason, not its size.
            tokens = None if reason == "not_visible_to_target" else item.tokens or None
            omitted.append(
                Omission(item=item.id, reason=reason, tokens=tokens, note=note, high_impact=bool(item.problem))
            )
        else:
            allowed.append(item)
    return allowed


def objection(item: Item, surface: Surface) -> tuple[OmissionReason | Literal[""], str | None]:
    """Return the reason why the target may not see an item, and a note; an empty reason if it may."""
    if surface.target not in item.visibility:
        return "not_visible_to_target", None
    if item.blocked:
        withheld = item.stated.get("redaction_state", "policy_blocked")
        note = "blocked by its owner's policy" if withheld == "policy_blocked" else f"its owner states {withheld}"
        return "policy_blocked", note
    targets = _ALLOWED_TARGETS.get(item.sensitivity or "")
    if targets is not None and surface.target not in targets:
        return "sensitive", f"{item.sensitivity} items are not shown to {surface.target}"
    if item.expires and _is_past(item.expires, surface.now):
        return "stale", f"expired at {item.expires}"
    if item.problem:
        return "custom", item.problem
    if item.media:
        return "unsupported_media", "no text form"
    return "", None


def _is_past(moment: str, now: str) -> bool:
    """Return True if a moment is over. Without a zone it is in UTC; a moment that cannot be parsed is never over."""
    from datetime import UTC, datetime  # noqa: PLC0415 — few items expire

    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return False
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) <= datetime.fromisoformat(now)


def _rank(item: Item) -> float:
    return -item.priority  # equal priorities keep their order


def _document_or_records(items: Sequence[Item], omitted: list[Omission]) -> Sequence[Item]:
    """Keep CONTEXT.md or the records it renders, never both."""
    if not any(item.kind in _DOCUMENT for item in items):
        return items
    omitted += [
        Omission(item=item.id, reason="duplicate", tokens=item.tokens, note="rendered in CONTEXT.md")
        for item in items
        if item.kind in _RECORDS
    ]
    return [item for item in items if item.kind not in _RECORDS]
