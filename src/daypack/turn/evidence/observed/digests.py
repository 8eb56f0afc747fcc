"""The digests by which Claude Code names the messages of a request, its system prompt with the tools, and the request.

Each is the SHA-256 of canonical JSON (`types/canonical.py`). Marks for the cache are in the digest of the request only,
because they move from call to call. A text as content counts as a list with one text block: the program sends both.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from daypack.types.canonical import canonical

if TYPE_CHECKING:
    from hashlib import _Hash  # pyright: ignore[reportPrivateUsage] — the only name its type has

CACHE_CONTROL = "cache_control"
Block = dict[str, Any]


def unmarked(value: Any) -> Any:  # noqa: ANN401 — a JSON value
    """Return a JSON value without marks for the cache."""
    if isinstance(value, list):
        return [unmarked(member) for member in cast(list[Any], value)]
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {name: unmarked(member) for name, member in fields.items() if name != CACHE_CONTROL}
    return value


def with_blocks(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose content is a list of blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content}]}
    return dict(message)


def message_bytes(message: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message that its digest is of; raise ValueError for what JSON cannot express."""
    return canonical(unmarked(with_blocks(message)))


class RequestDigest:
    """Computes the digests of requests: parameters, system prompt, tools and messages, with the marks.

    A request mostly begins with the messages of the one before it. The state of the hash before the first message with
    a mark is kept, so that many requests of one session cost little more than their new messages.
    """

    def __init__(self) -> None:
        self._head = b""
        self._names: Sequence[str] = ()  # of the messages that the state has seen
        self._state: _Hash | None = None

    def compute(self, around: "Around", messages: Sequence[tuple[str, bytes]], marked: Mapping[int, bytes]) -> str:
        """Return the digest of a request: its messages by name and bytes, those with marks, and what is around them."""
        from hashlib import sha256  # noqa: PLC0415 — 2 ms that reading a log need not pay

        head = around.head
        digest, start = sha256(head), 0
        names = [name for name, _ in messages]
        if self._state and head == self._head and names[: len(self._names)] == self._names:
            digest, start = self._state.copy(), len(self._names)
        kept = min(marked, default=len(messages))
        if start > kept:
            digest, start = sha256(head), 0
        for at in range(start, len(messages)):
            if at == kept:
                self._keep(head, names[:at], digest)
            digest.update((b"," if at else b"") + marked.get(at, messages[at][1]))
        if kept == len(messages):
            self._keep(head, names, digest)
        digest.update(around.end)
        return f"sha256:{digest.hexdigest()}"

    def _keep(self, head: bytes, names: Sequence[str], digest: "_Hash") -> None:
        self._head, self._names, self._state = head, names, digest.copy()


class Around(NamedTuple):
    """The canonical JSON of a request before and after its messages."""

    head: bytes
    end: bytes


def around_messages(fields: Mapping[str, Any]) -> Around:
    """Return the fields of a request as they are around its messages."""
    names = sorted((name for name in fields if name != "messages"), key=lambda name: name.encode("utf-16-be"))
    parts = {name: canonical(name) + b":" + canonical(fields[name]) for name in names}
    border = "messages".encode("utf-16-be")
    before = [part + b"," for name, part in parts.items() if name.encode("utf-16-be") < border]
    after = [b"," + part for name, part in parts.items() if name.encode("utf-16-be") > border]
    return Around(b"".join((b"{", *before, b'"messages":[')), b"".join((b"]", *after, b"}")))


class RunDigest:
    """The digests of a message that grows: those of its first block, of the first two, and so on."""

    def __init__(self, role: str) -> None:
        from hashlib import sha256  # noqa: PLC0415 — 2 ms that reading a log need not pay

        self._end = b'],"role":' + canonical(role) + b"}"
        self._digest: _Hash = sha256(b'{"content":[')
        self._separator = b""

    def add(self, blocks: Sequence[Block]) -> str:
        """Add blocks and return the digest of the message so far."""
        for block in blocks:
            self._digest.update(self._separator + canonical(unmarked(block)))
            self._separator = b","
        whole = self._digest.copy()
        whole.update(self._end)
        return f"sha256:{whole.hexdigest()}"
