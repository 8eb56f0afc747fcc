"""Rows of a store as values: each is verified by its checksum, and a damaged row becomes a DamagedRecord."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from daypack.errors import Damaged
from daypack.memory.store.checksums import (
    DocumentRecord,
    EntryRecord,
    MemoryRecord,
    TokenRecord,
    UserRecord,
    checksum,
    is_intact,
)
from daypack.memory.store.port import Token, join_id
from daypack.memory.times import format_time, parse_end_time, parse_time
from daypack.types.memory import (
    About,
    ContextDocument,
    DamagedRecord,
    Entry,
    Memory,
    Quotas,
    Stats,
    Usage,
    User,
    Where,
)

if TYPE_CHECKING:
    from sqlite3 import Connection

Row = tuple[Any, ...]
_Kind = TypeVar("_Kind", Memory, ContextDocument, User, Token, Entry)
# What a damaged file makes of a value: another type, an impossible number, bytes that are no text.
WRONG_VALUES = (TypeError, ValueError, AttributeError, OverflowError)
_REPAIR = "run `daypack doctor --repair`, or restore a backup"


class Owner(NamedTuple):
    """The user and the memory that a record belongs to."""

    user: str
    memory_id: str


def entry_record(row: Row, owner: Owner) -> EntryRecord:
    """Return the fields of an ENTRY row; raise one of WRONG_VALUES for values that no entry has."""
    seq, stem, created, moment, session, role, author, at, source, tags, client_key, raw, summary, _ = row
    words = (session, role, author, at, source, split_tags(tags), client_key)
    return EntryRecord(*owner, join_id(stem, seq), created, moment, raw.decode(), summary, *words)


def entry_of(row: Row, owner: Owner) -> Entry | DamagedRecord:
    """Return the entry of an ENTRY row."""
    try:
        record = entry_record(row, owner)
        if checksum(record) == row[-1]:
            return Entry(
                entry_id=record.entry_id,
                memory_id=record.memory_id,
                seq=row[0],
                created_at=format_time(record.created),
                raw_entry=record.raw,
                summary=record.raw if record.summary is None else record.summary,
                session=record.session,
                role=record.role,
                author=record.author,
                at=record.at,
                tags=record.tags,
                source=record.source,
            )
    except WRONG_VALUES:
        pass
    return damaged_row("entry", row[0], row[1])


def document_record(row: Row, owner: Owner) -> DocumentRecord:
    """Return the fields of a DOCUMENT row; raise one of WRONG_VALUES for values that no document has."""
    version, stem, created, content, _ = row
    return DocumentRecord(*owner, join_id(stem, version), created, content)


def document_of(row: Row, owner: Owner) -> ContextDocument | DamagedRecord:
    """Return the document of a DOCUMENT row."""
    try:
        record = document_record(row, owner)
        if checksum(record) == row[-1]:
            return ContextDocument(
                document_id=record.document_id,
                memory_id=record.memory_id,
                version=row[0],
                created_at=format_time(record.created),
                content=record.content,
            )
    except WRONG_VALUES:
        pass
    return damaged_row("document", row[0], row[1])


def damaged_row(kind: Any, number: Any, stem: Any = None, problem: str = "checksum mismatch") -> DamagedRecord:  # noqa: ANN401 — of a damaged file
    """Return the report of a damaged entry or document, with its id if that can be read."""
    number = number if isinstance(number, int) and number >= 0 else 0
    try:
        id_ = join_id(stem, number) if isinstance(stem, bytes) else ""
    except OverflowError:
        id_ = ""
    return DamagedRecord(kind=kind, id=id_, number=number, problem=problem)


def memory_of(row: Row) -> Memory | DamagedRecord:
    """Return the memory of a MEMORY row."""
    *fields, crc, entries, documents, size = row
    record = MemoryRecord(*fields)
    if not is_intact(record, crc):
        return DamagedRecord(kind="memory", id=as_text(record.memory_id))
    counts = (count if isinstance(count, int) and count > 0 else 0 for count in (entries, documents, size))
    return Memory(
        memory_id=record.memory_id,
        title=record.title,
        memory_type=record.memory_type,
        created_at=format_time(record.created),
        description=record.description,
        stats=Stats(*counts),
        deleted_at=None if record.deleted is None else format_time(record.deleted),
    )


def user_of(row: Row) -> User | DamagedRecord:
    """Return the profile of a USER row."""
    *fields, crc, memories, entries, size = row
    record = UserRecord(*fields)
    if not is_intact(record, crc):
        return DamagedRecord(kind="user", id=as_text(record.user))
    used = (count if isinstance(count, int) and count > 0 else 0 for count in (memories, entries, size))
    quotas = Quotas(record.max_memories, record.max_entries, record.max_bytes, Usage(*used))
    return User(user_id=record.user, name=record.name, email=record.email, quotas=quotas)


def token_of(row: Row) -> Token | DamagedRecord:
    """Return the token of a TOKEN row."""
    token_id, digest, *rest, crc = row
    if not isinstance(digest, bytes) or not is_intact(record := TokenRecord(token_id, digest.hex(), *rest), crc):
        return DamagedRecord(kind="token", id=as_text(token_id))
    return Token(
        token_id=record.token_id,
        user=record.user,
        name=record.name,
        scope=record.scope,  # type: ignore[arg-type] — verified
        created_at=record.created,
        expires_at=record.expires,
    )


def seal_memory(connection: "Connection", number: int) -> None:
    """Compute the checksum of a memory again after its fields have changed."""
    query = (
        "SELECT u.user, m.id, m.title, m.type, m.description, m.created, m.deleted"
        " FROM memories m JOIN users u ON u.number = m.owner WHERE m.number = ?"
    )
    record = MemoryRecord(*connection.execute(query, (number,)).fetchone())
    connection.execute("UPDATE memories SET crc = ? WHERE number = ?", (checksum(record), number))


def seal_user(connection: "Connection", number: int) -> None:
    """Compute the checksum of a user again after its fields have changed."""
    query = "SELECT user, name, email, max_memories, max_entries, max_bytes FROM users WHERE number = ?"
    record = UserRecord(*connection.execute(query, (number,)).fetchone())
    connection.execute("UPDATE users SET crc = ? WHERE number = ?", (checksum(record), number))


def damage_of(record: DamagedRecord, operation: str) -> Damaged:
    """Return the error for a damaged record that cannot be skipped."""
    number = f" {record.number}" if record.number else ""
    return Damaged(
        f"{record.kind}{number} is damaged: {record.problem}", operation=operation, place=record.id, hint=_REPAIR
    )


def intact(found: "_Kind | DamagedRecord", operation: str) -> "_Kind":
    """Return a record, or raise Damaged."""
    if isinstance(found, DamagedRecord):
        raise damage_of(found, operation)
    return found


def newest_intact(versions: Iterable[ContextDocument | DamagedRecord | None], owner: Owner) -> ContextDocument:
    """Return the first of the versions, newest first, that is intact, with the damaged ones after it."""
    damaged: list[DamagedRecord] = []
    for document in versions:
        if isinstance(document, DamagedRecord):
            damaged.append(document)
        elif document is not None:
            return replace(document, damaged=tuple(damaged)) if damaged else document
    return intact(damaged[0] if damaged else missing_document(owner, 0), "get_context")


def missing_document(owner: Owner, version: int) -> DamagedRecord:
    """Return the report of a version that is not there."""
    return DamagedRecord(kind="document", id=owner.memory_id, number=version, problem="it is missing")


def where_conditions(where: Where) -> dict[str, str | int]:
    """Return what the columns of entries that match a filter are compared with; its tags are not included."""
    bounds = {
        "moment >=": parse_time(where.since),
        "moment <=": None if where.until is None else parse_end_time(where.until),
        "role =": where.role,
        "author =": where.author,
        "session =": where.session,
    }
    return {comparison: bound for comparison, bound in bounds.items() if bound is not None}


def as_text(value: object) -> str:
    """Return a value of a damaged row so that it can be shown."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text[:64].encode("utf-8", "replace").decode()


def join_tags(tags: tuple[str, ...]) -> str | None:
    """Return tags as one column; a tag has no control characters."""
    return "\n".join(tags) or None


def split_tags(tags: str | None) -> tuple[str, ...]:
    """Return the tags of a column."""
    return tuple(tags.split("\n")) if tags else ()


def size_of(raw: bytes, summary: str | None, about: About) -> int:
    """Return the bytes an entry counts for: its texts and the fields beside them."""
    words = (summary, about.session, about.role, about.author, about.at, about.source, *about.tags)
    return len(raw) + len("".join(filter(None, words)).encode())
