"""Examine the memories of a home: the store file, every record, accounts and indexes. Read-only."""

import os
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from daypack.errors import DaypackError
from daypack.files import read_only
from daypack.files.database import BUSY_SECONDS, is_damage
from daypack.history.layout import Home
from daypack.memory.store.examination import Examination, Step, StoreProblem
from daypack.memory.store.reading import tolerant
from daypack.memory.store.salvage import has_damaged_header
from daypack.memory.store.store_format import APPLICATION
from daypack.upkeep.doctor import Finding
from daypack.upkeep.store_doctor.indexes import IndexProblem, StoredRecords, examine_indexes

if TYPE_CHECKING:
    from sqlite3 import Connection

STORE = "store.sqlite"
INDEXES = "index"
_ID_DIGITS = 12
REPAIR = "run `daypack doctor --repair` to see how it can be repaired, or restore a backup"
_UPGRADED = "nothing to do: the next use of a memory upgrades it"
_BACKUP = "restore the store from a backup: nothing in it confirms what was there"
_SIZE = (
    "SELECT (SELECT count(*) FROM memories),"
    " (SELECT count(*) FROM entries WHERE memory IN (SELECT number FROM memories))"
    " + (SELECT count(*) FROM documents WHERE memory IN (SELECT number FROM memories))"
)
_MEND = Step(
    kind="rewrite", text="restore the constant parts of the store's header; the old file is kept beside the new one"
)


class Report(Struct, frozen=True):
    """What was found, and the steps of a repair. The id changes if any step does."""

    id: str
    findings: tuple[Finding, ...]
    steps: tuple[str, ...]
    memories: int = 0
    records: int = 0


class Examined(Struct, frozen=True):
    """The problems of a store and of its indexes."""

    path: str
    problems: tuple[StoreProblem, ...] = ()
    indexes: tuple[IndexProblem, ...] = ()
    notes: tuple[Finding, ...] = ()
    memories: int = 0
    records: int = 0

    def report(self) -> Report:
        """Return the findings and steps to show."""
        findings = [*self.notes, *map(self._finding, self.problems)]
        findings += [Finding("warning", index.path, index.problem, index.advice) for index in self.indexes]
        steps = list(dict.fromkeys(problem.step.text for problem in self.problems if problem.step))
        folders = dict.fromkeys(index.folder for index in self.indexes)
        steps += [f"remove the search index {folder}; the next search rebuilds it" for folder in folders]
        digest = sha256(msgspec.json.encode(steps)).hexdigest()[:_ID_DIGITS]
        return Report(digest, tuple(findings), tuple(steps), self.memories, self.records)

    def _finding(self, problem: StoreProblem) -> Finding:
        advice = _BACKUP if problem.step is None else REPAIR
        return Finding("damage", self.path, f"{problem.what}: {problem.problem}", advice)


def examine_memories(place: Home) -> Examined:
    """Examine the memories of a home; nothing is found if it has no store."""
    path = os.path.join(place.memory, STORE)
    if not os.path.lexists(path):
        return Examined(path)
    try:
        with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as file:
            return _examine(file, path, os.path.join(place.memory, INDEXES))
    except DaypackError as error:
        return Examined(path, notes=(Finding("damage", error.place or path, error.problem, error.hint),))
    except Exception as error:
        if not is_damage(error):
            raise
        text = "write a new file with every record that can be read; the old file is kept beside it"
        step = _MEND if has_damaged_header(path) else Step(kind="rewrite", text=text)
        return Examined(path, (StoreProblem("the file", f"it cannot be opened: {error}", step),))


def _examine(file: "Connection", path: str, indexes: str) -> Examined:
    file.execute("BEGIN")
    application, version = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if (application, version) == (APPLICATION, 1):
        checked = str(file.execute("PRAGMA integrity_check(1)").fetchone()[0])
        note = Finding("note", path, "a store of format 1, without checksums of records", _UPGRADED)
        damage = Finding("damage", path, f"a store of format 1 that cannot be upgraded: {checked}", _BACKUP)
        return Examined(path, notes=(note if checked == "ok" else damage,))
    problems: list[StoreProblem] = []
    if has_damaged_header(path):
        problems.append(StoreProblem("the file", "its header is not that of a store", _MEND))
    problems += Examination(file).problems()
    file.execute("ROLLBACK")  # what follows is read as it is then
    try:
        with tolerant(file):
            found = tuple(examine_indexes(indexes, StoredRecords(file)))
            memories, records = file.execute(_SIZE).fetchone()
    except Exception as error:
        if not is_damage(error):
            raise
        return Examined(path, tuple(problems))  # indexes are compared once the store can be read
    return Examined(path, tuple(problems), found, (), memories, records)
