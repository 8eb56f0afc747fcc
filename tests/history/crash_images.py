"""Records the file calls of a session, and builds what a power failure during one of them may leave on the disk."""

import os
import random
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

SECTOR = 512
Order = Literal["strict", "ext4", "reordered"]


class Call(NamedTuple):
    """A file call: the file it is about, and what it changed there."""

    name: str
    file: int = 0
    path: str = ""
    target: str = ""
    offset: int = 0
    data: bytes = b""


class Trace:
    """The calls that changed files below `root`, in the order in which they were made."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.calls: list[Call] = []
        self._files: dict[tuple[int, int], int] = {}  # by device and inode; an inode may be used again
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self.calls)

    def is_inside(self, path: Any) -> bool:
        return isinstance(path, str) and path.startswith(self.root + os.sep)

    def file_of(self, fd: int, *, new: bool = False) -> int:
        status = os.fstat(fd)
        key = status.st_dev, status.st_ino
        if new or key not in self._files:
            self._files[key] = len(self._files) + len(self.calls) + 1
        return self._files[key]

    @contextmanager
    def recording(self) -> Generator["Trace"]:  # noqa: C901 — one small function for each kind of call
        """Record the calls of this process."""
        names = ("open", "write", "pwrite", "fsync", "fdatasync", "ftruncate", "replace", "rename", "link", "unlink")
        real = {name: getattr(os, name) for name in (*names, "mkdir", "rmdir")}
        opened: dict[int, tuple[str, int]] = {}  # descriptor: path and file

        def around(name: str, note: Callable[..., Call | None]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                with self._lock:
                    result = real[name](*args, **kwargs)
                    if noted := note(result, *args):
                        self.calls.append(noted)
                    return result

            return call

        def note_open(fd: int, path: Any, flags: int, *_: Any) -> Call | None:
            opened.pop(fd, None)
            if not self.is_inside(path) or flags & os.O_DIRECTORY:
                return None
            opened[fd] = path, self.file_of(fd, new=bool(flags & os.O_EXCL))
            return Call("create", opened[fd][1], path) if flags & os.O_CREAT else None

        def note_write(count: int, fd: int, data: Any, offset: int | None = None) -> Call | None:
            if fd not in opened:
                return None
            at = os.lseek(fd, 0, os.SEEK_CUR) - count if offset is None else offset
            return Call("write", opened[fd][1], offset=at, data=bytes(data[:count]))

        def note_sync(_: None, fd: int) -> Call | None:
            return Call("sync", opened[fd][1] if fd in opened else 0)

        def note_cut(_: None, fd: int, size: int) -> Call | None:
            return Call("truncate", opened[fd][1], offset=size) if fd in opened else None

        def note_path(kind: str) -> Callable[..., Call | None]:
            def note(_: None, path: Any, target: Any = "", *__: Any) -> Call | None:
                target = target if isinstance(target, str) else ""
                return Call(kind, path=path, target=target) if self.is_inside(path) else None

            return note

        notes: dict[str, Callable[..., Call | None]] = {"open": note_open, "write": note_write, "pwrite": note_write}
        notes |= {"fsync": note_sync, "fdatasync": note_sync, "ftruncate": note_cut}
        notes |= {name: note_path(name) for name in ("replace", "rename", "link", "unlink", "mkdir", "rmdir")}
        for name, note in notes.items():
            setattr(os, name, around(name, note))
        try:
            yield self
        finally:
            for name, function in real.items():
                setattr(os, name, function)

    def image(self, stop: int, order: Order, chance: random.Random) -> dict[str, bytes | None]:
        """Return the files, and folders as None, after a power failure when `stop` calls were made.

        What a sync covered is there. Strict: every call in its order, the last write in part. ext4: names and sizes in
        their order, cut off anywhere after the last sync, data of a file before its size. Reordered: every name and
        size, and any of the sectors that were not synced; the others have old bytes or zeros.
        """
        calls = self.calls[:stop]
        durable = max((at for at, call in enumerate(calls) if call.name == "sync"), default=-1)
        last_sync = {call.file: at for at, call in enumerate(calls) if call.name == "sync"}
        if order == "ext4":
            calls = calls[: chance.randint(durable + 1, len(calls))]
        names: dict[str, int | None] = {}
        contents: dict[int, bytearray] = {}
        for at, call in enumerate(calls):
            unsynced = at > last_sync.get(call.file, -1)
            if call.name == "write":
                content = contents.setdefault(call.file, bytearray())
                if unsynced and order == "reordered":
                    _write_sectors(content, call, chance)
                else:
                    torn = unsynced and at == len(calls) - 1
                    size = _cut_at_sector(call, chance) if torn else len(call.data)
                    content[len(content) :] = bytes(max(0, call.offset - len(content)))
                    content[call.offset : call.offset + size] = call.data[:size]
            elif call.name == "truncate":
                content = contents.setdefault(call.file, bytearray())
                del content[call.offset :]
            else:
                _rename(names, call)
        return {path: None if file is None else bytes(contents.get(file, b"")) for path, file in names.items()}


def _cut_at_sector(call: Call, chance: random.Random) -> int:
    """Return how much of a write reached the disk: up to the end of a sector."""
    return min(len(call.data), max(0, chance.randint(0, len(call.data) // SECTOR + 1) * SECTOR - call.offset % SECTOR))


def _write_sectors(content: bytearray, call: Call, chance: random.Random) -> None:
    content[len(content) :] = bytes(max(0, call.offset + len(call.data) - len(content)))
    start, stop = call.offset, call.offset + len(call.data)
    while start < stop:
        end = min(stop, (start // SECTOR + 1) * SECTOR)
        if chance.random() < 0.6:
            content[start:end] = call.data[start - call.offset : end - call.offset]
        start = end


def _rename(names: dict[str, int | None], call: Call) -> None:
    if call.name == "create":
        names[call.path] = call.file
    elif call.name == "mkdir":
        names[call.path] = None
    elif call.name == "link":
        names[call.target] = names[call.path]
    elif call.name in ("unlink", "rmdir"):
        names.pop(call.path, None)
    elif call.name in ("replace", "rename"):
        prefix = call.path + os.sep
        for path in [path for path in names if path == call.path or path.startswith(prefix)]:
            names[call.target + path[len(call.path) :]] = names.pop(path)


def lay_out(image: dict[str, bytes | None], root: str, place: Path) -> str:
    """Write an image below another folder, and return that."""
    for path, content in image.items():
        target = place / os.path.relpath(path, root)
        if content is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return str(place)
