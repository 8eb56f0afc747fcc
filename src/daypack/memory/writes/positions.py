"""Consistency tokens: the positions of writes, signed, so that a barrier waits only for writes of its own user.

A token is opaque text, the base64url of

    2 · store id (8 bytes) · memory id (16) · entry seq (u32) · document version (u32) · HMAC-SHA256, 16 bytes

Version 3, of stores in a database, has after the document version the position of the database's log (u64) at which the
write was committed. The HMAC covers these fields and the user. Its key is in `positions.key` beside the store, or in
the database.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from threading import Lock
from typing import NamedTuple

from daypack.errors import BadInput, StorageFailed
from daypack.files import atomic

_OPERATION = "await_consistency"
_FIELDS = {2: Struct(">B8s16sII"), 3: Struct(">B8s16sIIQ")}  # by version
_MAC_BYTES = 16
_KEY_BYTES = 32
_MAX_TOKEN_CHARS = 256
_NO_MEMORY = "0" * 32


class Position(NamedTuple):
    """The numbers of a write: it is complete when its memory has reached them. An empty memory id means the store.

    `log`: the position of the database's log after the commit; 0 in a file.
    """

    store_id: str
    memory_id: str = ""
    entries: int = 0
    documents: int = 0
    log: int = 0


class Positions:
    """Signs and checks the tokens of one store. Threads may share it; processes share the key."""

    def __init__(self, key_source: str | Callable[[], bytes] | None = None) -> None:
        """The source of the key is a file or a function; without one, the key lasts as long as this object."""
        self._key_source = key_source
        self._key = b""
        self._lock = Lock()

    def write_token(self, user: str, position: Position) -> str:
        """Return the token of a position for a user."""
        from base64 import urlsafe_b64encode  # noqa: PLC0415 — 1 ms that reading does not need

        store, memory = bytes.fromhex(position.store_id), bytes.fromhex(position.memory_id or _NO_MEMORY)
        numbers = (position.entries, position.documents, *([position.log] if position.log else []))
        version = 3 if position.log else 2
        fields = _FIELDS[version].pack(version, store, memory, *numbers)
        return urlsafe_b64encode(fields + self._sign(user, fields)).decode().rstrip("=")

    def read_token(self, user: str, token: object, store_id: str, operation: str = _OPERATION) -> Position:
        """Return the position of a token that this store gave to this user."""
        from hmac import compare_digest  # noqa: PLC0415 — with hashlib 2 ms

        data = _decode(token)
        if data is not None:
            fields, mac = data[:-_MAC_BYTES], data[-_MAC_BYTES:]
            _, store, memory, *numbers = _FIELDS[data[0]].unpack(fields)
            if store.hex() != store_id:
                raise other_store(operation)
            if compare_digest(self._sign(user, fields), mac):
                return Position(store_id, memory.hex() if any(memory) else "", *numbers)
        hint = "send a token exactly as a write of this user returned it, or leave it out"
        raise BadInput("token is not a consistency token of this user", operation=operation, hint=hint)

    def _sign(self, user: str, fields: bytes) -> bytes:
        from hmac import digest  # noqa: PLC0415

        return digest(self._find_key(), fields + user.encode(), "sha256")[:_MAC_BYTES]

    def _find_key(self) -> bytes:
        if callable(self._key_source):
            return self._key_source()  # it has another key when its store is restored
        with self._lock:
            if not self._key:
                self._key = self._load_key(self._key_source)
        return self._key

    def _load_key(self, source: str | None) -> bytes:
        """Return the key in a file, which is created if there is none.

        A write is stored by the time its token is signed, so a file never fails: where none can be read or written,
        tokens are valid in this process only.
        """
        new = os.urandom(_KEY_BYTES)
        if source is None:
            return new
        with suppress(StorageFailed):
            if len(known := atomic.read(source) or b"") == _KEY_BYTES:
                return known
            if known or not atomic.create(source, new):
                known = atomic.read(source) or b""  # another process was faster, or the file is damaged
                if len(known) == _KEY_BYTES:
                    return known
                atomic.replace(source, new)
                return atomic.read(source) or new
        return new


def other_store(operation: str) -> BadInput:
    """Return the error for a token of another store."""
    hint = "leave token out to wait for all writes"
    return BadInput("token belongs to a different store", operation=operation, hint=hint)


def _decode(token: object) -> bytes | None:
    from base64 import urlsafe_b64decode, urlsafe_b64encode  # noqa: PLC0415

    if not isinstance(token, str) or not token.isascii() or len(token) > _MAX_TOKEN_CHARS:
        return None
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    whole = bool(data) and data[0] in _FIELDS and len(data) == _FIELDS[data[0]].size + _MAC_BYTES
    return data if whole and urlsafe_b64encode(data).decode().rstrip("=") == token.rstrip("=") else None
