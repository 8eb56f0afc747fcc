"""Lines of a cache that its database lacks: it was restored from a backup, or lost them in a failover.

messages.jsonl.ahead-1   a copy of the log, made before it is fetched again; removed if the database has all of it
"""

import os
import shutil
import warnings

import msgspec

from daypack.errors import DamageWarning
from daypack.files import atomic, jsonl
from daypack.files.atomic import refusal
from daypack.history.logs.lines import UNREADABLE


class Ahead:
    """The copies of one folder that are not yet compared with what the database has."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._copies: dict[str, str] = {}  # by the path of the log

    def copy(self, path: str) -> None:
        """Copy a log that is about to be fetched again, if it was not deleted."""
        number = 1
        while os.path.lexists(kept := f"{path}.ahead-{number}"):
            number += 1
        try:
            shutil.copyfile(path, kept)
        except FileNotFoundError:
            return
        except OSError as error:
            raise refusal(kept, error, "cache session") from error
        self._copies[path] = kept

    def compare(self) -> None:
        """Keep the copies that have lines which the fetched logs lack, and warn of them; remove the others."""
        while self._copies:
            path, kept = self._copies.popitem()
            stored = set((atomic.read(path) or b"").split(b"\n"))
            lines = (atomic.read(kept) or b"").split(b"\n")[:-1]
            if missing := sum(line not in stored and _is_record(line) for line in lines):
                text = f"{self._place} lacks {missing:,} lines that {path} had: kept as {kept}"
                warnings.warn(DamageWarning(text), stacklevel=5)
            else:
                atomic.discard(kept)


def _is_record(line: bytes) -> bool:
    """Return True for a line that was once read as a record: not for what a crash or a bad disk made of one."""
    verdict = jsonl.check(line)
    if verdict != "unsealed":
        return verdict == "sealed"
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except UNREADABLE:
        return False
