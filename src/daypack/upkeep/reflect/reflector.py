"""The reflector: the only writer of MEMORY.md, the memory that lasts.

    - Printer 3 prints 0.2 mm too large. [default/work f3]

Two things make it write: facts that sessions proved (`reflect`), and a memory that holds what does not belong there
(`rewrite`). Bullets written by hand stay as they are unless they are said elsewhere. The former text is kept under
`home/<uid>/memory/workspace/<digest>/`, beside `promoted.json`, which says where each promoted bullet comes from.
"""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import Struct

from daypack.errors import BadInput, LockUnavailable, StorageFailed
from daypack.files import atomic, blobs
from daypack.history.layout import Home
from daypack.history.session import History
from daypack.upkeep.lint.edits import diff
from daypack.upkeep.lint.passages import Document
from daypack.upkeep.lint.prompt_texts import MEMORY, read_text, read_workspace
from daypack.upkeep.reflect.promotion import Candidate, Refused, choose, find_candidates

MAX_BULLETS = 200
_TITLE = "# Memory\n\n"
_KEEPERS = ("AGENTS.md", "SOUL.md", "USER.md", MEMORY)


class Written(Struct, frozen=True):
    """What became of MEMORY.md; `backup` is where its former text is, None when there was none or nothing changed."""

    path: str
    diff: str
    backup: str | None = None


class Reflected(Struct, frozen=True):
    """What a reflection promoted, what it did not, and what became of MEMORY.md."""

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
        """Put a text in the place of another one; refused when MEMORY.md is not that one any more."""
        with self._alone():
            if self._read() != before:
                hint = "look at it again"
                raise BadInput("it was changed meanwhile", operation="rewrite", place=self.path, hint=hint)
            return self._write(before, after)

    def reflect(
        self, sessions: Sequence[tuple[str, History]], *, max_bullets: int = MAX_BULLETS, dry_run: bool = False
    ) -> Reflected:
        """Promote what these sessions proved; a dry run writes nothing and says the same."""
        candidates = find_candidates(sessions)
        with self._alone():
            before = self._read()
            documents = [one for one in read_workspace(self.workspace) if one.name in _KEEPERS]
            chosen, refused = choose(candidates, documents)
            room = max(0, max_bullets - _count(before))
            refused += [Refused(one.text, f"MEMORY.md is full: {max_bullets} bullets") for one in chosen[room:]]
            chosen = chosen[:room]
            after = _with_bullets(before, [_bullet(one) for one in chosen])
            if dry_run or not chosen:
                written = Written(self.path, diff(MEMORY, before or "", after))
            else:
                # Where they come from first: a bullet without its origin would be worse than the other way round.
                self._note(chosen)
                written = self._write(before, after)
        return Reflected(tuple(chosen), tuple(refused), written)

    def _read(self) -> str | None:
        return read_text(self.path)

    def _write(self, before: str | None, after: str) -> Written:
        if before == after:
            return Written(self.path, "")
        if os.path.islink(self.path):
            raise StorageFailed("is a symbolic link", operation="rewrite", place=self.path, hint="replace the link")
        backup = self._keep(before) if before is not None else None
        atomic.publish(self.path, after.encode())
        return Written(self.path, diff(MEMORY, before or "", after), backup)

    def _keep(self, text: str) -> str:
        atomic.make_folders(self.folder)
        data = text.encode()
        name = f"{MEMORY}.{blobs.name_of(data).removeprefix('sha256-')[:8]}.bak"
        path = os.path.join(self.folder, name)
        atomic.create(path, data)
        return path

    def _note(self, chosen: Sequence[Candidate]) -> None:
        atomic.make_folders(self.folder)
        data = atomic.read(self.origins)
        noted: dict[str, Any] = msgspec.json.decode(data) if data else {"workspace": self.workspace, "bullets": {}}
        bullets: Mapping[str, Any] = noted["bullets"]
        new = {_bullet(one): {"why": one.why, "origins": msgspec.to_builtins(one.origins)} for one in chosen}
        noted["bullets"] = {**bullets, **new}
        atomic.replace(self.origins, msgspec.json.format(msgspec.json.encode(noted)) + b"\n")

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the lock of the workspace's folder: it leaves no file behind, and is gone with its process."""
        import fcntl  # noqa: PLC0415 — only a writer needs it

        try:
            fd = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise atomic.refusal(self.workspace, error, "lock") from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
            except OSError as error:
                hint = "run one reflector at a time on a file system with locks"
                problem = error.strerror or str(error)
                raise LockUnavailable(problem, operation="lock", place=self.workspace, hint=hint) from error
            yield
        finally:
            os.close(fd)


def _bullet(one: Candidate) -> str:
    """Return a promoted line: the words, and the shortest name of where they come from."""
    first = one.origins[0]
    return f"- {' '.join(one.text.split())} [{first.session} {first.id}]"


def _count(text: str | None) -> int:
    return len(Document(MEMORY, text or "", "memory").items)


def _with_bullets(before: str | None, bullets: Sequence[str]) -> str:
    if not bullets:
        return before or ""
    text = before if before else _TITLE
    if not text.endswith("\n"):
        text += "\n"
    return text + "\n".join(bullets) + "\n"
