"""Validates what a caller passes and makes a message or event that can be stored and read back unchanged."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from daypack.errors import BadMessage
from daypack.types.history import Event, File, Image, Message, Other, Part, Text, Thinking, ToolCall
from daypack.types.kinds import ROLES

RESERVED = "daypack"  # the key of a message's meta that daypack itself uses
FIELDS = ("tool_calls", "tool_call_id", "name", "client_key", "meta", "ts")
STAMPED = ("seq", "id", "crc")  # set by the log; ignored in a caller's message
MAX_DEPTH = 100
MAX_KEY_CHARS = 256
# What other systems call the roles.
_OTHER_ROLES = {
    "human": "user",
    "developer": "system",
    "function": "tool",
    **dict.fromkeys(("ai", "bot", "model"), "assistant"),
    **dict(zip(ROLES, ROLES, strict=True)),  # in capital letters
}
_CALL_TYPES = ("function", "function_call", "tool_use", "custom", "custom_tool_call")


def draft_message(role: str, content: object, fields: Mapping[str, Any]) -> Message:
    """Return the message for an append; `seq`, `id` and `crc` are stamped by the log."""
    if role not in ROLES:
        raise _bad_role(role)
    if role.__class__ is not str:
        role = ROLES[ROLES.index(role)]  # a str subclass becomes a plain str
    for name in fields:
        if name not in FIELDS:
            raise _bad(f"unknown field {name!r}", name, f"allowed: {', '.join(FIELDS)}; put your own values into meta")
    if content.__class__ is str and not fields:
        return Message(role=role, content=cast(str, content))
    calls = tuple(_tool_call(call, index) for index, call in enumerate(_listed(fields.get("tool_calls"), "tool_calls")))
    call_id = _name(fields.get("tool_call_id"), "tool_call_id")
    if calls and role != "assistant":
        raise _bad(f"a {role} message has no tool calls", "tool_calls", 'only role "assistant" asks for calls')
    if call_id and role != "tool":
        raise _bad(f"a {role} message answers no tool call", "tool_call_id", 'the result of a call has role "tool"')
    return Message(
        ts=_time(fields.get("ts")),
        role=role,
        content=_content(content),
        tool_calls=calls,
        tool_call_id=call_id,
        name=_name(fields.get("name"), "name"),
        client_key=_name(fields.get("client_key"), "client_key"),
        meta=_foreign(_mapping(fields.get("meta"), "meta")),
    )


def _bad_role(role: object) -> BadMessage:
    if not isinstance(role, str):
        hint = "append(role, content); a message of another session goes into append_many([message])"
        return _bad(f"must be one of {', '.join(ROLES)}, not a {_kind(role)}", "role", hint)
    usual = _OTHER_ROLES.get(role.lower())
    return _bad(f"role {role!r} is not one of {', '.join(ROLES)}", "role", f"use {usual!r}" if usual else "")


def _foreign(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a caller's meta; a key reserved for daypack is renamed, so that it is kept but not trusted."""
    if not meta or RESERVED not in meta:
        return meta
    other = f"_{RESERVED}"
    while other in meta:
        other = f"_{other}"
    return {other if name == RESERVED else name: value for name, value in meta.items()}


def drafts_from(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """Return the messages for an `append_many`."""
    if isinstance(messages, (str, Mapping, Message)):
        given = _kind(cast(object, messages))
        raise _bad(f"must be a list of messages, not a {given}", "messages", "append_many([message, …])")
    return [draft_from(message) for message in messages]


def draft_from(message: Message | Mapping[str, Any]) -> Message:
    """Return the message for one element of an `append_many`: a message, or a mapping with the same keys."""
    if isinstance(message, Message):
        given = {name: getattr(message, name) for name in FIELDS}
        return draft_message(message.role, message.content, {name: value for name, value in given.items() if value})
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] — callers may pass anything
        raise _bad(f"a message is an object with role and content, not {_kind(message)}", "message")
    # Other systems include absent fields ("refusal": null), which can be dropped.
    fields = {name: value for name, value in message.items() if name not in STAMPED and value is not None}
    role = fields.pop("role", None)
    if role is None:
        raise _bad("is missing", "role", f"allowed: {', '.join(ROLES)}")
    return draft_message(role if isinstance(role, str) else repr(role), fields.pop("content", ""), fields)


