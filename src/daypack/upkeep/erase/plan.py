"""Plan an erasure: what would change in sessions and memories, and what would not be reached. Nothing is written."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from daypack.errors import BadInput, Damaged, EntryMissing, MemoryMissing, SourceMissing
from daypack.history.layout import Home
from daypack.history.listing.index import index_paths
from daypack.history.logs.reader import decoder_of
from daypack.memory.backend import Backend, open_backend
from daypack.memory.store.port import Rewritten, Store
from daypack.plain_files import open_plain
from daypack.text.sentences import sentences
from daypack.types.history import Message
from daypack.types.memory import DamagedRecord, Entry, Memory
from daypack.upkeep.erase.backups import Holding, Searched, backups_holding
from daypack.upkeep.erase.copies import spellings_of
from daypack.upkeep.erase.log_lines import read_lines
from daypack.upkeep.erase.marker import Key, marker_of
from daypack.upkeep.erase.scope import (
    Elsewhere,
    Place,
    all_sessions,
    bound_memories,
    check_names,
    files_holding,
    other_caches,
    sessions_of,
)
from daypack.upkeep.erase.session_rewrite import SessionPlan, SessionRewrite
from daypack.upkeep.erase.target import COPIED_CHARS, Target, literal_target, message_target

_ID_DIGITS = 12


class Request(Struct, frozen=True, kw_only=True):
    """What to erase (one of the first three) and where; a session includes its children's and its bound memory."""

    literal: str | None = None
    message: str | int | None = None  # its number or id
    entry: str | None = None  # of a memory
    agent: str = "default"
    session: str | None = None
    everywhere: bool = False  # all sessions, live and archived, and all memories of the home
    memory: str | None = None  # id or title
    force: bool = False  # erase a very short literal


class Plan(Struct, frozen=True):
    """What an erasure changes. The id changes if anything of it does."""

    id: str
    sessions: tuple[SessionPlan, ...]
    memories: tuple[Rewritten, ...]
    elsewhere: tuple[Elsewhere, ...]  # what holds it and is not reached

    @property
    def is_empty(self) -> bool:
        """True if nothing was found."""
        return not self.sessions and not self.memories


