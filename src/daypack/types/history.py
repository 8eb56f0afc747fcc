"""Messages and events: one value per line of the two logs.

{"seq":12,"id":"msg-12","ts":"2026-11-15T21:10:20.123Z","role":"user","content":"…","crc":"1a2b3c4d"}
{"seq":9,"id":"ev-9","ts":"2026-11-15T21:10:20.125Z","type":"pin.set","data":{…},"crc":"5e6f7a8b"}
"""

from typing import Any

from msgspec import Struct

from daypack.types.kinds import Role

INCOMPLETE = "incomplete"  # the key in a message's meta: why its reply broke off


class Text(Struct, frozen=True, tag_field="type", tag="text", omit_defaults=True):
    """Plain text."""

    text: str
    meta: dict[str, Any] | None = None


class Thinking(Struct, frozen=True, tag_field="type", tag="thinking", omit_defaults=True):
    """A model's reasoning; its provider accepts it again only with the `signature`."""

    text: str
    signature: str | None = None
    meta: dict[str, Any] | None = None


class Image(Struct, frozen=True, tag_field="type", tag="image", omit_defaults=True):
    """An image by reference: a path, a URL or a digest, never the bytes."""

    source: str
    media_type: str | None = None
    meta: dict[str, Any] | None = None


class File(Struct, frozen=True, tag_field="type", tag="file", omit_defaults=True):
    """A document by reference."""

    source: str
    media_type: str | None = None
    meta: dict[str, Any] | None = None


class Other(Struct, frozen=True, tag_field="type", tag="other"):
    """A part of a type daypack does not know, stored unchanged in `value`."""

    value: dict[str, Any]

    @property
    def kind(self) -> str:
        """The provider's type of the part; empty if it has none, as a line written by hand may."""
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else ""


Part = Text | Thinking | Image | File | Other


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """One call a model asked for.

    `arguments` is always a str: the JSON text exactly as the model wrote it, also if that is empty or not JSON. An
    object becomes its JSON without spaces. A call of a custom tool (`meta["type"]` is "custom") has free text.
    """

    id: str
    name: str
    arguments: str = ""
    meta: dict[str, Any] | None = None


class Message(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One line of `messages.jsonl`.

    `content` is a str, or a tuple of parts if there is more than text; `text` gives the words of both. An accepted
    reply of one text has a str, whatever the dialect: what its provider said about the text (id, phase, annotations,
    citations) is in `meta["text"]`. A content appended as a list stays a tuple.

    A line written by hand may leave out `seq`, `id`, `ts` and `crc`: readers derive the first two from its position.
    """

    seq: int = 0
    id: str = ""
    ts: str = ""
    role: Role
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    client_key: str | None = None
    meta: dict[str, Any] | None = None
    crc: str = ""

    @property
    def text(self) -> str:
        """The text of the content, without thinking, images and files; the texts of several parts are lines."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def incomplete(self) -> str | None:
        """Why a reply broke off: "abandoned", "ended early" or an error's type; None if it is whole."""
        reason = self.meta.get(INCOMPLETE) if self.meta else None
        return reason if isinstance(reason, str) else None


class Event(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One line of `events.jsonl`: something that happened, with references to the messages it concerns."""

    seq: int = 0
    id: str = ""
    ts: str = ""
    type: str
    run: str | None = None
    data: dict[str, Any] = {}
    crc: str = ""


class Damage(Struct, frozen=True):
    """A corrupt place in a log."""

    path: str
    line: int
    offset: int
    length: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: line {self.line}, offset {self.offset}: {self.reason}"
