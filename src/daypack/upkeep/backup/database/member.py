"""The records of a database in a backup, and the database they are restored to."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope
from daypack.upkeep.backup.database.copying import current_sum
from daypack.upkeep.backup.database.lines import NAME, Reader, Sum, check
from daypack.upkeep.backup.database.restoring import is_empty, restore_records
from daypack.upkeep.backup.extraction import check_digests
from daypack.upkeep.backup.manifest import Backup, Item
from daypack.upkeep.backup.stores import known_revocations
from daypack.upkeep.backup.tarball import not_a_backup, read_member
from daypack.upkeep.database import find_database

_READING = Scope(role="daypack_operator", reading=True)


class State(NamedTuple):
    """What a restore does with the records: `name` as in the plan; and the tokens among them, and those revoked."""

    name: Literal["new", "same", "exists"]
    tokens: frozenset[str]
    revoked: frozenset[str]


def records_of(backup: Backup, item: Item) -> Reader:
    """Return the lines of a database in a backup, from the beginning."""
    member = backup.members.get(f"{item.path}/{NAME}")
    if member is None:
        raise not_a_backup(backup.path, f"{item.path} has no {NAME}")
    return Reader(read_member(backup.fd, member), f"{backup.path}: {member.name}")


@contextmanager
def target_of(home: Home, backup: Backup) -> Generator[Database]:
    """Open the database that a setting names, for a backup that has records of one."""
    database = find_database(home)
    if database is None:
        hint = "name an empty database with --store postgresql://…"
        if any(item.kind == "session" for item in backup.manifest.items):
            hint += ", or only a session with --session"
        problem = "the backup has memories and sessions of a database, and none is named"
        raise BadInput(problem, operation="restore", place=backup.path, hint=hint)
    try:
        yield database
    finally:
        database.close()


def state_of(database: Database, backup: Backup, item: Item, home: Home) -> State:
    """Compare the records in a backup with those in the database."""
    checked = check(records_of(backup, item))
    revoked = checked.tokens & known_revocations(home)
    if database.run("restore", is_empty, _READING):
        return State("new", checked.tokens, revoked)
    expected = Sum()
    for line in records_of(backup, item).rows():
        if line.table != "tokens" or line.row["id"] not in revoked:
            expected.add(line.table, line.data)
    same = current_sum(database).digest == expected.end().digest
    return State("same" if same else "exists", checked.tokens, revoked)


def restore_database(home: Home, backup: Backup, source: str) -> None:
    """Restore the records of a database, all or none; tokens that were revoked since stay revoked."""
    item = next(item for item in backup.manifest.items if item.path == source)
    check_digests(backup, backup.files_of(item))
    revoked = check(records_of(backup, item)).tokens & known_revocations(home)
    with target_of(home, backup) as database:
        restore_records(database, lambda: records_of(backup, item), revoked)
