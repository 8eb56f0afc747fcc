"""Plan garbage collection: decide for each derived file whether it can be removed, and why.

Removable are packs, swap chunks that history can reproduce, unreferenced dedup blobs, temporary files of crashed
writers, and finished children if requested. Logs, captured text, pins, the budget and the policy are never removed.
"""

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
from daypack.upkeep.gc.policy import Policy, format_duration
from daypack.upkeep.gc.reachability import Reachability
from daypack.upkeep.gc.references import References, read_index
from daypack.upkeep.gc.session_files import files_in, names_in, regular_file, size_of, temporary_files

RemovableKind = Literal["pack", "temporary", "swap", "child", "dedup"]
RetainedKind = Literal["pack", "temporary", "swap", "child", "dedup", "permanent"]
REMOVAL_ORDER: tuple[RemovableKind, ...] = ("pack", "temporary", "swap", "child", "dedup")
TEMPORARY_SECONDS = 86400  # no write takes a day: an older temporary file was left by a crash
_NEW_BLOB_SECONDS = 3600  # a blob is written before the line that refers to it
_DIGEST = re.compile(r"sha256-[0-9a-f]{64}")
_DAMAGED = "references cannot be determined: part of the session is damaged"


class Removal(Struct, frozen=True):
    """A file or folder that can be removed; its path is relative to the session."""

    kind: RemovableKind
    path: str
    bytes: int
    reason: str


class Retained(Struct, frozen=True):
    """A file or folder that is kept; its path is relative to the session."""

    kind: RetainedKind
    path: str
    bytes: int
    reason: str


class Missing(Struct, frozen=True):
    """A file that is referenced, does not exist and cannot be reproduced."""

    path: str
    reason: str


