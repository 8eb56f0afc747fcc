"""The interface of a memory store: memories, entries, documents, users and tokens.

Every method that reaches a memory takes its user. A memory of another user, a deleted memory and one that never existed
raise the same MemoryMissing. When a write returns it is durable and visible to every reader.

Every record has a checksum (see `checksums`), verified when it is read. Lists contain a DamagedRecord in place of a
damaged entry or document; a damaged record that a call cannot do without raises Damaged.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeGuard, TypeVar

from msgspec import Struct

from daypack.errors import EntryMissing, MemoryMissing
from daypack.types.memory import About, ContextDocument, DamagedRecord, Entry, Memory, User, Where

ID_CHARS = 32
STORE_ID_CHARS = 16
Scope = Literal["read", "write"]
MAX_DAMAGED = 50  # damaged records that a result lists; `doctor` lists all
_Record = TypeVar("_Record", Entry, ContextDocument)
_HEX = frozenset("0123456789abcdef")


class NewEntry(Struct, frozen=True, kw_only=True, gc=False):
    """An entry to store. `summary_given`: the caller wrote the summary, so a repetition must have the same one.

    `entry_id` and `created_at` (milliseconds since 1970) come from an archive; without them the store assigns them.
    """

    raw: str
    summary: str
    about: About = About()
    client_key: str | None = None
    summary_given: bool = True
    entry_id: str | None = None
    created_at: int | None = None


class StoredEntry(NamedTuple):
    """A new entry as stored; `created_at` is in milliseconds since 1970. `replayed`: it was stored before."""

    entry_id: str
    seq: int
    created_at: int
    summary: str
    replayed: bool = False


class NewMemory(Struct, frozen=True, kw_only=True):
    """A memory to create; `memory_id` and `created_at` as in a NewEntry."""

    title: str
    memory_type: str = "chat"
    description: str = ""
    memory_id: str | None = None
    created_at: int | None = None


class NewDocument(Struct, frozen=True):
    """A version of a document to store; `document_id` and `created_at` as in a NewEntry."""

    content: str
    document_id: str | None = None
    created_at: int | None = None


class EntryRange(Struct, frozen=True, kw_only=True):
    """The entries to list: at most `limit` before or after a seq or a time (exclusive), newest first.

    With `after` they are the ones right after it, otherwise the newest.
    """

    limit: int
    before_seq: int | None = None
    after_seq: int | None = None
    before_time: int | None = None
    after_time: int | None = None

    @property
    def forward(self) -> bool:
        """True if the range extends towards newer entries."""
        return self.after_seq is not None or self.after_time is not None

    @property
    def conditions(self) -> dict[str, int]:
        """What the columns of its entries are compared with."""
        bounds = {
            "seq <": self.before_seq,
            "seq >": self.after_seq,
            "created <": self.before_time,
            "created >": self.after_time,
        }
        return {comparison: bound for comparison, bound in bounds.items() if bound is not None}


class Newest(NamedTuple):
    """The highest seq of an existing entry and the highest version of the document.

    `assigned` is the highest seq ever assigned, including erased entries.
    """

    entries: int
    documents: int
    assigned: int


class Profile(Struct, frozen=True, kw_only=True):
    """Changes to a user; `quotas` may name memories, entries and bytes (None: no limit); the rest is unchanged."""

    name: str | None = None
    email: str | None = None
    quotas: Mapping[str, int | None] = {}


class Token(Struct, frozen=True, kw_only=True):
    """Access to a server for one user; the secret itself is not stored."""

    token_id: str
    user: str
    name: str
    scope: Scope
    created_at: str
    expires_at: str | None = None


class Rewritten(NamedTuple):
    """How much of a memory contains what is erased from its texts."""

    memory_id: str
    title: str
    entries: int
    documents: int
    fields: int  # title, description, tags and client keys


class Accounts(Protocol):
    """Users and tokens of a store."""

    def find(self, user: str) -> User | None:
        """Return a profile with its usage; None if there is no such user."""
        ...

    def list(self) -> tuple[User, ...]:
        """Return all intact profiles, by name."""
        ...

    def damaged(self) -> tuple[DamagedRecord, ...]:
        """Return the damaged profiles and tokens."""
        ...

    def put(self, user: str, profile: Profile) -> User:
        """Change a profile; create it if there is none."""
        ...

    def put_token(self, token: Token, digest: bytes) -> None:
        """Store a token; `digest` is the SHA-256 of its secret."""
        ...

    def find_token(self, digest: bytes) -> Token | None:
        """Return the token whose secret has this digest."""
        ...

    def tokens(self, user: str | None = None) -> tuple[Token, ...]:
        """Return the intact tokens of a user, or of all users."""
        ...

    def drop_token(self, token_id: str) -> bool:
        """Delete a token; return False if there was none."""
        ...


class Store(Protocol):
    """Stores memories. Threads may share it."""

    @property
    def store_id(self) -> str:
        """The store's own random id, 16 hexadecimal digits."""
        ...

    @property
    def accounts(self) -> Accounts:
        """The users of the store and their tokens."""
        ...

    # Memories

    def load(
        self,
        user: str,
        new: NewMemory,
        documents: Sequence[NewDocument],
        entries: Sequence[NewEntry],
    ) -> Memory:
        """Create a memory with documents and entries in one transaction, and its user if there is none.

        If this user has a memory with the id, what it lacks is added; if another user has it, a new id is assigned.
        """
        ...

    def memory(self, user: str, memory_id: str) -> Memory:
        """Return a memory's title, type and size."""
        ...

    def memories(self, user: str, *, deleted: bool | None = False) -> tuple[Memory, ...]:
        """Return the user's intact memories, oldest first; or the deleted ones, which can be restored; None: both."""
        ...

    def damaged(self, user: str) -> tuple[DamagedRecord, ...]:
        """Return the user's memories that are damaged themselves, deleted or not."""
        ...

    def delete(self, user: str, memory_id: str) -> None:
        """Hide a memory until it is restored."""
        ...

    def restore(self, user: str, memory_id: str) -> None:
        """Restore a deleted memory."""
        ...

    def erase(self, user: str, memory_id: str) -> None:
        """Remove a memory, deleted or not, and all its bytes from the store's files."""
        ...

    def rewrite(
        self, change: Callable[[str], str], memory_ids: Collection[str] | None, *, dry_run: bool = False
    ) -> list[Rewritten]:
        """Erase from the texts of memories of all users, in one transaction; None: from all memories.

        `change` returns a text without what is erased. A dry run only returns which memories it changes.
        """
        ...

    # Entries

    def add(self, user: str, memory_id: str, entries: Sequence[NewEntry]) -> list[StoredEntry]:
        """Store entries in one transaction; a known client key with the same payload stores nothing."""
        ...

    def find_key(self, user: str, memory_id: str, client_key: str) -> Entry | None:
        """Return the entry stored with a client key."""
        ...

    def seq_of(self, user: str, memory_id: str, entry_id: str) -> int:
        """Return the seq of an entry, or raise EntryMissing."""
        ...

    def page(self, user: str, memory_id: str, entry_range: EntryRange) -> list[Entry | DamagedRecord]:
        """Return the entries of a range, newest first."""
        ...

    def after(self, user: str, memory_id: str, seq: int, limit: int) -> list[Entry | DamagedRecord]:
        """Return the entries after a seq, oldest first."""
        ...

    def pick(self, user: str, memory_id: str, seqs: Collection[int]) -> dict[int, Entry | DamagedRecord]:
        """Return the existing entries among these seqs."""
        ...

    def find(self, user: str, memory_id: str, where: Where) -> frozenset[int]:
        """Return the seqs of the entries that match all filters."""
        ...

    def erase_entry(self, user: str, memory_id: str, entry_id: str) -> None:
        """Remove an entry as `erase` does; its seq is not reused."""
        ...

    # Documents

    def put_document(self, user: str, memory_id: str, content: str) -> ContextDocument:
        """Store a new version of the document, which becomes the current one."""
        ...

    def document(self, user: str, memory_id: str, version: int | None = None) -> ContextDocument:
        """Return a version of the document, by default the newest that is intact."""
        ...

    def documents(self, user: str, memory_id: str, after: int, limit: int) -> list[ContextDocument | DamagedRecord]:
        """Return the versions after one, oldest first."""
        ...

    def newest(self, user: str, memory_id: str) -> Newest:
        """Return the newest numbers of a memory, read from the store."""
        ...

    def check(self) -> None:
        """Raise if the store cannot be read, or no write could begin now."""
        ...

    def close(self) -> None:
        """Close files and connections; the next call opens them again."""
        ...


