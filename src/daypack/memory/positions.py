"""Consistency tokens: the positions of writes, signed, so that a barrier waits only for writes of its own user.

A token is opaque text, the base64url of

    2 · store id (8 bytes) · memory id (16) · entry seq (u32) · document version (u32) · HMAC-SHA256, 16 bytes

The HMAC covers these fields and the user. Its key is in `positions.key` beside the store.
"""

import os
from contextlib import suppress
from struct import Struct
from threading import Lock
from typing import NamedTuple

from daypack.errors import BadInput, StorageFailed
from daypack.files import atomic

_OPERATION = "await_consistency"
_FIELDS = Struct(">B8s16sII")
_VERSION = 2
_MAC_BYTES = 16
_KEY_BYTES = 32
_TOKEN_BYTES = _FIELDS.size + _MAC_BYTES
_NO_MEMORY = "0" * 32


class Position(NamedTuple):
    """The numbers of a write: it is complete when its memory has reached them. An empty memory id means the store."""

    store_id: str
    memory_id: str = ""
    entries: int = 0
    documents: int = 0


class Positions:
    """Signs and checks the tokens of one store. Threads may share it; processes share the key in the file."""

    def __init__(self, key_file: str | None = None) -> None:
        """Without a file the key lasts as long as this object."""
        self._key_file = key_file
        self._key = b""
        self._lock = Lock()

    def write_token(self, user: str, position: Position) -> str:
        """Return the token of a position for a user."""
        from base64 import urlsafe_b64encode  # noqa: PLC0415 — 1 ms that reading does not need

        store, memory = bytes.fromhex(position.store_id), bytes.fromhex(position.memory_id or _NO_MEMORY)
        fields = _FIELDS.pack(_VERSION, store, memory, position.entries, position.documents)
        return urlsafe_b64encode(fields + self._sign(user, fields)).decode().rstrip("=")

    def read_token(self, user: str, token: object, store_id: str) -> Position:
        """Return the position of a token that this store gave to this user."""
        from hmac import compare_digest  # noqa: PLC0415 — with hashlib 2 ms

        data = _decode(token)
        if data is not None:
            fields, mac = data[: _FIELDS.size], data[_FIELDS.size :]
            _, store, memory, entries, documents = _FIELDS.unpack(fields)
            if store.hex() != store_id:
                hint = "leave token out to wait for all writes"
                raise BadInput("token belongs to a different store", operation=_OPERATION, hint=hint)
            if compare_digest(self._sign(user, fields), mac):
                return Position(store_id, memory.hex() if any(memory) else "", entries, documents)
        hint = "send a token exactly as a write of this user returned it, or leave it out"
        raise BadInput("token is not a consistency token of this user", operation=_OPERATION, hint=hint)

    def _sign(self, user: str, fields: bytes) -> bytes:
        from hmac import digest  # noqa: PLC0415

        with self._lock:
            if not self._key:
                self._key = self._load_key()
        return digest(self._key, fields + user.encode(), "sha256")[:_MAC_BYTES]

    def _load_key(self) -> bytes:
        """Return the key in the file; create it if there is none.

        A write is stored by the time its token is signed, so this never fails: where no file can be read or written,
        tokens are valid in this process only.
        """
        new = os.urandom(_KEY_BYTES)
        if self._key_file is None:
            return new
        with suppress(StorageFailed):
            if len(known := atomic.read(self._key_file) or b"") == _KEY_BYTES:
                return known
            if known or not atomic.create(self._key_file, new):
                known = atomic.read(self._key_file) or b""  # another process was faster, or the file is damaged
                if len(known) == _KEY_BYTES:
                    return known
                atomic.replace(self._key_file, new)
                return atomic.read(self._key_file) or new
        return new


def _decode(token: object) -> bytes | None:
    from base64 import urlsafe_b64decode, urlsafe_b64encode  # noqa: PLC0415

    if not isinstance(token, str) or not token.isascii() or len(token) > 2 * _TOKEN_BYTES:
        return None
    try:
        data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        return None
    whole = len(data) == _TOKEN_BYTES and data[0] == _VERSION
    return data if whole and urlsafe_b64encode(data).decode().rstrip("=") == token.rstrip("=") else None