class Plan(Struct, frozen=True, kw_only=True):
    """The decision for every file of a session at one point in time."""

    session: str
    now: float
    policy: Policy
    children: bool = False
    removals: tuple[Removal, ...] = ()
    retained: tuple[Retained, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def bytes(self) -> int:
        """Total size of the removals."""
        return sum(removal.bytes for removal in self.removals)


def plan(history: History, policy: Policy, now: float, *, children: bool = False) -> Plan:
    """Return what can be removed, without writing anything; `children`: include finished, unreferenced children."""
    return Planner(history, policy, now, children=children).decide()


_MOST_READS = 5  # of a cache, while erasures change its session


class Planner:
    """Decides file by file; a second `decide` reads only the log lines appended since the first."""

    def __init__(self, history: History, policy: Policy, now: float, *, children: bool) -> None:
        self._history = history
        self._layout = history.layout
        self._blobs = history.blobs
        self._policy = policy
        self._now = now
        self._include_children = children
        self.reachability = Reachability(history)
        self._removals: list[Removal] = []
        self._retained: list[Retained] = []
        self._missing: list[Missing] = []

    def decide(self) -> Plan:
        """Return the plan for the files and logs as they are now.

        In a cache a file may be missing because an erasure has replaced the logs that refer to it: they are read again.
        """
        planned = self._decide()
        for _ in range(_MOST_READS if self._history.is_cache else 0):
            if not planned.missing:
                break
            self._history.refresh()
            self.reachability = Reachability(self._history)
            planned = self._decide()
        return planned

    def _decide(self) -> Plan:
        self._removals, self._retained, self._missing = [], [], []
        self.reachability.catch_up()
        references = self.reachability.references()
        self._check_captured_text()
        self._decide_packs()
        self._decide_temporary_files()
        swapped = self._decide_chunks(references)
        self._decide_children(references)
        self._decide_blobs(references, swapped)
        self._list_permanent_files()
        return Plan(
            session=self._layout.name,
            now=self._now,
            policy=self._policy,
            children=self._include_children,
            removals=tuple(self._removals),
            retained=tuple(self._retained),
            missing=tuple(self._missing),
        )

    def _remove(self, kind: RemovableKind, path: str, size: int, reason: str) -> None:
        self._removals.append(Removal(kind, self._relative(path), size, reason))

    def _retain(self, kind: RetainedKind, path: str, size: int, reason: str) -> None:
        self._retained.append(Retained(kind, self._relative(path), size, reason))

    def _report_missing(self, path: str, reason: str) -> None:
        self._missing.append(Missing(self._relative(path), reason))

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._layout.folder)

    def _age(self, facts: os.stat_result) -> float:
        return self._now - facts.st_mtime

    def _check_captured_text(self) -> None:
        names = set(names_in(self._layout.blob))
        for name, referrer in self.reachability.captured.items():
            if name not in names and not self._blobs.has(name):  # a cache fetches it when it is read
                self._report_missing(os.path.join(self._layout.blob, name), f"referenced by {referrer}")

    def _decide_packs(self) -> None:
        ttl = self._policy.pack_ttl_seconds
        for name in ("pack", "pack_text"):
            path = self._layout.derived(name)
            facts = regular_file(path)
            if facts is None:
                continue
            if self._age(facts) >= ttl:
                reason = f"older than {format_duration(ttl)}; the next turn writes a new one"
                self._remove("pack", path, facts.st_size, reason)
            else:
                self._retain("pack", path, facts.st_size, f"younger than {format_duration(ttl)}")

    def _decide_temporary_files(self) -> None:
        for path, facts in temporary_files(self._layout.folder, self._layout.context):
            if self._age(facts) >= TEMPORARY_SECONDS:
                self._remove("temporary", path, size_of(path), "left by an interrupted write")
            else:
                self._retain("temporary", path, size_of(path), "younger than 1d: a write may be in progress")

    def _decide_chunks(self, references: References) -> dict[str, SwapRecord]:
        """Decide on swap chunks and return the records of the swap index by chunk name."""
        folder = self._layout.derived("swap")
        chunk_folder = os.path.join(folder, "chunk")
        records = read_index(os.path.join(folder, "index.jsonl"), SwapRecord)
        swapped: dict[str, SwapRecord] = {record.id: record for _, record in records if record}
        names = names_in(folder, "chunk")
        for name in names:
            path = os.path.join(chunk_folder, name)
            facts = regular_file(path)
            if facts and not name.startswith(atomic.TEMPORARY):
                reason = self._reason_to_keep_chunk(name, path, facts, references)
                if reason:
                    self._retain("swap", path, facts.st_size, reason)
                else:
                    self._remove("swap", path, facts.st_size, "unreferenced, and history can reproduce it")
        self.reachability.read_outputs(swapped.values())
        for name, record in swapped.items():
            if name not in names and _DIGEST.fullmatch(name) and not self.reachability.can_make_record(record):
                reason = "referenced by the swap index, and history cannot reproduce it"
                self._report_missing(os.path.join(chunk_folder, name), reason)
        self._check_refs(chunk_folder, {*names, *swapped})
        return swapped

    def _check_refs(self, chunk_folder: str, known: set[str]) -> None:
        for _, ref in read_index(self._layout.derived("refs"), Ref):
            if ref is None:
                continue
            name = os.path.basename(ref.path)
            is_chunk = ref.path == f"context/swap/chunk/{name}" and _DIGEST.fullmatch(name)
            if is_chunk and name not in known and not self.reachability.can_make_ref(ref):
                self._report_missing(os.path.join(chunk_folder, name), f"referenced by refs.jsonl ({ref.id})")

    def _reason_to_keep_chunk(self, name: str, path: str, facts: os.stat_result, references: References) -> str:
        """Return why a chunk is kept; empty if it can be removed."""
        if not _DIGEST.fullmatch(name):
            return "not a chunk file name"
        if self._age(facts) < self._policy.swap_ttl_seconds:
            return f"younger than {format_duration(self._policy.swap_ttl_seconds)}"
        if referrers := references.to_digest(name):
            return f"referenced by {referrers[0]}"
        if self.reachability.damaged:
            return _DAMAGED
        if not self.reachability.can_make_chunk(name, atomic.read(path) or b""):
            return "history cannot reproduce it"
        return ""

    def _decide_children(self, references: References) -> None:
        folder = self._layout.derived("child")
        names = [name for name in names_in(folder) if os.path.isdir(os.path.join(folder, name))]
        recorded = self.reachability.recorded_children() if names and self._include_children else {}
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                reason = self._reason_to_keep_child(name, path, references, recorded.get(name, {}))
                if reason:
                    self._retain("child", path, size_of(path), reason)
                else:
                    self._remove("child", path, size_of(path), "done, unreferenced, and recorded in events.jsonl")

    def _reason_to_keep_child(self, name: str, path: str, references: References, recorded: Files) -> str:
        """Return why a child is kept; empty if it can be removed."""
        if not self._include_children:
            return "children are kept unless --children is given"
        result, status = (regular_file(os.path.join(path, file)) for file in (FILES["result"], WORDS["status"]))
        if result is None or (status and (atomic.read(os.path.join(path, WORDS["status"])) or b"").strip() != b"done"):
            return "not done"
        files = files_in(path)
        if not all(stat.S_ISREG(facts.st_mode) for facts in files.values()):
            return "contains something other than regular files"
        if min(self._age(facts) for facts in files.values()) < self._policy.swap_ttl_seconds:
            return f"younger than {format_duration(self._policy.swap_ttl_seconds)}"
        if referrers := references.to_child(name):
            return f"referenced by {referrers[0]}"
        if self.reachability.damaged:
            return _DAMAGED
        for file in files:
            if file not in recorded or recorded[file]() != atomic.read(os.path.join(path, file)):
                return f"{file} is not recorded in events.jsonl"
        return ""

    def _decide_blobs(self, references: References, swapped: Mapping[str, SwapRecord]) -> None:
        folder = self._layout.derived("dedup")
        blob_folder = os.path.join(folder, "blob")
        lines = read_index(os.path.join(folder, "index.jsonl"), DedupRecord)
        indexed = {blob_name(record) for _, record in lines if record} - {""}
        names = {name for name in names_in(folder, "blob") if not name.startswith(atomic.TEMPORARY)}
        chunk_references = self._references_in_chunks() if names else References()
        for name in sorted(names):
            path = os.path.join(blob_folder, name)
            facts = regular_file(path)
            if facts is None:
                continue
            occurrences = self.reachability.occurrences(name, swapped.values())
            mentions = self.reachability.mentions(name)
            referrers = {*occurrences, *mentions, *references.to_digest(name), *chunk_references.to_digest(name)}
            keep, reason = self._judge_blob(name, len(referrers), indexed=name in indexed, age=self._age(facts))
            if keep:
                self._retain("dedup", path, facts.st_size, reason)
            else:
                self._remove("dedup", path, facts.st_size, reason)
        for name in sorted(indexed - names):
            if not self.reachability.occurrences(name, swapped.values()):
                reason = "referenced by the dedup index, and history does not contain its text"
                self._report_missing(os.path.join(blob_folder, name), reason)

    def _judge_blob(self, name: str, count: int, *, indexed: bool, age: float) -> tuple[bool, str]:
        """Return True if a blob with `count` references is kept, and the reason."""
        least = self._policy.dedup_min_refs
        references = f"{count} reference{'' if count == 1 else 's'}, dedup_min_refs is {least}"
        if not _DIGEST.fullmatch(name):
            return True, "not a blob file name"
        if count >= least:
            return True, references
        if not indexed and age < _NEW_BLOB_SECONDS:
            return True, "just written: a reference may follow"
        if self.reachability.damaged:
            return True, _DAMAGED
        return False, references

    def _references_in_chunks(self) -> References:
        references = References()
        folder = os.path.join(self._layout.derived("swap"), "chunk")
        for name in names_in(self._layout.derived("swap"), "chunk"):
            path = os.path.join(folder, name)
            if regular_file(path):
                text = (atomic.read(path) or b"").decode("utf-8", "replace")
                references.add_text(f"swap:{name}", text, children=False)
        return references

    def _list_permanent_files(self) -> None:
        layout = self._layout
        for path, content in (
            (layout.messages, "history"),
            (layout.events, "history"),
            (layout.blob, "captured text"),
            (layout.pinned, "pinned"),
            (layout.derived("budget"), "set by hand"),
            (layout.derived("gc_policy"), "set by hand"),
        ):
            if os.path.lexists(path):
                self._retain("permanent", path, size_of(path), f"{content}: never collected")


def blob_name(record: DedupRecord) -> str:
    """Return the file name of the blob that an index line refers to; empty if its hash is not a digest."""
    name = record.hash.replace(":", "-", 1)
    return name if _DIGEST.fullmatch(name) else ""