class StoreFeed:
    """The entries and documents of one memory, as its search index reads them."""

    def __init__(self, store: Store, user: str, memory_id: str) -> None:
        self._store = store
        self.user = user
        self.memory_id = memory_id

    def newest(self) -> tuple[int, int]:
        """Return the highest entry seq and the highest document version."""
        newest = self._store.newest(self.user, self.memory_id)
        return newest.entries, newest.documents

    def entries(self, after: int, limit: int) -> Sequence[Entry | DamagedRecord]:
        """Return entries with higher seqs, ascending."""
        return self._store.after(self.user, self.memory_id, after, limit)

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument | DamagedRecord]:
        """Return later versions, ascending."""
        return self._store.documents(self.user, self.memory_id, after, limit)


def split_damaged(found: Iterable[_Record | DamagedRecord]) -> tuple[list[_Record], list[DamagedRecord]]:
    """Return the intact records and the damaged ones, each in their order."""
    intact: list[_Record] = []
    damaged: list[DamagedRecord] = []
    for record in found:
        if isinstance(record, DamagedRecord):
            damaged.append(record)
        else:
            intact.append(record)
    return intact, damaged


def next_after(batch: Sequence[Entry | ContextDocument | DamagedRecord], last: int) -> int:
    """Return the number that an ascending batch reaches; always more than `last`, however damaged the numbers are."""
    intact = [_number_of(record) for record in batch if not isinstance(record, DamagedRecord)]
    reached = max(intact) if intact else max(map(_number_of, batch))
    return max(reached, last + 1)


