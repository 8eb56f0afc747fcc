"""Apply the repair of a store: the file first, then its records in one transaction, then the indexes.

Every part is whole or not done at all, and is planned from what is there. After a kill, the same command does the rest.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from daypack.errors import BadInput, DaypackError
from daypack.files.atomic import discard, make_folders
from daypack.files.database import Database
from daypack.files.lock import LockableFile
from daypack.history.layout import Home
from daypack.memory.search.index_files import erase_index
from daypack.memory.search.skipped import NAME as SKIPPED
from daypack.memory.store.examination import Examination
from daypack.memory.store.repair import Repair
from daypack.memory.store.salvage import mend_header, rewrite_store
from daypack.memory.store.store_format import FORMAT
from daypack.upkeep.store_doctor.report import INDEXES, STORE, Examined, Report, examine_memories

if TYPE_CHECKING:
    from sqlite3 import Connection


def apply_repair(place: Home, plan_id: str | None = None) -> Report:
    """Repair the memories of a home and return what is left; with the id of a plan, only if exactly that is planned."""
    with _repairing(place):
        return _apply(place, plan_id)


def _apply(place: Home, plan_id: str | None) -> Report:
    path = os.path.join(place.memory, STORE)
    found = examine_memories(place)
    planned = found.report()
    if plan_id is not None and planned.id != plan_id:
        hint = "look at the new plan (without --apply), then apply that"
        raise BadInput(f"the plan has changed: {planned.id}, not {plan_id}", operation="repair", place=path, hint=hint)
    if _is_broken(found):
        mend_header(path)
        found = examine_memories(place)
        if _is_broken(found):
            rewrite_store(path)
            found = examine_memories(place)
    if steps := {problem.step for problem in found.problems if problem.step}:

        def repair(file: "Connection") -> None:
            # Examined again: a record may have been erased since.
            problems = Examination(file).problems()
            Repair(file).run([problem for problem in problems if problem.step in steps])

        Database(path, FORMAT).run("repair store", repair, writing=True)
        found = examine_memories(place)
    _remove_indexes(place, found)
    return examine_memories(place).report()


@contextmanager
def _repairing(place: Home) -> Generator[None]:
    """Let one process repair at a time: the next one examines what is left."""
    folder = os.path.join(place.memory, INDEXES)  # of which nothing else holds a lock
    if not os.path.lexists(place.memory):
        yield
        return
    make_folders(folder)
    held = LockableFile()
    try:
        with suppress(OSError):  # a file system without locks
            held.fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(held.fd, fcntl.LOCK_EX)
        yield
    finally:
        held.close()


def _is_broken(found: Examined) -> bool:
    return any(problem.step and problem.step.kind == "rewrite" for problem in found.problems)


def _remove_indexes(place: Home, found: Examined) -> None:
    for folder in dict.fromkeys(index.folder for index in found.indexes):
        with suppress(DaypackError):
            erase_index(folder)
    indexes = os.path.join(place.memory, INDEXES)
    for name in os.listdir(indexes) if os.path.isdir(indexes) else []:
        with suppress(OSError):
            discard(os.path.join(indexes, name, SKIPPED))
