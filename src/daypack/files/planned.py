"""A planned change of a file: shown as a diff first, then written whole, unless the file has changed since."""

import os
from typing import NamedTuple

from daypack.errors import BadInput
from daypack.files import atomic


class Change(NamedTuple):
    """A planned change of a file; None stands for no file. A symbolic link stays, and what it points to changes."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def needed(self) -> bool:
        """True if the file has to be written or deleted."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        from difflib import unified_diff  # noqa: PLC0415 — used by two commands

        before, after = ((data or b"").decode(errors="replace") for data in (self.before, self.after))
        old, new = (os.devnull if data is None else self.path for data in (self.before, self.after))
        lines = unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def check(self) -> None:
        """Raise BadInput if the file is not as it was when the change was planned."""
        if current(self.path) != self.before:
            problem = "the file has changed in the meantime"
            raise BadInput(problem, operation="write", place=self.path, hint="run the command again")

    def apply(self) -> None:
        """Write or delete the file; its mode is kept."""
        self.check()
        path = os.path.realpath(self.path)
        if self.after is not None:
            atomic.make_folders(os.path.dirname(path))
            atomic.publish(path, self.after)
        elif self.before is not None:
            atomic.remove(path)

    def undo(self) -> None:
        """Make the file what it was before the change, unless it already is."""
        if current(self.path) != self.before:
            Change(self.path, self.after, self.before).apply()


def current(path: str) -> bytes | None:
    """Return the bytes of a file, None if there is none; such files are often symbolic links, which are followed."""
    return atomic.read(os.path.realpath(path))
