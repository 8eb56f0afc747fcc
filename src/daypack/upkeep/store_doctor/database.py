"""Examine the memories in a database: every record, counts, rights and index jobs. Nothing is changed or repaired."""

from daypack.errors import Damaged
from daypack.history.layout import Home
from daypack.memory.store.postgres.examination import examine
from daypack.postgres.database import Database
from daypack.upkeep.database import LAX, find_database, lax_account, lax_remedy, measure
from daypack.upkeep.doctor import Finding
from daypack.upkeep.store_doctor.report import Report, examine_memories

RESTORE = "restore a backup into a new database: `daypack restore FILE --store URL`"
_RETRY = "fix the cause, then run `daypack index --memories --retry`"
_INDEX = "the index of memory"


def examine_store(home: Home) -> Report:
    """Examine the memories where they are: in the database that a setting names, else in the files of the home."""
    database = find_database(home)
    if database is None:
        return examine_memories(home).report()
    try:
        return examine_database(database)
    finally:
        database.close()


def examine_database(database: Database) -> Report:
    """Return what is wrong with the memories in a database; a plan of a repair is never in it.

    A database that does not answer or refuses the account is no damage: that error is raised.
    """
    try:
        problems = examine(database)
        size, lax = measure(database), lax_account(database)
    except Damaged as error:
        return Report("", (Finding("damage", error.place or database.place, error.problem, error.hint),), ())
    findings = [
        Finding("warning", database.place, f"{found.what}: {found.problem}", _RETRY)
        if found.what.startswith(_INDEX)  # derived: a search makes it
        else Finding("damage", database.place, f"{found.what}: {found.problem}", found.remedy or RESTORE)
        for found in problems
    ]
    if lax:
        findings.append(Finding("warning", database.place, LAX, lax_remedy(lax)))
    return Report("", tuple(findings), (), size.memories, size.records)
