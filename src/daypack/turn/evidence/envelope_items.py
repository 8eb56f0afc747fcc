"""The items of an envelope: the items and messages of a turn in full, each with its source."""

from typing import Any

import msgspec

from daypack.turn.evidence.pack_files import message_text
from daypack.turn.evidence.view import TurnView
from daypack.turn.items import Item
from daypack.turn.pack.additions import added_items
from daypack.types.authority import authority_of
from daypack.types.context import ContextItem, ContextSourceRef
from daypack.types.digest import digest_text
from daypack.types.history import Message
from daypack.types.kinds import PACK_METADATA, Target


def contents_of(turn: TurnView) -> tuple[ContextItem, ...]:
    """Return everything a turn shows, in order."""
    return (
        *(_item(turn, item) for item in turn.parts.epoch.prefix),
        *(_message(turn, message) for message in turn.parts.messages),
        *(_item(turn, item) for item in added_items(turn.parts.additions)),
        *(_item(turn, item) for item in turn.parts.volatile),
    )


def _item(turn: TurnView, item: Item) -> ContextItem:
    source = ContextSourceRef(
        source_id=f"{item.id}/source",
        uri=str(item.metadata.get("origin") or item.source),
        source_kind="message" if item.source == "messages.jsonl" else "captured",
        selector=f"messages:{item.range}" if item.range and item.source == "messages.jsonl" else None,
        digest=(item.reference.digest if item.reference else item.digest) or None,
        authority=item.authority,
    )
    reference = item.reference
    value = ContextItem(
        item_id=item.id,
        context_kind=item.context_kind,
        content_mode=reference.mode if reference else "inline",
        visibility=item.visibility,
        title=item.title or None,
        content=None if reference else item.text,
        content_ref=reference.ref if reference else None,
        mime_type=(reference.mime_type or None) if reference else "text/markdown",
        source_refs=(source,),
        token_estimate=item.tokens,
        byte_size=reference.size if reference else len(item.text.encode()),
        trust_level=item.authority,
        sensitivity=item.sensitivity,
        redaction_state=item.redaction_state,
        priority=item.priority,
        digest=(reference.digest or None) if reference else item.digest or digest_text(item.text),
        created_at=turn.record.at,
        metadata={"kind": item.kind, **PACK_METADATA.get(item.kind, {}), **_redaction(item.redacted)},
    )
    return _as_stated(value, item) if item.stated else value


def _as_stated(value: ContextItem, item: Item) -> ContextItem:
    """Return an item with what its owner stated about it in place of what daypack says where nothing is stated."""
    metadata = {**value.metadata, **item.stated.get("metadata", {}), **_redaction(item.redacted)}
    fields = msgspec.to_builtins(value) | item.stated
    return msgspec.convert(fields | {"metadata": metadata, "redaction_state": item.redaction_state}, ContextItem)


def _message(turn: TurnView, message: Message) -> ContextItem:
    ref = message_ref(message)
    text = message_text(message)
    kinds = turn.record.redacted.get(str(message.seq), ())
    native: dict[str, Any] = {"daypack": {"id": message.id, "role": message.role}}
    if message.tool_call_id:
        native["tool_call_id"] = message.tool_call_id
    source = ContextSourceRef(
        source_id=f"{ref}/source",
        uri="messages.jsonl",
        source_kind="message",
        selector=f"messages:{message.seq}",
        digest=digest_text(text),
        authority=authority_of(message),
        external_mappings=(native,),
    )
    newest = message.seq == turn.record.user
    return ContextItem(
        item_id=ref,
        context_kind="user_message" if newest else "tool_result" if message.role == "tool" else "session_history",
        content_mode="inline",
        visibility=_visibility(message),
        content=text,
        source_refs=(source,),
        trust_level=authority_of(message),
        redaction_state="masked" if kinds else "none",
        digest=digest_text(text),
        created_at=message.ts or None,
        metadata={"kind": "recent_messages", "role": message.role, **_redaction(kinds)},
    )


def _redaction(kinds: tuple[str, ...]) -> dict[str, Any]:
    return {"redacted": list(kinds)} if kinds else {}


def message_ref(message: Message) -> str:
    """Return the id of a message; a placeholder for a missing tool result is named after its call."""
    return f"messages:{message.seq}" if message.id else f"messages:{message.seq}/{message.tool_call_id}"


def _visibility(message: Message) -> tuple[Target, ...]:
    inside: tuple[Target, ...] = ("model", "reviewer", "evidence_export")
    return inside if message.role == "system" else (*inside, "ui", "user", "peer_agent")
