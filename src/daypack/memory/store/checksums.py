"""The checksum of a stored record, over every field of it. Every kind of store computes the same one.

    CRC-32 of ["entry","ada","9f…","3c…",1763337600000,…], the kind and the fields as canonical JSON (RFC 8785)

An entry and a document include their user and memory, so that a record that moved to another owner is damage too.
Counts and usage are not included: they follow from the records, and `doctor` compares them.
"""

from typing import NamedTuple
from zlib import crc32

import msgspec

UNVERIFIABLE = -1  # a checksum that no record has: for what was damaged before it could get one

_encode = msgspec.json.Encoder().encode  # of an array without objects and floats, this is the canonical form


class EntryRecord(NamedTuple):
    """All fields of an entry; times in milliseconds since 1970, `summary` None if it is the same as `raw`.

    `moment` is the time that filters compare.
    """

    user: str
    memory_id: str
    entry_id: str
    created: int
    moment: int
    raw: str
    summary: str | None
    session: str | None
    role: str | None
    author: str | None
    at: str | None
    source: str | None
    tags: tuple[str, ...]
    client_key: str | None


class DocumentRecord(NamedTuple):
    """All fields of a version of a context document; its number is in its id."""

    user: str
    memory_id: str
    document_id: str
    created: int
    content: str


class MemoryRecord(NamedTuple):
    """All fields of a memory, except what counts its entries and documents."""

    user: str
    memory_id: str
    title: str
    memory_type: str
    description: str
    created: int
    deleted: int | None


class UserRecord(NamedTuple):
    """All fields of a user, except the usage."""

    user: str
    name: str
    email: str
    max_memories: int | None
    max_entries: int | None
    max_bytes: int | None


class TokenRecord(NamedTuple):
    """All fields of a token; `digest` is the SHA-256 of its secret in hexadecimal."""

    token_id: str
    digest: str
    user: str
    name: str
    scope: str
    created: str
    expires: str | None


Record = EntryRecord | DocumentRecord | MemoryRecord | UserRecord | TokenRecord
_KINDS: dict[type[Record], str] = {
    EntryRecord: "entry",
    DocumentRecord: "document",
    MemoryRecord: "memory",
    UserRecord: "user",
    TokenRecord: "token",
}


def checksum(record: Record) -> int:
    """Return the checksum of a record; raise ValueError or TypeError for values that no record has."""
    return crc32(_encode((_KINDS[type(record)], *record)))


def is_intact(record: Record, stored: object) -> bool:
    """Return True if a record is the one its checksum was computed of, whatever types a damaged file holds."""
    try:
        return checksum(record) == stored
    except (TypeError, ValueError, OverflowError):
        return False