def _number_of(record: Entry | ContextDocument | DamagedRecord) -> int:
    return record.version if isinstance(record, ContextDocument) else record.seq


def is_id(text: object) -> bool:
    """Return True if a text has the form of an id: 32 hexadecimal digits."""
    return isinstance(text, str) and len(text) == ID_CHARS and _HEX.issuperset(text)


def is_store_id(text: object) -> TypeGuard[str]:
    """Return True if a text has the form of a store's id: 16 hexadecimal digits."""
    return isinstance(text, str) and len(text) == STORE_ID_CHARS and _HEX.issuperset(text)


def join_id(stem: bytes, number: int) -> str:
    """Return the id of an entry or a document: twelve random bytes and its number in the memory."""
    return stem.hex() + number.to_bytes(4, "big").hex()


def split_id(text: str) -> tuple[bytes, int]:
    """Return the random bytes and the number of an id (`is_id`)."""
    return bytes.fromhex(text[:24]), int(text[24:], 16)


def memory_missing(memory_id: object, operation: str) -> MemoryMissing:
    """Return the same error for every memory this user does not have."""
    place = str(memory_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "check the memory_id, the home and the user; `daypack memory list` lists the ids"
    if isinstance(memory_id, Memory):
        place, hint = "memory_id", "pass memory.memory_id, not the memory"
    return MemoryMissing("there is no such memory", operation=operation, place=place, hint=hint)


def entry_missing(entry_id: object) -> EntryMissing:
    """Return the error for an entry that a memory does not have."""
    place = str(entry_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "call list_entries without before and after to get the newest entries"
    return EntryMissing("there is no such entry in this memory", operation="find entry", place=place, hint=hint)
