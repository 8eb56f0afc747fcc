"""Read the rows in which Claude Code records the requests that it sends.

    {"type":"api-request-shape","shapeHash":"61db…","shape":{"system":[…],"tools":[…]},…}
    {"type":"api-request-blob","hash":"3e4c…","message":{"role":"user","content":[…]},…}
    {"type":"api-request","id":"30cb…","shapeHash":"61db…","base":"…","keep":2,"tail":["fb2c…","d935…"],"params":{…},…}

A request has the first `keep` messages of its `base`, then those of its `tail`. A hash without a blob row is that of
messages in the transcript itself. A row of another shape, or whose hash is not that of its content, is not read: it is
kept like any other row that is not a message.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, Struct, field

from daypack.importers.transcript import Row, list_of, object_of, text_of
from daypack.turn.evidence.observed.digests import RunDigest, message_bytes, unmarked
from daypack.turn.evidence.observed.record import MAX_KEPT, CacheMark
from daypack.types.canonical import canonical
from daypack.types.digest import digest_bytes

SHAPE, BLOB, REQUEST = "api-request-shape", "api-request-blob", "api-request"
REPLY_TO = "requestRef"  # in assistant rows: the request that they answer

_COMMON = ("type", "sessionId", "agentId", "timestamp", "version")
_STATED = {SHAPE: (*_COMMON, "shapeHash", "shape"), BLOB: (*_COMMON, "hash", "message")}
_NOT_JSON = (msgspec.ValidationError, ValueError, TypeError, KeyError, AttributeError, RecursionError, UnicodeError)

_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Name = Annotated[str, Meta(min_length=1, max_length=256)]
_Count = Annotated[int, Meta(ge=0, le=MAX_KEPT)]


class Content(NamedTuple):
    """What a row has for requests to name: the bytes of a message, or of system prompt and tools, by their digest."""

    digest: str
    data: bytes
    more: dict[str, Any]  # fields of the row that nothing else keeps


class Joined(NamedTuple):
    """A message of successive rows: of the blocks of all of them, the first so many."""

    digest: str
    role: str
    blocks: list[Any]
    size: int

    @property
    def data(self) -> bytes:
        """Its bytes, made when they are needed: each of the messages of a long run has all before it."""
        return message_bytes({"role": self.role, "content": self.blocks[: self.size]})


class _Message(Struct):
    role: str
    content: str | list[dict[str, Any]]


class _Shape(Struct):
    system: str | list[dict[str, Any]] = ""
    tools: list[dict[str, Any]] = []


class Request(Struct, frozen=True, rename="camel"):
    """A row that records a request."""

    id: _Name
    shape_hash: _Hash = ""
    params: dict[str, Any] = {}
    follows: _Name | None = field(default=None, name="base")
    keep: _Count = 0
    tail: tuple[_Hash, ...] = ()
    cache_control: tuple[CacheMark, ...] = ()
    request_digest: _Hash | None = None
    cut: dict[str, Any] | None = None
    cut_request_digest: _Hash | None = None
    query_source: str = ""
    agent_id: str = ""
    version: str = ""
    timestamp: str = ""


_KEPT = ("type", "sessionId", *(Request.__struct_encode_fields__))


def read_content(row: Row) -> Content | None:
    """Return the content of a blob or shape row; None if it is of another shape or does not have its hash."""
    fields = row.fields
    kind = fields.get("type")
    try:
        if kind == BLOB:
            msgspec.convert(fields["message"], _Message)
            stated, data = fields["hash"], message_bytes(fields["message"])
        elif kind == SHAPE:
            msgspec.convert(fields["shape"], _Shape)
            stated, data = fields["shapeHash"], canonical(unmarked(fields["shape"]))
        else:
            return None
    except _NOT_JSON:
        return None
    digest = digest_bytes(data)
    if digest != f"sha256:{stated}":
        return None
    return Content(digest, data, {name: value for name, value in fields.items() if name not in _STATED[kind]})


def read_request(row: Row) -> Request | None:
    """Return a recorded request; None if the row is of another shape."""
    try:
        return msgspec.convert(row.fields, Request)
    except (msgspec.ValidationError, RecursionError):
        return None


def other_fields(row: Row) -> dict[str, Any]:
    """Return the fields of a request row that `Request` does not have."""
    return {name: value for name, value in row.fields.items() if name not in _KEPT}


def message_contents(rows: Iterable[Row]) -> Iterator[Joined]:
    """Yield the messages that requests may have of user and assistant rows: successive rows of one side, joined."""
    run, joined, blocks = RunDigest("user"), ("", ""), list[Any]()
    for row in rows:
        message = object_of(row.fields.get("message"))
        role = text_of(message.get("role")) or ""
        content = message.get("content")
        added = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content)
        side = role, "" if role == "user" else text_of(message.get("id")) or str(row.number)
        if side != joined:
            run, joined, blocks = RunDigest(role), side, []
        blocks += added
        try:
            yield Joined(run.add(added), role, blocks, len(blocks))
        except _NOT_JSON:
            joined = ("", "")


def reply_to(meta: Mapping[str, Any] | None) -> str | None:
    """Return the id of the request that an imported message answers."""
    return text_of(object_of((meta or {}).get("row")).get(REPLY_TO))
