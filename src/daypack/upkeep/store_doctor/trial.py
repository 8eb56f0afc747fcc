"""Tries a repair on a private copy of the store, and returns what cannot be read afterwards. The store is only read."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct

from daypack.errors import DaypackError
from daypack.files import read_only
from daypack.files.atomic import make_folders
from daypack.files.database import BUSY_SECONDS, is_damage
from daypack.history.layout import Home
from daypack.memory.store.reading import tolerant
from daypack.memory.store.rows import Row, as_text
from daypack.text.redact.redact import redact
from daypack.upkeep.doctor import Finding
from daypack.upkeep.store_doctor.apply import apply_repair
from daypack.upkeep.store_doctor.report import STORE

_MEMORIES = "SELECT id, title FROM memories WHERE deleted IS NULL"
_OWNED = "SELECT id, title FROM memories WHERE deleted IS NULL AND owner IN (SELECT number FROM users)"
_ENTRIES = "SELECT memory, seq FROM entries"
_MOVED = "SELECT DISTINCT record FROM quarantine WHERE kind NOT IN ('user', 'memory')"
_KEPT = "SELECT DISTINCT record FROM quarantine WHERE kind IN ('user', 'memory')"


class Outcome(Struct, frozen=True):
    """What a repair leaves; `problem` says why it cannot be done."""

    unlisted: tuple[str, ...] = ()  # titles of memories that can be read now, and are in no list afterwards
    moved: int = 0  # records that it moves to the quarantine table
    unconfirmed: int = 0  # users and memories that it keeps, with a name or title that no checksum confirms
    unreadable: int = 0  # entries that can be found now and are gone afterwards, without those that it moves
    left: tuple[Finding, ...] = ()
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """True if everything that can be read now can be read afterwards."""
        return not (self.unlisted or self.moved or self.unconfirmed or self.unreadable or self.left or self.problem)


def try_repair(place: Home) -> Outcome:
    """Repair a copy of a home's store, and compare it with the store."""
    import tempfile  # noqa: PLC0415 — 4 ms, only here

    path = os.path.join(place.memory, STORE)
    if not os.path.lexists(path):
        return Outcome()
    with tempfile.TemporaryDirectory(prefix="daypack-repair-") as folder:
        copy = Home(folder, place.uid)
        make_folders(copy.memory, durable=False)
        for ending in ("", "-wal"):
            if os.path.exists(path + ending):
                shutil.copyfile(path + ending, os.path.join(copy.memory, STORE + ending))
        repaired = os.path.join(copy.memory, STORE)
        before, found = dict(_read(repaired, _MEMORIES)), set(_read(repaired, _ENTRIES))
        former = _count(repaired, _MOVED), _count(repaired, _KEPT)
        try:
            report = apply_repair(copy)
        except DaypackError as error:
            return Outcome(problem=error.problem)
        after = {memory for memory, _ in _read(repaired, _OWNED)}
        moved, unconfirmed = _count(repaired, _MOVED) - former[0], _count(repaired, _KEPT) - former[1]
        gone = len(found - set(_read(repaired, _ENTRIES)))
    titles = tuple(redact(as_text(title)).text for memory, title in before.items() if memory not in after)
    left = tuple(finding for finding in report.findings if finding.severity == "damage")
    return Outcome(titles, moved, unconfirmed, max(gone - moved, 0), left)


def _count(path: str, query: str) -> int:
    return sum(1 for _ in _read(path, query))


def _read(path: str, query: str) -> Iterator[Row]:
    """Yield rows until one cannot be read."""
    try:
        with closing(read_only.connect(path, seconds=BUSY_SECONDS)) as file, tolerant(file):
            yield from file.execute(query)
    except DaypackError:
        return
    except Exception as error:
        if not is_damage(error):
            raise
