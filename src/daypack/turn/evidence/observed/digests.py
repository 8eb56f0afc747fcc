"""The digests by which Claude Code names the messages of a request, its system prompt with the tools, and the request.

Each is the SHA-256 of canonical JSON (`types/canonical.py`). Marks for the cache are in the digest of the request only,
because they move from call to call. A text as content counts as a list with one text block: the program sends both.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from daypack.types.canonical import canonical
from daypack.types.digest import digest_bytes

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


def request_digest(body: Mapping[str, Any]) -> str:
    """Return the digest of a request: its parameters, system prompt, tools and messages, with the marks."""
    messages = cast(Sequence[Mapping[str, Any]], body.get("messages", ()))
    return digest_bytes(canonical({**body, "messages": [with_blocks(message) for message in messages]}))


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
