"""What of a session may go, decided file by file: by age, by who refers to it, by whether it can be made again."""

import os
import re
import stat
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from daypack.derived.child_files import FILES, WORDS, Files
from daypack.files import atomic
from daypack.history.session import History
from daypack.types.records import DedupRecord, Ref, SwapRecord
from daypack.upkeep.gc.policy import Policy, spell_duration
from daypack.upkeep.gc.reachability import Named, Reach, read_index
from daypack.upkeep.gc.tree import files_in, leftovers, names_in, plain, size_of

Kind = Literal["pack", "temporary", "swap", "child", "dedup"]
KINDS: tuple[Kind, ...] = ("pack", "temporary", "swap", "child", "dedup")  # in the order in which they go
LEFTOVER_SECONDS = 86400  # a write takes no day: what is older was left by a crash
_SETTLING_SECONDS = 3600  # a blob comes before the line that names it
_DIGEST = re.compile(r"sha256-[0-9a-f]{64}")
_UNKNOWN = "something is damaged, and what it referred to is not known"


class Going(Struct, frozen=True):
    """A file or folder that may go; its path is relative to the session."""

    kind: Kind
    path: str
    bytes: int
    why: str


class Staying(Struct, frozen=True):
    """Something that stays, and why."""

    kind: str
    path: str
    bytes: int
    why: str


class Missing(Struct, frozen=True):
    """Something that is referred to and neither there nor to be made again."""

    path: str
    why: str


