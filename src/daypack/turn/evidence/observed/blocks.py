"""The blocks that a message of history had in a request of Anthropic's API: what an import stored, turned back."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from daypack.errors import DaypackError
from daypack.turn.evidence.observed.digests import Block, RunDigest
from daypack.types.history import File, Image, Message, Part, Text, Thinking

# Keys in the meta of an imported message, where its blocks had another shape than what is stored implies.
CONTENT_FORM = "content_form"  # of a tool result: "list" for a list with one text, "none" without a content
CALL_POSITIONS = "call_positions"  # of an assistant message: where its calls are among its blocks
_BLOB = "sha256-"
GetBlob = Callable[[str], bytes]


class Run(NamedTuple):
    """Successive messages of history that are one message of a request."""

    digest: str
    first: int
    last: int


def api_role(message: Message) -> str:
    """Return the role of a message in a request: results of tools come from the user."""
    return "user" if message.role == "tool" else message.role


def find_runs(messages: Iterable[Message], get_blob: GetBlob) -> Iterator[Run]:
    """Yield every message that a request may contain: successive messages of one side, joined.

    Messages of the user are joined until the assistant speaks, those of the assistant while they have one id. A request
    may have been made in the middle of such a run, so each beginning of it counts.
    """
    digest, first, joined = None, 0, ("", "")
    for message in messages:
        role = api_role(message)
        reply = str((message.meta or {}).get("message_id") or message.id) if role == "assistant" else ""
        try:
            blocks = blocks_of(message, get_blob)
            if digest is None or joined != (role, reply):
                digest, first, joined = RunDigest(role), message.seq, (role, reply)
            yield Run(digest.add(blocks), first, message.seq)
        except (DaypackError, ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError):
            digest = None  # not imported from this program, or damaged


def blocks_of(message: Message, get_blob: GetBlob) -> list[Block]:
    """Return the blocks of one message; raise ValueError, or an error of msgspec, if a call has no JSON arguments."""
    if message.role == "tool":
        return [_result(message, get_blob)]
    parts = _parts(message.content, get_blob)
    calls = [_call(call.id, call.name, call.arguments, call.meta) for call in message.tool_calls]
    positions = cast(Sequence[int] | None, (message.meta or {}).get(CALL_POSITIONS))
    if positions is None:
        return [*parts, *calls]
    blocks = list(parts)
    for position, call in zip(positions, calls, strict=True):
        blocks.insert(position, call)
    return blocks


def _result(message: Message, get_blob: GetBlob) -> Block:
    meta: Mapping[str, Any] = message.meta or {}
    block: Block = {"type": "tool_result", "tool_use_id": message.tool_call_id, **(meta.get("result") or {})}
    form = meta.get(CONTENT_FORM)
    if form == "none":
        return block
    is_text = isinstance(message.content, str) and form != "list"
    return {**block, "content": message.content if is_text else _parts(message.content, get_blob)}


def _call(call_id: str, name: str, arguments: str, meta: Mapping[str, Any] | None) -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": msgspec.json.decode(arguments), **(meta or {})}


def _parts(content: str | tuple[Part, ...], get_blob: GetBlob) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_part(part, get_blob) for part in content]


def _part(part: Part, get_blob: GetBlob) -> Block:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **(part.meta or {})}
    if isinstance(part, Thinking):
        signed = {} if part.signature is None else {"signature": part.signature}
        return {"type": "thinking", "thinking": part.text, **signed, **(part.meta or {})}
    if isinstance(part, Image | File):
        kind = "image" if isinstance(part, Image) else "document"
        return {"type": kind, "source": _source(part, get_blob), **(part.meta or {})}
    return _with_data(part.value, get_blob)


def _source(part: Image | File, get_blob: GetBlob) -> Block:
    if not part.source.startswith(_BLOB):
        return {"type": "url", "url": part.source}
    media_type = {} if part.media_type is None else {"media_type": part.media_type}
    return {"type": "base64", **media_type, "data": _base64(get_blob(part.source))}


def _with_data(value: Any, get_blob: GetBlob) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value in which the names of stored bytes are replaced by these, in base64."""
    if isinstance(value, list):
        return [_with_data(member, get_blob) for member in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    name = fields.get("sha256")
    if len(fields) == 1 and isinstance(name, str) and name.startswith(_BLOB):
        return _base64(get_blob(name))
    return {name: _with_data(member, get_blob) for name, member in fields.items()}


def _base64(data: bytes) -> str:
    from base64 import b64encode  # noqa: PLC0415 — few messages have images

    return b64encode(data).decode()
