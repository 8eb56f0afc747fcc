"""Import the memory store of another system: one memory for each of its users, an entry for each of its memories.

What an import keeps is what `daypack audit` says. The client key of an entry is the id in the store with a digest of
the text: importing again adds what is new or has changed. A memory that the user erased does not come back.
"""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from daypack.errors import BadInput, QuotaExceeded
from daypack.history.layout import Home
from daypack.importers.audit.keep import choose
from daypack.importers.stores.records import StoredMemory
from daypack.importers.stores.systems import open_store
from daypack.memory.store.port import NewDocument, NewMemory, join_id
from daypack.memory.tools import Memories, open_memory
from daypack.types.digest import digest_bytes
from daypack.types.memory import DESCRIPTION_MAX_CHARS, PLACEHOLDER, TITLE_MAX_CHARS
from daypack.types.names import one_line

USER = "local"
MEMORY = "#memory"  # in the ledger, in the place of an agent
_FOLDERS = ("mem0",)  # the store is a folder, and the file in it changes with every memory
_ID_CHARS = 32
_STEM_BYTES = 12
_KEY_CHARS = 100


class ImportedMemories(NamedTuple):
    """What a store has brought: memories as #memory/ID, those of erased ones left out, and the new entries."""

    memories: tuple[str, ...] = ()
    entries: int = 0
    erased: int = 0
    refused: tuple[str, ...] = ()  # why entries were refused


def import_store(home: Home, path: str, system: str, known: Sequence[str]) -> ImportedMemories:
    """Import the store that a file belongs to; `known` are the memories that it has brought before."""
    store = open_store(path, system)
    if system in _FOLDERS:
        store = open_store(os.path.dirname(path), system)
    stored = [record for record in store.read() if isinstance(record, StoredMemory)]
    by_user: dict[str, list[StoredMemory]] = {}
    for memory in choose(stored).memories:
        by_user.setdefault(memory.owner.user, []).append(memory)
    brought = ImportedMemories(tuple(known))
    with open_memory(home=home.root, uid=home.uid, user=USER) as memories:
        for user, of_user in sorted(by_user.items()):
            memory_id = _id(system, user)
            name = f"{MEMORY}/{memory_id}"
            if not _is_there(memories, memory_id):
                if name in known or _is_hidden(memories, memory_id):
                    brought = brought._replace(erased=brought.erased + 1)
                    continue
                _create(memories, memory_id, f"{store.system.title}: {user}" if user else store.system.title, path)
            entries, refused = _add(memories, memory_id, of_user)
            names = tuple(dict.fromkeys((*brought.memories, name)))
            brought = ImportedMemories(names, brought.entries + entries, brought.erased, (*brought.refused, *refused))
    return brought


def _add(memories: Memories, memory_id: str, of_user: Iterable[StoredMemory]) -> tuple[int, list[str]]:
    """Add the entries that are not there yet, the oldest first; return how many were, and why others were refused."""
    entries, refused = 0, list[str]()
    for memory in sorted(of_user, key=lambda each: each.written_at):
        about = {"at": memory.written_at or None, "author": memory.owner.agent or None, "tags": memory.tags}
        key = f"{memory.id[:_KEY_CHARS]}:{digest_bytes(memory.text.encode())[-16:]}"
        try:
            added = memories.add_entry(memory_id, memory.text, about=about, client_key=key)
        except QuotaExceeded:
            raise
        except BadInput as error:
            refused.append(f"{one_line(memory.id)}: {error.problem}")
            continue
        entries += not added.replayed
    return entries, refused


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


def _id(system: str, user: str) -> str:
    return digest_bytes(f"daypack memory\0store\0{system}\0{user}".encode()).partition(":")[2][:_ID_CHARS]
