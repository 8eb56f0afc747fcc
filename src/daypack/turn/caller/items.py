"""Items that a caller passes to `prepare`: of any of the 22 kinds, as values or as mappings."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from daypack.errors import BadInput, DaypackError
from daypack.history import resolve
from daypack.history.draft import plain
from daypack.history.session import History
from daypack.protocol.verdict import MAX_DEPTH, is_deep
from daypack.turn.caller.references import REFERENCE_MODES, Recall, is_reference, own_source, read_reference
from daypack.turn.items import SEEN_BY_DEFAULT, Item
from daypack.types.authority import AUTHORITIES, Authority, lowest
from daypack.types.context import ContextItem, ContextSourceRef
from daypack.types.kinds import WITHHELD_STATES, ContextKind, PackKind, Target, known_kind

_PACK_KINDS: dict[str, PackKind] = {
    "system_prompt": "system",
    "developer_instruction": "system",
    "policy_note": "system",
    "thread_summary": "summary",
    "working_memory": "working_blocks",
    "durable_memory": "memory_document",
    "artifact_ref": "refs",
    "runtime_state": "runtime_block",
    "peer_agent_message": "child_result",
    "retrieval_result": "memory_entries",
}
_TIERS: dict[str, PackKind] = {"core": "core_blocks", "working": "working_blocks", "ephemeral": "ephemeral_blocks"}
_AUTHORITIES: dict[str, Authority] = {
    "system_prompt": "system",
    "developer_instruction": "system",
    "policy_note": "system",
    "runtime_state": "system",
    "user_message": "user",
    "manual_note": "user",
    "tool_result": "tool",
    "file_excerpt": "tool",
    "document_excerpt": "tool",
    "browser_state": "web",
    "external_resource": "web",
    "retrieval_result": "tool",
    "custom": "tool",
}
_HINT = "an item has context_kind and content, or content_mode ref and content_ref; docs/cli.md has the other fields"
_PLACES = ("tool_argument", "tool_visible_resource")
_STATED = ("language", "source_refs", "freshness", "redaction_state", "policy_refs", "created_at", "metadata")
_STATED_INLINE = ("content_mode", "content_ref", "mime_type")  # an item by reference has its own
MAX_ITEM_LEVELS = MAX_DEPTH - 4  # an item is the fifth level of an envelope document
_LONG_AGO = "0001-01-01T00:00:00.000Z"
_PREFIX = frozenset({"system", "core_blocks", "memory_document"})
_ORDERS: dict[PackKind, int] = {"system": 15, "memory_document": 50, "core_blocks": 60}
_PRIORITIES: dict[PackKind, float] = {"system": 0.97, "core_blocks": 0.66, "memory_document": 0.65}


def read_items(
    values: Iterable[ContextItem | Mapping[str, Any]],
    history: History | None,
    target: Target | None = None,
    recall: Recall | None = None,
) -> list[Item]:
    """Return a caller's items. An item without text, or with a reference that cannot be expanded, has the problem.

    Without a history no reference is looked up: those of an imported document refer to another session. Neither is one
    whose item the target may not see. Items by reference are not expanded; `recall` finds what is in this session.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
        problem = f"must be a list of items, not {type(cast(object, values)).__name__}"
        raise BadInput(problem, operation="prepare", place="items", hint="items=[{'context_kind': …, 'content': …}]")
    items: list[Item] = []
    ids: set[str] = set()
    for number, given in enumerate(values, 1):
        place = f"items[{number - 1}]"
        value = _checked(given, number)
        if value.item_id in ids:
            hint = "give each item its own id, or none"
            raise BadInput(f"item id {value.item_id!r} is used twice", operation="prepare", place=place, hint=hint)
        ids.add(value.item_id)
        if history is not None:  # the documents of others are taken as they are
            _check_content(value, place)
        hidden = target is not None and target not in value.visibility
        if is_reference(value, local=history is not None):
            reference = read_reference(value, None if hidden else recall)
            blocked = value.redaction_state == "policy_blocked"  # other states withhold the content, not its address
            stated = _stated(value, by_reference=True)
            items.append(replace(_item(value, ""), reference=reference, stated=stated, blocked=blocked))
            continue
        text, problem = _text(value, None if hidden and value.content is None else history)
        stated = _stated(value, by_reference=False)
        items.append(replace(_item(value, text), problem=problem, media=not text and not problem, stated=stated))
    return items