def draft_event(kind: str, data: Mapping[str, Any] | None, run: str | None = None) -> Event:
    """Return the event for an append."""
    return Event(type=_required(kind, "type"), run=_name(run, "run"), data=_mapping(data, "data") or {})


def same_payload(message: Message, other: Message) -> bool:
    """Return True if two messages are equal except for what the log sets."""
    names = ("role", "content", "tool_calls", "tool_call_id", "name", "client_key")
    same = all(getattr(message, name) == getattr(other, name) for name in names)
    return same and _without_turn(message.meta) == _without_turn(other.meta)


def _without_turn(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a meta without its turn: a reply that is sent again may belong to a newer turn."""
    if meta is None or RESERVED not in meta:
        return meta
    own = cast(dict[str, dict[str, Any]], meta[RESERVED])  # only daypack writes there
    return {**meta, RESERVED: {name: {**part, "turn": None} for name, part in own.items()}}


def plain(value: object, place: str, depth: int = 0, *, sized: bool = True) -> Any:  # noqa: ANN401 — a JSON value
    """Return a copy of a JSON value that reads back equal; refuse what JSON cannot represent.

    `sized` false: integers of any size, for a value that is stored as text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a str subclass becomes a plain str
    if isinstance(value, int):
        if sized and not -(1 << 63) <= value < 1 << 64:
            raise _bad("an integer beyond 64 bits cannot be stored", place, "store it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _bad(f"{value} is not a JSON number", place, "use null or a string")
        return float(value)
    if depth >= MAX_DEPTH:
        raise _bad(f"nested deeper than {MAX_DEPTH} levels", place)
    if isinstance(value, Mapping):
        return _plain_mapping(cast(Mapping[object, object], value), place, depth, sized=sized)
    if isinstance(value, (list, tuple)):
        items = cast(Sequence[object], value)
        return [plain(item, f"{place}[{index}]", depth + 1, sized=sized) for index, item in enumerate(items)]
    raise _bad(f"{_kind(value)} cannot be stored as JSON", place, "convert it to text, numbers, lists or objects first")


def _plain_mapping(value: Mapping[object, object], place: str, depth: int, *, sized: bool) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    for name, item in value.items():
        if not isinstance(name, str):
            raise _bad(f"object key {name!r} is not a string", place)
        copy[name] = plain(item, f"{place}.{name}", depth + 1, sized=sized)
    return copy


def _content(content: object) -> str | tuple[Part, ...]:
    if content is None:
        return ""
    if isinstance(content, str):
        return str.__str__(content)
    if not isinstance(content, (list, tuple)):
        hint = "convert it, for instance with json.dumps(…), or give a list of parts: [{'type': 'text', 'text': …}]"
        raise _bad(f"must be text or a list of parts, not {_kind(content)}", "content", hint)
    parts = cast(Sequence[object], content)
    return tuple(_part(part, f"content[{index}]") for index, part in enumerate(parts))


def _part(part: object, place: str) -> Part:
    if isinstance(part, str):
        return Text(part)
    part = _opened(part)
    if not isinstance(part, Mapping):
        raise _bad(f"a content part is text or an object with a type, not {_kind(part)}", place)
    value = plain(cast(object, part), place)
    kind = value.get("type")
    if not isinstance(kind, str):
        raise _bad("a content part needs a type", place)
    if kind == "other" and value.keys() == {"type", "value"} and isinstance(value["value"], dict):
        other = Other(value["value"])
        if not other.kind:
            raise _bad("a content part needs a type", f"{place}.value", "write {'type': …}, as its provider names it")
        return other
    if kind in ("input_text", "output_text") and isinstance(value.get("text"), str):
        return _shaped(Text, value, "text")
    if kind == "refusal" and isinstance(value.get("refusal"), str):
        return Text(value["refusal"], {"refusal": True})
    for shape, words in (
        (Text, "text"),
        (Thinking, "text"),
        (Thinking, "thinking"),
        (Image, "source"),
        (File, "source"),
    ):
        if kind == shape.__struct_config__.tag and isinstance(value.get(words), str):
            return _shaped(shape, value, words)
    return Other(value)


def _shaped(shape: type[Text | Thinking | Image | File], value: dict[str, Any], words: str) -> Part:
    """Make a part of a mapping; keys without a field go into its meta."""
    given = {"text" if words == "thinking" else words: value[words]}
    rest = {name: item for name, item in value.items() if name not in ("type", words)}
    for name in shape.__struct_fields__:
        if name != "meta" and isinstance(rest.get(name), str):
            given[name] = rest.pop(name)
    return shape(**given, meta=_gathered(rest))


def _gathered(rest: dict[str, Any]) -> dict[str, Any] | None:
    """Return the keys without a field, merged with those already in meta."""
    own = rest.pop("meta", None)
    if isinstance(own, dict):
        return {**cast(dict[str, Any], own), **rest} or None
    return rest or None


def _tool_call(call: object, index: int) -> ToolCall:
    call, place = _opened(call), f"tool_calls[{index}]"
    if not isinstance(call, Mapping):
        raise _bad(f"a tool call is an object with id, name and arguments, not {_kind(call)}", place)
    value = plain(cast(object, call), place, sized=False)
    # OpenAI's chat API: {"id", "type": "function", "function": {"name", "arguments"}}, or the same with "custom".
    for shape in ("function", "custom"):
        if isinstance(value.get(shape), dict):
            value = {**value.pop(shape), **value}
    if isinstance(value.get("call_id"), str):  # OpenAI's responses API: `id` is that of the item
        value["id"] = value.pop("call_id")
    kind = value.get("type")
    if kind in _CALL_TYPES:  # not a name that the caller put there
        del value["type"]
    arguments = value.pop("arguments", None)
    if arguments is None and kind in ("tool_use", "custom", "custom_tool_call"):
        arguments = value.pop("input", None)
    if kind in ("custom", "custom_tool_call"):
        value["type"] = "custom"
    identity, name = value.pop("id", None), value.pop("name", None)
    if not isinstance(identity, str) or not identity or not isinstance(name, str) or not name:
        problem = "a tool call needs an id and a name"
        raise _bad(problem, place, "the id is what its result names, the name is the tool's")
    meta = _gathered(plain(value, place))
    return ToolCall(id=identity, name=name, arguments=arguments_text(arguments), meta=meta)


def arguments_text(arguments: object) -> str:
    """Return the arguments of a call as they are stored: a text as it is, anything else as JSON, None as nothing."""
    if isinstance(arguments, str):
        return str.__str__(arguments)
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def _opened(value: Any) -> object:  # noqa: ANN401 — whatever a caller passes
    """Return an object of daypack or of a client library as a mapping; anything else as it is."""
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else value


def _listed(value: object, place: str) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return cast(Sequence[object], value)
    raise _bad(f"must be a list, not {_kind(value)}", place)


def _mapping(value: object, place: str) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise _bad(f"must be an object, not {_kind(value)}", place)
    return plain(cast(object, value), place) or None


def _name(value: object, place: str) -> str | None:
    return None if value is None else _required(value, place)


def _required(value: object, place: str) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_KEY_CHARS:
        raise _bad(f"must be a string of 1 to {MAX_KEY_CHARS} characters", place)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _bad("has a lone surrogate, which UTF-8 cannot encode", place) from None
    return str.__str__(value)


def _time(value: object) -> str:
    if value is None or value == "":
        return ""
    try:
        moment = datetime.fromisoformat(cast(str, value))
        if moment.tzinfo is None:
            raise ValueError
        moment = moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        hint = "write 2026-11-15T21:10:20Z, with a time zone"
        raise _bad(f"{value!r} is not a point in time", "ts", hint) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _kind(value: object) -> str:
    return type(value).__name__


def _bad(problem: str, place: str, hint: str = "") -> BadMessage:
    return BadMessage(problem, operation="append", place=place, hint=hint)
