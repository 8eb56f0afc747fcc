"""The SQLite file of an index, which is replaced by an empty one when it cannot be used.

It is derived, so a file that is missing, foreign, damaged or of another format is replaced. Errors of the file system
(no space) are raised, because an empty file would not help; where nothing can be written, the index is in memory.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from daypack.errors import Damaged, StorageFailed
from daypack.files.atomic import discard
from daypack.files.database import COMPANIONS, Answer, Database, Format, Moved
from daypack.files.read_only import is_read_only
from daypack.types.deadline import Deadline

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x64707833  # "dpx3"
_CACHE_KIB = 16_000
_MAX_RESTARTS = 3  # a disk that damages every file must not cause an endless loop
_HINT = "the index may be deleted; it is rebuilt"


class IndexFile:
    """One file with a schema, used by one thread at a time."""

    def __init__(self, path: str, schema: str, version: int) -> None:
        pragmas = (f"cache_size=-{_CACHE_KIB}",)
        self._database = Database(path, Format("index", APPLICATION, version, schema, _HINT, pragmas=pragmas))
        self.path = self._database.path
        self._restarts = 0

    @property
    def times_opened(self) -> int:
        """How often the file was opened: as long as it is the same, so is the file."""
        return self._database.times_opened

    @contextmanager
    def waiting(self, operation: str, deadline: Deadline) -> Generator[None]:
        """Wait for processes that write to the file until the deadline only."""
        try:
            self._database.open(operation)
        except Damaged:
            self._reopen(operation)
        with self._database.waiting(operation, deadline):
            yield

    def run(self, operation: str, work: Callable[["Connection"], Answer], *, writing: bool = False) -> Answer | None:
        """Run `work` in one transaction; return None if the file was unusable and has been replaced."""
        try:
            self._database.open(operation)
        except Damaged:
            self._reopen(operation)
        try:
            return self._database.run(operation, work, writing=writing)
        except Moved:
            self.close()
        except Damaged as error:
            self.close()
            with self._database.folder_locked():
                self._replace(operation, error)
        return None

    def _reopen(self, operation: str) -> None:
        with self._database.folder_locked():  # check again: another process may have replaced it
            try:
                self._database.open(operation)
            except Damaged as error:
                self._replace(operation, error)
                try:
                    self._database.open(operation)
                except Damaged as again:
                    raise self._refusal(operation, again) from again

    def _replace(self, operation: str, error: Damaged) -> None:
        """Delete the damaged file, unless another process has replaced it."""
        self._restarts += 1
        if self._restarts > _MAX_RESTARTS:
            raise self._refusal(operation, error) from error
        if is_read_only(self.path):
            self._database.use_empty()
            return
        with suppress(FileNotFoundError):
            if os.stat(self.path).st_ino != self._database.inode:
                return
        for ending in COMPANIONS:
            discard(self.path + ending)
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
        except OSError as refused:
            raise self._database.refusal(operation, refused) from refused

    def _refusal(self, operation: str, error: Damaged) -> StorageFailed:
        hint = f"check permissions and the disk; {_HINT}"
        return StorageFailed(error.problem, operation=operation, place=self.path, hint=hint)

    def close(self) -> None:
        """Close the file; `run` opens it again."""
        self._database.close()