class Erasure:
    """One request, resolved: its places, its memories and its target."""

    def __init__(self, home: Home, request: Request, *, create_key: bool = False) -> None:
        _check(request)
        self.home = home
        self.key = Key(home, create=create_key)
        self.places = self._find_places(request)
        bound, self._remote = bound_memories(self.places)
        self._memory_ids: frozenset[str] | None = None if request.everywhere else bound
        self.backend: Backend = open_backend(home)
        self.in_database = self.backend.server is not None
        self.has_store = self.in_database or os.path.exists(home.store)
        if request.memory is not None:
            self._memory_ids = (self._memory_ids or frozenset()) | {self._find_memory(request.memory)}
        self.target: Target
        self.change: Callable[[str], str]
        self._line = b""  # of a message
        if request.entry is not None:
            self._choose_entry(request.entry)
        elif request.message is not None:
            self._choose_message(request.message)
        else:
            self.target = literal_target(request.literal or "", self.key, force=request.force)
            check_names(self.places, self.target.spellings)
            self.change = self._replace

    def plan(self) -> Plan:
        """Return what would change."""
        sessions = tuple(
            plan
            for place in self.places
            if not is_nothing(plan := SessionRewrite(place.layout, self.target, self.key).plan(place.agent))
        )
        memories = tuple(self._memories())
        folders = (place.layout.folder for place in self.places)
        memory = () if self.in_database else (self.home.memory,)  # files from before stay as they are, and are listed
        reached = frozenset((*memory, os.path.dirname(self.home.find_index), *index_paths(self.home), *folders))
        elsewhere = (
            *self._remote,
            *(other_caches(self.home) if sessions else ()),
            *self._other_memories(memories),
            *files_holding(self.home, self.target.spellings, reached),
            *(holding.found for holding in self.backups),
        )
        named = [comparable(session, stored=self.home.database is not None) for session in sessions]
        encoded = msgspec.json.encode((self.target.kind, named, memories))
        return Plan(sha256(encoded).hexdigest()[:_ID_DIGITS], sessions, memories, elsewhere)

    def remaining(self) -> tuple[Elsewhere, ...]:
        """Return the files that hold a literal now; the sentences of an erased message may be said elsewhere."""
        if self.target.kind != "literal":
            return ()
        erased = [place.layout.folder for place in self.places]
        return tuple(files_holding(self.home, self.target.spellings, frozenset(), erased))

    @cached_property
    def backups(self) -> list[Holding]:
        """The known backups that hold it or may hold it, as found before anything is erased."""
        session = f"{self.places[0].agent}/{self.places[0].layout.name}" if self._line else ""
        return backups_holding(self.home, Searched(self.target, self.change, self._line, session))

    def rewrite_memories(self) -> tuple[Rewritten, ...]:
        """Erase from the memories; their search indexes are removed before and after, and made again when searched."""
        found = [memory.memory_id for memory in self._memories()]
        if not found:
            return ()
        for memory_id in found:
            self.backend.indexes.erase(memory_id)
        try:
            return tuple(self._store.rewrite(self.change, self._memory_ids))
        finally:
            for memory_id in found:
                self.backend.indexes.erase(memory_id)

    def close(self) -> None:
        """Close the store."""
        self.backend.close()

    @property
    def _store(self) -> Store:
        return self.backend.store

    def _memories(self) -> list[Rewritten]:
        if not self.has_store or self._memory_ids == frozenset():
            return []
        return self._store.rewrite(self.change, self._memory_ids, dry_run=True)

    def _other_memories(self, included: Sequence[Rewritten]) -> list[Elsewhere]:
        """Return the memories that hold the target and are not in the scope."""
        found = self._store.rewrite(self.change, None, dry_run=True) if self.has_store else []
        known = {memory.memory_id for memory in included}
        others = [memory for memory in found if memory.memory_id not in known]
        reason = "outside the scope: add --memory, or --all"
        return [Elsewhere(f"memory {memory.title} ({memory.memory_id})", reason, is_memory=True) for memory in others]

    def _replace(self, text: str) -> str:
        return self.target.spellings.replace(text, self.target.marker)

    def _find_places(self, request: Request) -> list[Place]:
        if request.everywhere:
            return all_sessions(self.home)
        return sessions_of(self.home, request.agent, request.session) if request.session else []

    def _owned(self) -> list[tuple[str, Memory]]:
        if not self.has_store:
            return []
        store = self._store
        users = [user.user_id for user in store.accounts.list()]
        return [
            (user, memory) for user in users for memory in (*store.memories(user), *store.memories(user, deleted=True))
        ]

    def _find_memory(self, name: str) -> str:
        owned = [memory for _, memory in self._owned()]
        found = [memory.memory_id for memory in owned if name in (memory.memory_id, memory.title)]
        if len(found) == 1:
            return found[0]
        problem = f"{len(found)} memories have this title" if found else "there is no such memory"
        raise MemoryMissing(problem, operation="erase", place=name, hint="name it by its id: `daypack memory list`")

    def _choose_message(self, name: str | int) -> None:
        if len(self.places) == 0:
            raise BadInput("session required", operation="erase", place="--message", hint="erase SESSION --message SEQ")
        self.places = self.places[:1]
        layout = self.places[0].layout
        digits = str(name).removeprefix("msg-")
        with open_plain(layout.messages) as log:
            for line in read_lines(log.read()):
                if line.record and str(line.seq) == digits:
                    message = structs.replace(decoder_of(Message).decode(line.record), seq=line.seq)
                    self.target = message_target(message, self.key)
                    self.change = self._replace
                    self._line = line.data
                    return
        hint = "give the number or id of a message: `daypack log` shows them"
        raise SourceMissing(f"no message {name}", operation="erase", place=layout.messages, hint=hint)

    def _choose_entry(self, entry_id: str) -> None:
        entry = self._find_entry(entry_id)
        said = {entry.raw_entry, entry.summary}
        parts = {part.text.strip() for text in said for part in sentences(text)} | said
        copied = sorted(part for part in parts if len(part) >= COPIED_CHARS)
        digest = self.key.digest(entry.raw_entry.encode())
        marker = marker_of(digest)
        spellings = spellings_of(copied or (f"\0{digest}",))
        self.places, self._memory_ids = [], frozenset((entry.memory_id,))
        self.target = Target("entry", digest, marker, spellings)
        self.change = lambda text: marker if text in said else spellings.replace(text, marker)

    def _find_entry(self, entry_id: str) -> Entry:
        for user, memory in self._owned():
            if self._memory_ids and memory.memory_id not in self._memory_ids:
                continue
            try:
                seq = self._store.seq_of(user, memory.memory_id, entry_id)
            except (EntryMissing, MemoryMissing):
                continue
            found = self._store.pick(user, memory.memory_id, (seq,))[seq]
            if isinstance(found, DamagedRecord):
                hint = f"erase it whole with `daypack memory erase {memory.memory_id[:8]} --entry {entry_id[:8]} --yes`"
                raise Damaged(
                    "the entry is damaged, so its copies are unknown", operation="erase", place=entry_id, hint=hint
                )
            return found
        hint = "`daypack memory show MEMORY` lists entries with their ids"
        raise EntryMissing("no such entry", operation="erase", place=entry_id, hint=hint)


def plan(home: Home, request: Request) -> Plan:
    """Return what an erasure would change; nothing is written."""
    erasure = Erasure(home, request)
    try:
        return erasure.plan()
    finally:
        erasure.close()


def comparable(found: SessionPlan, *, stored: bool) -> SessionPlan:
    """Return the part of a plan that its id stands for: a moved home has the same, and so has every worker.

    Of a session in a database (`stored`), a worker has files of its own.
    """
    own = {"files": (), "derived": ()} if stored else {}
    return structs.replace(found, path="", **own)


def is_nothing(found: SessionPlan) -> bool:
    """Return True if nothing of a session changes."""
    return not any(getattr(found, name) for name in ("messages", "events", "marked", "blobs", "files", "derived"))


def _check(request: Request) -> None:
    hint = "erase SESSION --literal TEXT, erase SESSION --message SEQ, or erase --entry ID"
    given = [name for name in ("literal", "message", "entry") if getattr(request, name) is not None]
    if len(given) != 1:
        problem = "what to erase is required" if not given else f"{' and '.join(given)} cannot be combined"
        raise BadInput(problem, operation="erase", place="arguments", hint=hint)
    if request.session and request.everywhere:
        raise BadInput("a session and --all cannot be combined", operation="erase", place="arguments", hint=hint)
    scoped = request.session or request.everywhere or request.memory
    if not scoped and given != ["entry"]:
        problem = "session required, or --all, or --memory"
        raise BadInput(problem, operation="erase", place="arguments", hint=hint)
    if request.everywhere and given == ["message"]:
        raise BadInput("--message takes one session", operation="erase", place="arguments", hint=hint)
