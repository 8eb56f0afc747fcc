"""What is erased: a literal, or the content of one message and what was copied from it."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.history.logs.lines import UNREADABLE
from daypack.text.sentences import sentences
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.items import Item
from daypack.types import kinds
from daypack.types.authority import AUTHORITIES
from daypack.types.compaction import Compaction, Records
from daypack.types.history import INCOMPLETE, Event, Image, Message, Thinking, ToolCall
from daypack.types.records import Ref, SwapRecord
from daypack.upkeep.erase.copies import Copies, spellings_of
from daypack.upkeep.erase.marker import Key, marker_of
from daypack.upkeep.erase.spellings import Spellings

LEAST_CHARS = 6  # a shorter literal occurs by chance
COPIED_CHARS = 16  # a sentence of an erased message that is this long is looked for in what was made from it
_KEPT = ("seq", "id", "ts", "role", "tool_call_id", "name", "client_key")


class Target(Struct, frozen=True):
    """What is erased, with its digest and the marker that replaces it."""

    kind: Literal["literal", "message", "entry"]
    digest: str
    marker: str
    spellings: Spellings | Copies
    seq: int = 0  # of the message

    @property
    def sources(self) -> frozenset[str]:
        """The references that name an erased message alone."""
        return frozenset((f"messages:{self.seq}", f"messages:{self.seq}-{self.seq}")) if self.seq else frozenset()


def literal_target(text: str, key: Key, *, force: bool = False) -> Target:
    """Return the target of a literal; one that cannot be erased without damage is refused."""
    operation, place = "erase", "--literal"
    if not text.strip():
        raise BadInput("the literal is empty", operation=operation, place=place, hint="give the text to erase")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        hint = "give text that UTF-8 can encode"
        raise BadInput("has a lone surrogate", operation=operation, place=place, hint=hint) from error
    if word := min((word for word in _structure() if text in word), key=lambda word: (len(word), word), default=""):
        problem = f"the literal is part of the format: every session contains {word!r}"
        hint = "erase a longer text, or one message with --message SEQ"
        raise BadInput(problem, operation=operation, place=place, hint=hint)
    if len(text) < LEAST_CHARS and not force:
        problem = f"{len(text)} characters: so short a text also occurs by chance, and is replaced there too"
        raise BadInput(problem, operation=operation, place=place, hint="erase a longer text, or add --force")
    digest = key.digest(data)
    return Target("literal", digest, marker_of(digest), Spellings((text,)))


def message_target(message: Message, key: Key) -> Target:
    """Return the target of a message."""
    said = (message.role, message.content, message.tool_calls, message.tool_call_id, message.name)
    digest = key.digest(msgspec.json.encode(said))
    texts = {text for text in _texts(message) if len(text) >= COPIED_CHARS}
    return Target("message", digest, marker_of(digest), spellings_of(sorted(texts) or (_unused(digest),)), message.seq)


def without_content(fields: dict[str, Any], marker: str) -> dict[str, Any]:
    """Return the line of a message without its content: number, role and calls stay, so that results still match."""
    kept = {key: fields[key] for key in _KEPT if key in fields}
    if fields.get("content"):
        kept["content"] = marker
    if calls := cast("list[dict[str, Any]]", fields.get("tool_calls") or []):
        kept["tool_calls"] = [_without_arguments(call, marker) for call in calls]
    meta = cast("dict[str, Any]", fields.get("meta") or {})
    return {**kept, "meta": {INCOMPLETE: meta[INCOMPLETE]}} if INCOMPLETE in meta else kept


def _without_arguments(call: dict[str, Any], marker: str) -> dict[str, Any]:
    custom = cast("dict[str, Any]", call.get("meta") or {}).get("type") == "custom"
    arguments = marker if custom else msgspec.json.encode({"erased": marker}).decode()
    return {
        "id": call["id"],
        "name": call["name"],
        "arguments": arguments,
        **({"meta": {"type": "custom"}} if custom else {}),
    }


def _texts(message: Message) -> Iterator[str]:
    """Yield what a message says: whole texts, their lines and sentences."""
    values: list[object] = [msgspec.to_builtins(message.content), message.meta or {}]
    values += [call.arguments for call in message.tool_calls]
    for text in _strings(values):
        yield text.strip()
        for part in (*text.splitlines(), *(sentence.text for sentence in sentences(text))):
            yield part.strip()


def _strings(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
            if value[:1] in ("{", "["):
                try:
                    yield from _strings((msgspec.json.decode(value),))
                except UNREADABLE:
                    continue
        elif isinstance(value, list):
            yield from _strings(cast("list[object]", value))
        elif isinstance(value, dict):
            yield from _strings(cast("dict[str, object]", value).values())


def _unused(digest: str) -> str:
    return f"\0{digest}"  # an empty pattern would match everywhere


def _structure() -> frozenset[str]:
    """Return the words of the format: in every line, or in the events that daypack writes."""
    structs = (Message, Event, ToolCall, Thinking, Image, TurnRecord, Item, Compaction, Records, SwapRecord, Ref)
    words = {field for struct in structs for field in struct.__struct_fields__}
    closed = (kinds.ROLES, kinds.TIERS, kinds.TARGETS, kinds.CONTEXT_KINDS, AUTHORITIES, kinds.PACK_KINDS)
    words.update(*closed, kinds.EPOCH_REASONS, kinds.SESSION_STATES, *kinds.VOCABULARIES.values())
    return frozenset(words | {"thinking", "image", "other", "sha256", "messages:", "[erased:"})