class Plan(Struct, frozen=True, kw_only=True):
    """What would go, what stays, and what is missing, at one point in time."""

    session: str
    now: float
    policy: Policy
    children: bool = False
    going: tuple[Going, ...] = ()
    staying: tuple[Staying, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def bytes(self) -> int:
        """What would be freed."""
        return sum(one.bytes for one in self.going)


class Inspection:
    """One look at a session; a second one reads from the logs only what is new."""

    def __init__(self, history: History, policy: Policy, now: float, *, children: bool) -> None:
        self._history = history
        self._layout = history.layout
        self._policy = policy
        self._now = now
        self._children = children
        self.reach = Reach(history)
        self._going: list[Going] = []
        self._staying: list[Staying] = []
        self._missing: list[Missing] = []

    def decide(self) -> Plan:
        """Return what may go as files and logs are now."""
        self._going, self._staying, self._missing = [], [], []
        self.reach.catch_up()
        named = self.reach.named()
        self._captured()
        self._packs()
        self._leftovers()
        swapped = self._chunks(named)
        self._children_of(named)
        self._blobs(named, swapped)
        self._always()
        return Plan(
            session=self._layout.name,
            now=self._now,
            policy=self._policy,
            children=self._children,
            going=tuple(self._going),
            staying=tuple(self._staying),
            missing=tuple(self._missing),
        )

    def _go(self, kind: Kind, path: str, size: int, why: str) -> None:
        self._going.append(Going(kind, self._relative(path), size, why))

    def _stay(self, kind: str, path: str, size: int, why: str) -> None:
        self._staying.append(Staying(kind, self._relative(path), size, why))

    def _lack(self, path: str, why: str) -> None:
        self._missing.append(Missing(self._relative(path), why))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._layout.folder)

    def _age(self, found: os.stat_result) -> float:
        return self._now - found.st_mtime

    def _captured(self) -> None:
        there = set(names_in(self._layout.blob))
        for name, who in self.reach.blobs.items():
            if name not in there:
                self._lack(os.path.join(self._layout.blob, name), f"{who} refers to it")

    def _packs(self) -> None:
        ttl = self._policy.pack_ttl_seconds
        for name in ("pack", "pack_text"):
            path = self._layout.derived(name)
            found = plain(path)
            if found is None:
                continue
            if self._age(found) >= ttl:
                self._go("pack", path, found.st_size, f"older than {spell_duration(ttl)}; the next turn makes it again")
            else:
                self._stay("pack", path, found.st_size, f"younger than {spell_duration(ttl)}")

    def _leftovers(self) -> None:
        for path, found in leftovers(self._layout.folder, self._layout.context):
            if self._age(found) >= LEFTOVER_SECONDS:
                self._go("temporary", path, size_of(path), "left by a write that did not finish")
            else:
                self._stay("temporary", path, size_of(path), "younger than a day: somebody may be writing it")

    def _chunks(self, named: Named) -> dict[str, SwapRecord]:
        folder = self._layout.derived("swap")
        chunks = os.path.join(folder, "chunk")
        records = read_index(os.path.join(folder, "index.jsonl"), SwapRecord)
        swapped: dict[str, SwapRecord] = {record.id: record for _, record in records if record}
        names = names_in(folder, "chunk")
        for name in names:
            path = os.path.join(chunks, name)
            found = plain(path)
            if found and not name.startswith(atomic.TEMPORARY):
                why = self._keeps_chunk(name, path, found, named)
                if why:
                    self._stay("swap", path, found.st_size, why)
                else:
                    self._go("swap", path, found.st_size, "nobody refers to it, and history gives it again")
        self.reach.read_outputs(swapped.values())
        for name, record in swapped.items():
            if name not in names and _DIGEST.fullmatch(name) and not self.reach.can_make_record(record):
                path = os.path.join(chunks, name)
                self._lack(path, "the swap index refers to it, and history does not give it again")
        self._lack_refs(chunks, {*names, *swapped})
        return swapped

    def _lack_refs(self, chunks: str, known: set[str]) -> None:
        for _, ref in read_index(self._layout.derived("refs"), Ref):
            if ref is None:
                continue
            name = os.path.basename(ref.path)
            of_chunk = ref.path == f"context/swap/chunk/{name}" and _DIGEST.fullmatch(name)
            if of_chunk and name not in known and not self.reach.can_make_ref(ref):
                self._lack(os.path.join(chunks, name), f"refs.jsonl ({ref.id}) refers to it")

    def _keeps_chunk(self, name: str, path: str, found: os.stat_result, named: Named) -> str:
        """Return why a chunk stays; nothing when it may go."""
        if not _DIGEST.fullmatch(name):
            return "its name is not that of a chunk"
        if self._age(found) < self._policy.swap_ttl_seconds:
            return f"younger than {spell_duration(self._policy.swap_ttl_seconds)}"
        if who := named.digest(name):
            return f"{who[0]} refers to it"
        if self.reach.damaged:
            return _UNKNOWN
        if not self.reach.can_make_chunk(name, atomic.read(path) or b""):
            return "history does not give it again"
        return ""

    def _children_of(self, named: Named) -> None:
        folder = self._layout.derived("child")
        names = [name for name in names_in(folder) if os.path.isdir(os.path.join(folder, name))]
        recorded = self.reach.recorded_children() if names and self._children else {}
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                why = self._keeps_child(name, path, named, recorded.get(name, {}))
                if why:
                    self._stay("child", path, size_of(path), why)
                else:
                    self._go("child", path, size_of(path), "it is done, nobody refers to it, and the events have it")

    def _keeps_child(self, name: str, path: str, named: Named, recorded: Files) -> str:
        """Return why a child stays; nothing when it may go."""
        if not self._children:
            return "children stay unless they are asked for"
        result, status = (plain(os.path.join(path, file)) for file in (FILES["result"], WORDS["status"]))
        if result is None or (status and (atomic.read(os.path.join(path, WORDS["status"])) or b"").strip() != b"done"):
            return "it is not done"
        files = files_in(path)
        if not all(stat.S_ISREG(found.st_mode) for found in files.values()):
            return "it holds more than plain files"
        if min(self._age(found) for found in files.values()) < self._policy.swap_ttl_seconds:
            return f"younger than {spell_duration(self._policy.swap_ttl_seconds)}"
        if who := named.child(name):
            return f"{who[0]} refers to it"
        if self.reach.damaged:
            return _UNKNOWN
        for file in files:
            if file not in recorded or recorded[file]() != atomic.read(os.path.join(path, file)):
                return f"the events do not have its {file}"
        return ""

    def _blobs(self, named: Named, swapped: Mapping[str, SwapRecord]) -> None:
        folder = self._layout.derived("dedup")
        place = os.path.join(folder, "blob")
        lines = read_index(os.path.join(folder, "index.jsonl"), DedupRecord)
        index = {blob_name(record) for _, record in lines if record} - {""}
        there = {name for name in names_in(folder, "blob") if not name.startswith(atomic.TEMPORARY)}
        chunks = self._named_by_chunks() if there else Named()
        for name in sorted(there):
            path = os.path.join(place, name)
            found = plain(path)
            if found is None:
                continue
            said = self.reach.occurrences(name, swapped.values()), self.reach.mentions(name)
            refs = dict.fromkeys((*said[0], *said[1], *named.digest(name), *chunks.digest(name)))
            kept, why = self._keeps_blob(name, len(refs), listed=name in index, age=self._age(found))
            if kept:
                self._stay("dedup", path, found.st_size, why)
            else:
                self._go("dedup", path, found.st_size, why)
        for name in sorted(index - there):
            if not self.reach.occurrences(name, swapped.values()):
                self._lack(os.path.join(place, name), "the dedup index refers to it, and history does not hold it")

    def _keeps_blob(self, name: str, refs: int, *, listed: bool, age: float) -> tuple[bool, str]:
        """Return whether a blob stays, and why."""
        least = self._policy.dedup_min_refs
        if not _DIGEST.fullmatch(name):
            return True, "its name is not that of a blob"
        if refs >= least:
            return True, f"{refs} reference{'' if refs == 1 else 's'}, and {least} would do"
        if not listed and age < _SETTLING_SECONDS:
            return True, "just written: what refers to it may follow"
        if self.reach.damaged:
            return True, _UNKNOWN
        return False, f"{refs} reference{'' if refs == 1 else 's'}, and {least} would be needed"

    def _named_by_chunks(self) -> Named:
        found = Named()
        place = os.path.join(self._layout.derived("swap"), "chunk")
        for name in names_in(self._layout.derived("swap"), "chunk"):
            path = os.path.join(place, name)
            if plain(path):
                found.take(f"swap:{name}", (atomic.read(path) or b"").decode("utf-8", "replace"), children=False)
        return found

    def _always(self) -> None:
        layout = self._layout
        for path, why in (
            (layout.messages, "history"),
            (layout.events, "history"),
            (layout.blob, "captured text"),
            (layout.pinned, "pinned"),
            (layout.derived("budget"), "set by hand"),
            (layout.derived("gc_policy"), "set by hand"),
        ):
            if os.path.lexists(path):
                self._stay("kept", path, size_of(path), f"{why}: never collected")


def blob_name(record: DedupRecord) -> str:
    """Return the file name of the blob an index line tells of; empty when it tells of none."""
    name = record.hash.replace(":", "-", 1)
    return name if _DIGEST.fullmatch(name) else ""
