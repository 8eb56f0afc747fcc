"""Plan a backup: what it would contain. Nothing is written."""

from hashlib import sha256

import msgspec
from msgspec import Struct

from daypack.history.layout import Home
from daypack.upkeep.backup.contents import LeftOut, Request, files_of, items_of
from daypack.upkeep.backup.manifest import Item, ItemKind, Scope
from daypack.upkeep.database import find_database, measure, measure_sessions

_ID_DIGITS = 12


class PlannedItem(Struct, frozen=True):
    """A part of a backup, with its size now."""

    user: str
    name: str
    kind: ItemKind
    files: int
    bytes: int


class Plan(Struct, frozen=True):
    """What a backup would contain. The id changes if a part is added or removed, not when one grows."""

    id: str
    root: str
    scope: Scope
    items: tuple[PlannedItem, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def bytes(self) -> int:
        """The size of everything in it, about."""
        return sum(item.bytes for item in self.items)


def plan(home: Home, request: Request) -> Plan:
    """Return what a backup would contain now."""
    left_out: list[LeftOut] = []
    items = items_of(home, request)
    planned = tuple(item for item in (_planned(home.root, item, left_out) for item in items) if item.files)
    return Plan(plan_id(request.scope, items), home.root, request.scope, planned, tuple(left_out))


def plan_id(scope: Scope, items: list[Item]) -> str:
    """Return the id of the plan that has these parts."""
    encoded = msgspec.json.encode((scope, [(item.kind, item.path) for item in items]))
    return sha256(encoded).hexdigest()[:_ID_DIGITS]


def _planned(root: str, item: Item, left_out: list[LeftOut]) -> PlannedItem:
    if item.kind == "database":
        return PlannedItem(item.user, item.name, item.kind, 1, _size_of_database(Home(root, item.user)))
    files = files_of(root, item, left_out)
    return PlannedItem(item.user, item.name, item.kind, len(files), sum(file.size for file in files))


def _size_of_database(home: Home) -> int:
    """Return about how many bytes the memories and sessions in a database have."""
    database = find_database(home)
    if database is None:
        return 0
    try:
        return measure(database).bytes + measure_sessions(database)
    finally:
        database.close()
