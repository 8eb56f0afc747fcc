"""The consistency token: opaque text that names the position of a write, in which store and in which memory.

    base64url of: 1 · store id (8 bytes) · memory id (16) · entry seq (u32) · document version (u32) · CRC-32 of these

The checksum finds what was mangled on the way. It protects nothing: the memory must be one of whoever shows a token.
"""

from struct import Struct
from typing import NamedTuple
from zlib import crc32

from daypack.errors import BadInput

_FORM = Struct(">B8s16sII")
_SEALED = _FORM.size + 4
_KIND = 1
_NO_MEMORY = "0" * 32


class Position(NamedTuple):
    """A write is at or before these numbers; without a memory id it names the store alone."""

    store_id: str
    memory_id: str = ""
    entries: int = 0
    documents: int = 0


def write_token(position: Position) -> str:
    """Return the token of a position."""
    from base64 import urlsafe_b64encode  # noqa: PLC0415 — 1 ms for those who only read

    store, memory = bytes.fromhex(position.store_id), bytes.fromhex(position.memory_id or _NO_MEMORY)
    body = _FORM.pack(_KIND, store, memory, position.entries, position.documents)
    return urlsafe_b64encode(body + crc32(body).to_bytes(4, "big")).decode().rstrip("=")


def read_token(token: object, store_id: str) -> Position:
    """Return the position of a token of this store."""
    body = _opened(token)
    if body is None:
        raise BadInput("token is not one of daypack", operation="await_consistency", hint="send it as it was returned")
    _, store, memory, entries, documents = _FORM.unpack(body)
    if store.hex() != store_id:
        raise BadInput("token is of another store", operation="await_consistency", hint="leave it out")
    return Position(store_id, memory.hex() if any(memory) else "", entries, documents)


def _opened(token: object) -> bytes | None:
    from base64 import urlsafe_b64decode  # noqa: PLC0415

    if not isinstance(token, str) or not token.isascii() or len(token) > 2 * _SEALED:
        return None
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    body, seal = data[: _FORM.size], data[_FORM.size :]
    whole = len(data) == _SEALED and crc32(body).to_bytes(4, "big") == seal and body[0] == _KIND
    return body if whole else None
