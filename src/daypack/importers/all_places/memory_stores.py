"""Import the memory store of another system: a memory for each of its owners, an entry for each memory that it keeps.

What an import keeps is what `daypack audit` says. An entry is the text with its subject; a text above the limit of an
entry is split between paragraphs. The client key of an entry is a digest of the id in the store and of the text:
importing again adds what is new or has changed. A memory that the user erased does not come back.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from daypack.errors import BadInput, QuotaExceeded
from daypack.history.layout import Home
from daypack.importers.audit.keep import choose
from daypack.importers.places import PLACES, PlacedFile
from daypack.importers.stores import daypack_memory
from daypack.importers.stores.records import Owner, StoredMemory, Unreadable
from daypack.importers.stores.store_files import is_sqlite
from daypack.importers.stores.systems import Store
from daypack.memory.limits import Limits
from daypack.memory.store.port import NewDocument, NewMemory, join_id
from daypack.memory.times import parse_time
from daypack.memory.tools import Memories, open_memory
from daypack.types.digest import digest_bytes
from daypack.types.memory import DESCRIPTION_MAX_CHARS, PLACEHOLDER, TITLE_MAX_CHARS
from daypack.types.names import one_line

USER = "local"
MEMORY = "#memory"  # in the ledger, in the place of an agent
_FOLDERS = ("basic-memory", "mem0")  # the store is the folder of the place: duplicates are decided over all of it
_ID_CHARS = 32
_STEM_BYTES = 12
_BREAKS = (re.compile(r"\n[ \t]*\n\s*"), re.compile(r"\n"), re.compile(r"(?<=[.!?。！？])\s*"), re.compile(r"\s"))


class Filled(NamedTuple):
    """A memory that a store has filled: how many of the store's memories are in it, and how many entries are new."""

    memory_id: str
    title: str
    memories: int
    new_entries: int


class ImportedMemories(NamedTuple):
    """What a store has brought: memories as #memory/ID, those of erased ones left out, and the new entries."""

    memories: tuple[str, ...] = ()
    entries: int = 0
    erased: int = 0
    refused: tuple[str, ...] = ()  # why entries were refused
    stored: int = 0  # memories in the store
    filled: tuple[Filled, ...] = ()
    unreadable: tuple[str, ...] = ()  # places in the store, and why
    hidden: tuple[str, ...] = ()  # ids of memories that the user hid or erased, and that were not filled
    left_out: int = 0  # memories of the store that say nothing new


def store_path(file: PlacedFile, system: str) -> str:
    """Return the store that a file belongs to: the file, or the folder of the place that it was found in."""
    is_part = system in _FOLDERS and file.root and file.root != file.path
    return file.root if is_part else file.path


def fill_memories(
    home: Home, store: Store, known: Sequence[str] = (), progress: Callable[[int], None] = lambda _: None
) -> ImportedMemories:
    """Import a store; `known` are the memories that it has brought before."""
    if is_own(home, store):
        hint = "`daypack memory list` shows them; --home DIR names another home"
        raise BadInput("these memories are in this home already", operation="import", place=store.path, hint=hint)
    records = list(store.read())
    stored = [record for record in records if isinstance(record, StoredMemory)]
    by_owner: dict[tuple[str, str], list[StoredMemory]] = {}
    kept = choose(stored).memories
    for memory in kept:
        by_owner.setdefault(_owner(memory.owner), []).append(memory)
    unreadable = tuple(f"{each.place}: {each.problem}" for each in records if isinstance(each, Unreadable))
    brought = ImportedMemories(tuple(known), stored=len(stored), left_out=len(stored) - len(kept))
    brought = brought._replace(unreadable=unreadable)
    with open_memory(home=home.root, uid=home.uid, user=USER) as memories:
        for owner, of_owner in sorted(by_owner.items()):
            memory_id = _id(store, *owner)
            name = f"{MEMORY}/{memory_id}"
            title = _title(store, owner[1])
            if not _is_there(memories, memory_id):
                if name in known or _is_hidden(memories, memory_id):
                    brought = brought._replace(erased=brought.erased + 1, hidden=(*brought.hidden, memory_id))
                    continue
                _create(memories, memory_id, title, store.path)
            before = sum(filled.memories for filled in brought.filled)
            entries, refused = _add(memories, memory_id, of_owner, lambda done, before=before: progress(before + done))
            filled = Filled(memory_id, one_line(title)[:TITLE_MAX_CHARS], len(of_owner) - len(refused), entries)
            brought = brought._replace(
                memories=tuple(dict.fromkeys((*brought.memories, name))),
                entries=brought.entries + entries,
                refused=(*brought.refused, *refused),
                filled=(*brought.filled, filled),
            )
    return brought


