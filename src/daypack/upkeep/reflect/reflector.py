"""The reflector: the only writer of MEMORY.md, the durable memory of a workspace.

    - Printer 3 prints 0.2 mm too large. [default/work f3]

It promotes facts of sessions (`reflect`) and removes lines that do not belong in a memory (`rewrite`). Bullets written
by hand are unchanged unless another file states them. The previous text is kept under
`home/<uid>/memory/workspace/<digest>/`, beside `promoted.json`, which lists the origin of each promoted bullet.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, LockUnavailable, StorageFailed
from daypack.files import atomic, blobs
from daypack.files.lock import LockableFile
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.text.statements.passages import Document
from daypack.upkeep.lint.edits import diff
from daypack.upkeep.lint.prompt_texts import MEMORY, find_text, read_workspace
from daypack.upkeep.reflect.promotion import Candidate, Refused, choose, find_candidates

MAX_BULLETS = 200
_TITLE = "# Memory\n\n"
_COMPARED = ("AGENTS.md", "SOUL.md", "USER.md", MEMORY)


class Written(Struct, frozen=True):
    """A change to MEMORY.md; `backup` is the path of the previous text, None if there was none or nothing changed."""

    path: str
    diff: str
    backup: str | None = None


class Reflected(Struct, frozen=True):
    """The promoted and refused candidates, and the change to MEMORY.md."""

    promoted: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    written: Written


class Reflector:
    """Writes the MEMORY.md of one workspace, one reflector at a time."""

    def __init__(self, workspace: str, home: Home) -> None:
        self.workspace = os.path.realpath(workspace)
        self.path = os.path.join(self.workspace, MEMORY)
        name = blobs.name_of(self.workspace.encode()).removeprefix("sha256-")[:16]
        self.folder = os.path.join(home.folder, "memory", "workspace", name)
        self.origins = os.path.join(self.folder, "promoted.json")

    def rewrite(self, before: str, after: str) -> Written:
        """Replace the text of MEMORY.md; refused if it is no longer `before`."""
        with self._locked():
            if self._read() != before:
                hint = "run the command again"
                raise BadInput("the file was changed in the meantime", operation="rewrite", place=self.path, hint=hint)
            return self._write(before, after)

    def reflect(
        self, sessions: Sequence[tuple[str, History]], *, max_bullets: int = MAX_BULLETS, dry_run: bool = False
    ) -> Reflected:
        """Promote facts of these sessions; a dry run writes nothing and returns the same result."""
        candidates = find_candidates(sessions)
        with self._locked():
            before = self._read()
            documents = [document for document in read_workspace(self.workspace) if document.name in _COMPARED]
            chosen, refused = choose(candidates, documents)
            room = max(0, max_bullets - _count(before))
            refused += [
                Refused(candidate.text, f"MEMORY.md is full: {max_bullets} bullets") for candidate in chosen[room:]
            ]
            chosen = chosen[:room]
            after = _with_bullets(before, [_bullet(candidate) for candidate in chosen])
            if dry_run or not chosen:
                written = Written(self.path, diff(MEMORY, before or "", after))
            else:
                # Origins first: after a crash, an origin without its bullet is harmless.
                self._record_origins(chosen)
                written = self._write(before, after)
        return Reflected(tuple(chosen), tuple(refused), written)

    def _read(self) -> str | None:
        return find_text(self.path)

    def _write(self, before: str | None, after: str) -> Written:
        if before == after:
            return Written(self.path, "")
        if os.path.islink(self.path):
            raise StorageFailed("is a symbolic link", operation="rewrite", place=self.path, hint="replace the link")
        backup = self._back_up(before) if before is not None else None
        atomic.publish(self.path, after.encode())
        return Written(self.path, diff(MEMORY, before or "", after), backup)

    def _back_up(self, text: str) -> str:
        atomic.make_folders(self.folder)
        data = text.encode()
        name = f"{MEMORY}.{blobs.name_of(data).removeprefix('sha256-')[:8]}.bak"
        path = os.path.join(self.folder, name)
        atomic.create(path, data)
        return path

    def _record_origins(self, chosen: Sequence[Candidate]) -> None:
        atomic.make_folders(self.folder)
        data = atomic.read(self.origins)
        record: dict[str, Any] = msgspec.json.decode(data) if data else {"workspace": self.workspace, "bullets": {}}
        bullets: Mapping[str, Any] = record["bullets"]
        new = {
            _bullet(candidate): {"why": candidate.why, "origins": msgspec.to_builtins(candidate.origins)}
            for candidate in chosen
        }
        record["bullets"] = {**bullets, **new}
        atomic.replace(self.origins, msgspec.json.format(msgspec.json.encode(record)) + b"\n")

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold a lock on the workspace folder; it needs no lock file and ends with the process."""
        import fcntl  # noqa: PLC0415 — only a writer needs it

        folder = LockableFile()
        try:
            folder.fd = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise atomic.refusal(self.workspace, error, "lock") from error
        try:
            try:
                fcntl.flock(folder.fd, fcntl.LOCK_EX)
            except OSError as error:
                hint = "run one reflector at a time on a file system with locks"
                problem = error.strerror or str(error)
                raise LockUnavailable(problem, operation="lock", place=self.workspace, hint=hint) from error
            yield
        finally:
            folder.close()


def _bullet(candidate: Candidate) -> str:
    """Return a promoted line: the text and its first origin."""
    first = candidate.origins[0]
    return f"- {' '.join(candidate.text.split())} [{first.session} {first.id}]"


def _count(text: str | None) -> int:
    return len(Document(MEMORY, text or "", "memory").items)


def _with_bullets(before: str | None, bullets: Sequence[str]) -> str:
    if not bullets:
        return before or ""
    text = before if before else _TITLE
    if not text.endswith("\n"):
        text += "\n"
    return text + "\n".join(bullets) + "\n"