def _checked(given: ContextItem | Mapping[str, Any], number: int) -> ContextItem:
    """Return a valid item: a value built in Python can hold anything."""
    place = f"items[{number - 1}]"
    hint = _HINT
    if not isinstance(given, ContextItem | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
        problem = f"an item must be an object, not {type(given).__name__}"
        raise BadInput(problem, operation="prepare", place=place, hint=hint)
    value: dict[str, Any] = {}
    try:
        if isinstance(given, ContextItem):
            value = msgspec.to_builtins(given)
        else:
            value = {"item_id": f"item-{number}", "visibility": SEEN_BY_DEFAULT, "content_mode": "inline", **given}
        item = msgspec.convert(value, ContextItem)
        _check_json(item)
        item = _DECODER.decode(msgspec.json.encode(item))  # as it is recorded: what is in it is JSON
    except UnicodeEncodeError as error:
        raise BadInput("a lone surrogate is no text", operation="prepare", place=place, hint=hint) from error
    except msgspec.ValidationError as error:
        raise BadInput(_problem(value) or str(error), operation="prepare", place=place, hint=hint) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(str(error), operation="prepare", place=place, hint=hint) from error
    return item


def _problem(value: dict[str, Any]) -> str:
    """Return the first field that is missing or of a wrong type, and what is expected; empty if none is found."""
    from daypack.turn.conformance.schema import examine  # noqa: PLC0415 — only after a mistake

    try:
        stated = plain(msgspec.to_builtins(value), "item", sized=False)
    except (DaypackError, TypeError, ValueError, RecursionError):
        return ""
    for field in examine("context_item", stated, ""):
        path = field.path.removeprefix(".")
        if field.rule == "schema.required" and field.problem and not path.endswith("schema_version"):
            return f"{path} is missing"
        if field.rule == "schema.type" and field.problem:
            return f"{path}: {field.problem}"
    return ""


def _check_content(value: ContextItem, place: str) -> None:
    """Refuse an item whose content is not where its mode says, or in two places."""
    mode, ref, inline = value.content_mode, bool(value.content_ref), value.content is not None
    problem = ""
    if mode in REFERENCE_MODES and not ref:
        problem = f"content_mode is {mode}, and there is no content_ref"
    elif mode in REFERENCE_MODES and inline:
        problem = f"content_mode is {mode}, and there is content as well"
    elif not ref and not inline:
        problem = "there is no content"
    if problem and value.redaction_state not in WITHHELD_STATES:
        raise BadInput(problem, operation="prepare", place=place, hint=_HINT)


def _check_json(item: ContextItem) -> None:
    """Refuse numbers that JSON lacks or a reader would change, and more levels than an envelope may have."""
    stated: dict[str, Any] = msgspec.to_builtins(item)
    content = stated.pop("content", None)  # it is written as text
    try:
        plain(content, "content", sized=False)
        stated = plain(stated, "item")
    except DaypackError as error:
        raise ValueError(f"{(error.place or '')[:80]}: {error.problem}") from error
    if is_deep(stated, MAX_ITEM_LEVELS):
        raise ValueError(f"nested deeper than {MAX_ITEM_LEVELS} levels")


def _text(value: ContextItem, history: History | None) -> tuple[str, str]:
    """Return the text of an item, and the problem if its reference cannot be resolved."""
    if isinstance(value.content, str):
        return value.content, ""
    if value.content is not None:
        return msgspec.json.format(msgspec.json.encode(value.content), indent=1).decode(), ""
    source = own_source(value.content_ref)
    if history is None or source is None:
        return "", ""
    try:
        return resolve.text_of(resolve.resolve(history, source)), ""
    except DaypackError as error:
        return "", f"{value.content_ref}: {error.problem}"


@cache
def defaults_of(context_kind: ContextKind) -> dict[str, Any]:
    """Return the fields of a caller's item of a kind that states nothing else."""
    value = ContextItem(item_id="", context_kind=context_kind, content_mode="inline", visibility=SEEN_BY_DEFAULT)
    item = msgspec.structs.asdict(_item(value, ""))
    return {name: item[name] for name in ("kind", "title", "authority", "placement", "order", "priority")}


def _item(value: ContextItem, text: str) -> Item:
    kind = _PACK_KINDS.get(value.context_kind, "custom")
    tier = value.metadata.get("tier")
    if isinstance(tier, str):
        kind = _TIERS.get(tier, kind)
    authority = _authority(value)
    placement = value.metadata.get("placement")
    if placement not in ("prefix", "volatile"):
        placement = "prefix" if kind in _PREFIX else "volatile"
    own = value.priority
    return Item(
        id=f"item:{value.item_id}",
        kind=kind,
        context_kind=value.context_kind,
        source=_source(value),
        text=text,
        title=value.title or value.context_kind.replace("_", " "),
        authority=authority,
        visibility=value.visibility,
        placement=placement,
        order=_ORDERS.get(kind, 30),
        priority=min(max(own, 0.0), 1.0) if own is not None else _PRIORITIES.get(kind, 0.6),
        sensitivity=value.sensitivity,
        expires=_expiry(value),
        blocked=value.redaction_state in WITHHELD_STATES,
        metadata=_metadata(value),
    )


def _authority(value: ContextItem) -> Authority:
    """Return the lowest stated authority; an unknown one counts as that of a tool."""
    stated = [value.trust_level]
    stated += [source.authority for source in value.source_refs if isinstance(source, ContextSourceRef)]
    named = [authority for authority in stated if authority is not None]
    known: list[Authority] = [authority for authority in AUTHORITIES if authority in named]
    if not named:
        return _AUTHORITIES.get(known_kind(value.context_kind), "agent")
    return lowest([*known, "tool"] if set(named) - set(known) else known)


def _source(value: ContextItem) -> str:
    """Return the source inside the session; an origin outside is only in the metadata, never a path."""
    if value.content is None and isinstance(value.content_ref, str) and own_source(value.content_ref):
        return value.content_ref
    return f"caller:{value.item_id.replace('..', '__')}"


def _metadata(value: ContextItem) -> dict[str, Any]:
    place = value.metadata.get("place")
    return {"place": place} if place in _PLACES else {}


def _stated(value: ContextItem, *, by_reference: bool) -> dict[str, Any]:
    """Return what the owner of an item states about it and a turn does not decide: the envelope repeats it."""
    fields: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    names = _STATED if by_reference else (*_STATED, *_STATED_INLINE)
    stated = {name: fields[name] for name in names if name in fields}
    if stated.get("content_mode") in ("inline", *REFERENCE_MODES):
        del stated["content_mode"]
    return stated


def _expiry(value: ContextItem) -> str | None:
    """Return the expiry time in a form that can be compared."""
    stated = value.metadata.get("expires_at")
    if isinstance(value.freshness, dict):
        stated = value.freshness.get("expires_at", stated)
    if not isinstance(stated, str):
        return None
    try:
        moment = datetime.fromisoformat(stated)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return _LONG_AGO  # a time that cannot be parsed does not permit showing it
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_DECODER = msgspec.json.Decoder(ContextItem)
