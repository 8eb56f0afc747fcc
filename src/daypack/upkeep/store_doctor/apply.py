"""Apply the repair of a store: the file first, then its records in one transaction, then the indexes.

Every part is whole or not done at all, and is planned from what is there. After a kill, the same command does the rest.
"""

import os
from contextlib import suppress

from daypack.errors import BadInput, DaypackError
from daypack.files.atomic import discard
from daypack.files.database import Database
from daypack.history.layout import Home
from daypack.memory.search.index import erase_index
from daypack.memory.search.skipped import NAME as SKIPPED
from daypack.memory.store.repair import Repair
from daypack.memory.store.salvage import mend_header, rewrite_store
from daypack.memory.store.store_format import FORMAT
from daypack.upkeep.store_doctor.report import INDEXES, STORE, Examined, Report, examine_memories


def apply_repair(place: Home, plan_id: str | None = None) -> Report:
    """Repair the memories of a home and return what is left; with the id of a plan, only if exactly that is planned."""
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
    if any(problem.step for problem in found.problems):
        # Records are never changed and new ones are intact, so the problems are still the same in the transaction.
        Database(path, FORMAT).run("repair store", lambda file: Repair(file).run(found.problems), writing=True)
        found = examine_memories(place)
    _remove_indexes(place, found)
    return examine_memories(place).report()


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
