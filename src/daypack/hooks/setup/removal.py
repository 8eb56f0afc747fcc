"""Taking a set-up back: every file as it was, or without what was put into it; nothing is written here."""

from collections.abc import Collection
from typing import NamedTuple

from daypack.errors import DaypackError
from daypack.files.planned import Change, current
from daypack.hooks.call import HostName
from daypack.hooks.setup.agents import WITHOUT_PLUGIN
from daypack.hooks.setup.record import FileRecord, SetupRecord
from daypack.hooks.setup.settings_edit import take_back
from daypack.types.digest import digest_bytes


class Kept(NamedTuple):
    """A file that is left as it is, and why."""

    path: str
    problem: str
    hint: str = ""


class Removal(NamedTuple):
    """The changes that take a set-up back, the files that are left as they are, and the record after it."""

    changes: tuple[Change, ...]
    kept: tuple[Kept, ...]
    previous: SetupRecord
    record: SetupRecord


def plan_removal(record: SetupRecord, hosts: Collection[HostName] = ()) -> Removal:
    """Plan the removal from these agents, or from all; the shared folder goes with the last agent that uses it."""
    stays = {file.host for file in record.files if file.host and hosts and file.host not in hosts}
    changes: list[Change] = []
    kept: list[Kept] = []
    left: list[FileRecord] = []
    for file in record.files:
        if file.host in stays or (file.host is None and stays - WITHOUT_PLUGIN):
            left.append(file)
            continue
        try:
            data = current(file.path)
            after = None if data is None else _without(file, data)
        except DaypackError as error:
            kept.append(Kept(file.path, error.problem, error.hint))
            left.append(file)
            continue
        if data is not None and after == data and file.format == "whole":
            kept.append(
                Kept(file.path, "has been changed since and is left as it is", "delete it if you do not need it")
            )
        elif data != after:
            changes.append(Change(file.path, data, after))
    return Removal(tuple(changes), tuple(kept), record, SetupRecord(files=tuple(left)))


def _without(file: FileRecord, data: bytes) -> bytes | None:
    if file.format == "whole":
        return None if digest_bytes(data) == file.after else data
    return take_back(file, data)
