"""Carrying out a plan: all changes, or none of them."""

import os
from collections.abc import Sequence
from contextlib import suppress

from daypack.errors import DaypackError, WriteFailed
from daypack.files.planned import Change
from daypack.history.layout import Home
from daypack.hooks.setup.record import SetupRecord, write_record

_COMPILED = "__pycache__"


def apply_changes(home: Home, changes: Sequence[Change], previous: SetupRecord, record: SetupRecord) -> None:
    """Write the changes; if one fails, or on Ctrl-C, take back those that were made and raise.

    The record is written first, so that a set-up that was killed can be taken back too.
    """
    for change in changes:
        change.check()
    folders = [folder for file in record.files for folder in file.folders]
    write_record(home, _merge(previous, record))
    done: list[Change] = []
    try:
        for change in changes:
            done.append(change)
            change.apply()
        write_record(home, record)
        _remove_folders(
            [folder for file in previous.files if record.find(file.path) is None for folder in file.folders]
        )
    except BaseException as error:
        left = _roll_back(done)
        _remove_folders(folders)
        if not left:
            write_record(home, previous)
            raise
        problem = f"stopped half-way, and these files could not be restored: {', '.join(left)}"
        hint = "run `daypack setup --remove`"
        raise WriteFailed(problem, operation="setup", hint=hint) from error


def _merge(previous: SetupRecord, record: SetupRecord) -> SetupRecord:
    """Return a record of both: while files are written, either may hold for each of them."""
    paths = {file.path for file in record.files}
    return SetupRecord(files=(*record.files, *(file for file in previous.files if file.path not in paths)))


def _remove_folders(folders: Sequence[str]) -> None:
    """Remove folders that are empty, the innermost first; what Python compiled in them is nothing."""
    for folder in sorted(set(folders), key=len, reverse=True):
        with suppress(OSError):
            if os.listdir(folder) == [_COMPILED]:
                compiled = os.path.join(folder, _COMPILED)
                for name in os.listdir(compiled):
                    os.unlink(os.path.join(compiled, name))
                os.rmdir(compiled)
            os.rmdir(folder)


def _roll_back(done: Sequence[Change]) -> list[str]:
    """Take back changes, the newest first; return the files that are neither as before nor as planned."""
    left: list[str] = []
    for change in reversed(done):
        with suppress(DaypackError, OSError):
            change.undo()
            continue
        left.append(change.path)
    return left
