"""The port to where memories are kept: entries, documents, and whose they are. All of it is truth.

Every method that reaches a memory takes the user it is done for. A memory of another user, one that was deleted and
one that never was are answered alike: MemoryMissing. What has returned is durable and visible to every reader.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from daypack.errors import MemoryMissing
from daypack.memory.store.accounts import Accounts
from daypack.types.memory import About, ContextDocument, Entry, Memory, Where

ID_CHARS = 32
_HEX = frozenset("0123456789abcdef")


class Draft(Struct, frozen=True, kw_only=True, gc=False):
    """An entry to be stored. `stated`: the caller gave the summary, so a repetition must have the same.

    `entry_id` and `created_at` (milliseconds since 1970) are those of an archive; else the store makes them.
    """

    raw: str
    summary: str
    about: About = About()
    client_key: str | None = None
    stated: bool = True
    entry_id: str | None = None
    created_at: int | None = None


class Kept(NamedTuple):
    """What became of a draft; `created_at` is in milliseconds since 1970."""

    entry_id: str
    seq: int
    created_at: int
    summary: str
    replayed: bool = False


class NewMemory(Struct, frozen=True, kw_only=True):
    """A memory to be made; `memory_id` and `created_at` as in a draft."""

    title: str
    memory_type: str = "chat"
    description: str = ""
    memory_id: str | None = None
    created_at: int | None = None


class NewDocument(Struct, frozen=True):
    """A version of a document to be stored; `document_id` and `created_at` as in a draft."""

    content: str
    document_id: str | None = None
    created_at: int | None = None


class Span(Struct, frozen=True, kw_only=True):
    """Which entries to list: those before or after an entry's seq or a time (exclusive), the nearest `limit` of them.

    With `after` alone they are those that follow it at once, else the newest; always newest first.
    """

    limit: int
    before_seq: int | None = None
    after_seq: int | None = None
    before_time: int | None = None
    after_time: int | None = None

    @property
    def forward(self) -> bool:
        """Whether it leads on towards the newest."""
        return self.after_seq is not None or self.after_time is not None


class Newest(NamedTuple):
    """How far a memory has got: the highest seq of an entry that is there, the highest version of the document.

    `given` is the highest seq that was ever given, also to an entry that was erased.
    """

    entries: int
    documents: int
    given: int


class Store(Protocol):
    """Where memories are kept."""

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
        drafts: Sequence[Draft],
    ) -> Memory:
        """Make a memory with documents and entries, all or none; makes the user too.

        Where this user has one of the id already, what is there is passed over and the rest added; where the id is
        taken otherwise, the memory gets a new one.
        """
        ...

    def memory(self, user: str, memory_id: str) -> Memory:
        """Return what is known about a memory."""
        ...

    def memories(self, user: str, *, deleted: bool = False) -> tuple[Memory, ...]:
        """Return the user's memories, oldest first; or those that were deleted and can be restored."""
        ...

    def delete(self, user: str, memory_id: str) -> None:
        """Hide a memory from everybody until it is restored."""
        ...

    def restore(self, user: str, memory_id: str) -> None:
        """Bring a deleted memory back."""
        ...

    def erase(self, user: str, memory_id: str) -> None:
        """Remove a memory, deleted or not, so that no byte of it is left in the store's files."""
        ...

    # Entries

    def add(self, user: str, memory_id: str, drafts: Sequence[Draft]) -> list[Kept]:
        """Store entries, all or none; one whose client key is known with the same payload is not stored again."""
        ...

    def find_key(self, user: str, memory_id: str, client_key: str) -> Entry | None:
        """Return the entry that was stored with a client key."""
        ...

    def seq_of(self, user: str, memory_id: str, entry_id: str) -> int:
        """Return the seq of an entry, or raise EntryMissing."""
        ...

    def page(self, user: str, memory_id: str, span: Span) -> list[Entry]:
        """Return entries, newest first."""
        ...

    def after(self, user: str, memory_id: str, seq: int, limit: int) -> list[Entry]:
        """Return the entries that follow a seq, oldest first."""
        ...

    def pick(self, user: str, memory_id: str, seqs: Collection[int]) -> dict[int, Entry]:
        """Return the entries of these seqs, as far as they are there."""
        ...

    def find(self, user: str, memory_id: str, where: Where) -> frozenset[int]:
        """Return the seqs of the entries for which all of `where` holds."""
        ...

    def erase_entry(self, user: str, memory_id: str, entry_id: str) -> None:
        """Remove an entry as `erase` does; its seq is not given again."""
        ...

    # Documents

    def put_document(self, user: str, memory_id: str, content: str) -> ContextDocument:
        """Store a new version of the document; it is the current one from now on."""
        ...

    def document(self, user: str, memory_id: str, version: int | None = None) -> ContextDocument:
        """Return a version of the document, by default the current one."""
        ...

    def documents(self, user: str, memory_id: str, after: int, limit: int) -> list[ContextDocument]:
        """Return the versions that follow one, oldest first."""
        ...

    def newest(self, user: str, memory_id: str) -> Newest:
        """Return how far a memory has got, read afresh."""
        ...

    def close(self) -> None:
        """Close files and connections; the next call opens them again."""
        ...


class StoreFeed:
    """What an index reads of one memory, for its owner."""

    def __init__(self, store: Store, user: str, memory_id: str) -> None:
        self._store = store
        self.user = user
        self.memory_id = memory_id

    def newest(self) -> tuple[int, int]:
        """Return the highest entry seq and the highest document version."""
        newest = self._store.newest(self.user, self.memory_id)
        return newest.entries, newest.documents

    def entries(self, after: int, limit: int) -> Sequence[Entry]:
        """Return entries with higher seqs, ascending."""
        return self._store.after(self.user, self.memory_id, after, limit)

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument]:
        """Return later versions, ascending."""
        return self._store.documents(self.user, self.memory_id, after, limit)


def is_id(text: object) -> bool:
    """Whether a text has the form of a memory's, entry's or document's id: 32 hexadecimal digits."""
    return isinstance(text, str) and len(text) == ID_CHARS and _HEX.issuperset(text)


def join_id(stem: bytes, number: int) -> str:
    """Return the id of an entry or a document: twelve random bytes, then its number in the memory."""
    return stem.hex() + number.to_bytes(4, "big").hex()


def split_id(text: str) -> tuple[bytes, int]:
    """Return the random bytes and the number of an id (`is_id`)."""
    return bytes.fromhex(text[:24]), int(text[24:], 16)


def memory_missing(memory_id: object, operation: str) -> MemoryMissing:
    """Return the one answer for every memory that this user does not have."""
    place = str(memory_id)[:ID_CHARS].encode("utf-8", "replace").decode()
    hint = "is it the right id, home and user?"
    return MemoryMissing("no such memory", operation=operation, place=place, hint=hint)