def is_own(home: Home, store: Store) -> bool:
    """Return True if a store has the memories of a home."""
    if store.system.name != daypack_memory.NAME or not (os.path.isdir(store.path) or is_sqlite(store.path)):
        return False
    own, path = os.path.realpath(home.folder), os.path.realpath(store.path)
    return os.path.commonpath((own, path)) in (own, path)


def _add(
    memories: Memories, memory_id: str, kept: Iterable[StoredMemory], progress: Callable[[int], None]
) -> tuple[int, list[str]]:
    """Add the entries that are not there yet, the oldest first; return how many were, and why others were refused."""
    entries, refused = 0, list[str]()
    limits = memories.backend.limits
    for number, memory in enumerate(sorted(kept, key=lambda each: each.written_at), 1):
        progress(number)
        about = _about(memory, limits)
        try:
            for text in _texts(memory, limits.entry_bytes):
                key = digest_bytes(f"{memory.id}\0{text}".encode())
                if memories.backend.store.find_key(USER, memory_id, key):
                    continue  # its time or its tags may have changed: the entry keeps those of its first import
                entries += not memories.add_entry(memory_id, text, about=about, client_key=key).replayed
        except QuotaExceeded:
            raise
        except BadInput as error:
            refused.append(f"{one_line(memory.id)}: {error.problem}")
    return entries, refused


def _about(memory: StoredMemory, limits: Limits) -> dict[str, Any]:
    """Return the time, author and tags of an entry, as far as they can be stored."""
    tags = dict.fromkeys(one_line(tag)[: limits.tag_chars].strip() for tag in memory.tags)
    return {
        "at": memory.written_at if parse_time(memory.written_at) is not None else None,
        "author": one_line(memory.owner.agent)[: limits.about_chars].strip() or None,
        "tags": tuple(filter(None, tags))[: limits.tags],
    }


def _texts(memory: StoredMemory, limit: int) -> Iterator[str]:
    """Yield the texts of the entries of a memory, each with its subject."""
    if len(memory.statement.encode()) <= limit:
        yield memory.statement
        return
    head = f"{memory.subject}: " if memory.subject else ""
    head = head if len(head.encode()) < limit // 2 else ""
    rest, room = memory.text.strip(), limit - len(head.encode())
    while rest:
        part = rest if len(rest.encode()) <= room else _first_part(rest.encode()[:room].decode(errors="ignore"))
        if part.strip():
            yield f"{head}{part.rstrip()}"
        rest = rest[len(part) or 1 :].lstrip("\n")


def _first_part(text: str) -> str:
    """Return a text up to its last border: of a paragraph, else of a line, a sentence or a word."""
    for border in _BREAKS:
        if ends := [found.end() for found in border.finditer(text) if found.start() >= len(text) // 4]:
            return text[: ends[-1]]
    return text


def _owner(owner: Owner) -> tuple[str, str]:
    """Return the kind and the name of the owner whose memories are kept together."""
    kinds = (("user", owner.user), ("agent", owner.agent), ("project", owner.project))
    return next(((kind, name) for kind, name in kinds if name), ("", ""))


def _is_there(memories: Memories, memory_id: str) -> bool:
    return memory_id in {memory.memory_id for memory in memories.memories()}


def _is_hidden(memories: Memories, memory_id: str) -> bool:
    return memory_id in {memory.memory_id for memory in memories.memories(deleted=True)}


def _create(memories: Memories, memory_id: str, title: str, path: str) -> None:
    """Create a memory with this id, unless another process has just done it."""
    description = one_line(f"Imported from {path}")[:DESCRIPTION_MAX_CHARS]
    new = NewMemory(
        title=one_line(title)[:TITLE_MAX_CHARS], memory_type="chat", description=description, memory_id=memory_id
    )
    document = NewDocument(PLACEHOLDER, document_id=join_id(bytes.fromhex(memory_id)[:_STEM_BYTES], 1))
    memories.backend.store.load(USER, new, (document,), ())


def _title(store: Store, name: str) -> str:
    source = _source(store)
    if not name and source == os.path.realpath(store.path):
        name = os.path.basename(source)
    return f"{store.system.title}: {name}" if name and name != store.system.name else store.system.title


def _id(store: Store, kind: str, name: str) -> str:
    """Return the id of an owner's memory; if the store names no owner, its place tells it from others of the system."""
    named = f"daypack memory\0store\0{store.system.name}\0{kind}\0{name or _source(store)}"
    return digest_bytes(named.encode("utf-8", "surrogateescape")).partition(":")[2][:_ID_CHARS]


def _source(store: Store) -> str:
    """Return where a store is: the known place that it is in, else its path."""
    path = os.path.realpath(store.path)
    for place in PLACES.values():
        root = os.path.realpath(place.folder.find(os.environ))
        if place.format == store.system.name and path.startswith(os.path.join(root, "")):
            return root
    return path
