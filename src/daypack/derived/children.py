"""Child agents of a session: what each was asked, what it answered, and what it left behind.

    context/child/<name>/handoff.md    what it was asked
    context/child/<name>/result.md     what it answered
    context/child/<name>/refs.jsonl    {"id":"r1","path":"src/a.py","kind":"file","summary":"…"}
    context/child/<name>/artifact/     files

The folder is derived. What `put_child` is given stands in a `child.updated` event as well, so that a deleted folder
comes back; files under `artifact/` do not. Nothing else in a child's folder is read, its messages least of all.
"""

import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from daypack.errors import BadMessage, DamageWarning, DaypackError, UnsafePath
from daypack.files import atomic
from daypack.history.draft import draft_event
from daypack.history.layout import check_name
from daypack.history.session import History
from daypack.types.history import Event
from daypack.types.records import Ref

UPDATED = "child.updated"
FILES = {"handoff": "handoff.md", "result": "result.md", "refs": "refs.jsonl"}
_ARTIFACTS = "artifact"
_decoder = msgspec.json.Decoder(Ref)


class Child(Struct, frozen=True):
    """A child agent as its parent sees it; `artifacts` are paths relative to the session."""

    name: str
    handoff: str | None = None
    result: str | None = None
    refs: tuple[Ref, ...] = ()
    artifacts: tuple[str, ...] = ()


def put_child(
    history: History, name: str, *, handoff: str | None = None, result: str | None = None, refs: Sequence[Ref] = ()
) -> Event:
    """Record what a child was asked, answered or refers to, all or none; what is left out stays as it was."""
    check_name(name, "child")
    given = {"handoff": handoff, "result": result, "refs": _lines(refs) if refs else None}
    texts = {part: _spelled(text, part) for part, text in given.items() if text is not None}
    with history.lock:
        if not _is_folder(_root(history)):
            restore_children(history, history.events.records())  # this one makes the folder: the others must be in it
        folder = os.path.join(_root(history), name)
        made = not _is_folder(folder)
        atomic.make_folders(folder)
        former = {part: atomic.read(os.path.join(folder, FILES[part])) for part in texts}
        try:
            for part, data in texts.items():
                atomic.replace(os.path.join(folder, FILES[part]), data)
            kept = {part: history.capture(data) for part, data in texts.items()}
            return history.append_event(draft_event(UPDATED, {"name": name, **kept}))
        except DaypackError:
            # Without its event a text would not survive a rebuild: better that all is as before.
            for part, data in former.items():
                _put_back(os.path.join(folder, FILES[part]), data)
            if made:
                with suppress(OSError):
                    os.rmdir(folder)
            raise


def read_children(history: History, *, recorded: bool = True) -> tuple[Child, ...]:
    """Return the children in order of name; a deleted folder comes back from the events.

    `recorded` false: the caller knows that no event tells of a child, and the events need not be read for it.
    """
    root = _root(history)
    if not _is_folder(root):
        return restore_children(history, history.events.records()) if recorded else ()
    with os.scandir(root) as found:
        names = sorted(one.name for one in found if one.is_dir(follow_symlinks=False) and _is_name(one.name))
    return tuple(_read(root, name) for name in names)


def restore_children(history: History, events: Iterable[Event]) -> tuple[Child, ...]:
    """Fill a missing `context/child/` with what the events tell, and return the children."""
    kept: dict[str, dict[str, bytes]] = {}
    for event in events:
        if event.type != UPDATED:
            continue
        try:
            parts = {part: history.captured(event.data[part]) for part in FILES if part in event.data}
            kept.setdefault(check_name(event.data["name"], "child"), {}).update(parts)
        except (DaypackError, KeyError, TypeError, AttributeError) as error:
            told = f"{history.layout.events}: {event.id}: the child cannot be had again: {error}"
            warnings.warn(DamageWarning(told), stacklevel=2)
    with suppress(DaypackError, OSError):  # on a read-only file system they are read off the events each time
        _place(_root(history), kept)
    return tuple(_child(name, kept[name]) for name in sorted(kept))


def _root(history: History) -> str:
    return history.layout.derived("child")


def _is_folder(path: str) -> bool:
    """Say whether there is a folder; refuse to go through a link."""
    if os.path.islink(path):
        raise UnsafePath("is a symbolic link", operation="read children", place=path, hint="replace the link")
    return os.path.isdir(path)


def _is_name(name: str) -> bool:
    try:
        return bool(check_name(name, "child"))
    except DaypackError:
        return False


def _spelled(text: str, place: str) -> bytes:
    try:
        return text.encode()
    except (AttributeError, UnicodeEncodeError) as error:
        problem = "is not text that UTF-8 can spell"
        raise BadMessage(problem, operation="put child", place=place, hint="give a str") from error


def _lines(refs: Sequence[Ref]) -> str:
    return "".join(f"{msgspec.json.encode(ref).decode()}\n" for ref in refs)


def _read(root: str, name: str) -> Child:
    folder = os.path.join(root, name)
    paths = {part: os.path.join(folder, file) for part, file in FILES.items()}
    texts = {part: data for part, path in paths.items() if (data := _plain(path)) is not None}
    artifacts = os.path.join(folder, _ARTIFACTS)
    top = os.path.dirname(os.path.dirname(root))
    listed = sorted(os.path.relpath(path, top) for path in _files(artifacts))
    return _child(name, texts, tuple(listed))


def _child(name: str, texts: Mapping[str, bytes], artifacts: tuple[str, ...] = ()) -> Child:
    words = {part: data.decode("utf-8", "replace") for part, data in texts.items() if part != "refs"}
    return Child(name, words.get("handoff"), words.get("result"), _refs(name, texts.get("refs", b"")), artifacts)


def _refs(name: str, data: bytes) -> tuple[Ref, ...]:
    found: list[Ref] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.strip():
                found.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeError) as error:
            told = f"child/{name}/{FILES['refs']}: line {number} is no ref: {error}"
            warnings.warn(DamageWarning(told), stacklevel=2)
    return tuple(found)


def _plain(path: str) -> bytes | None:
    """Return the bytes of a plain file; a link, a folder or a pipe in its place is not read."""
    with suppress(UnsafePath):
        return atomic.read(path)
    return None


def _files(folder: str) -> Iterator[str]:
    if os.path.islink(folder):
        return
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(place, name)
            if not name.startswith(".") and os.path.isfile(path) and not os.path.islink(path):
                yield path


def _put_back(path: str, former: bytes | None) -> None:
    with suppress(DaypackError):  # the first failure is the one to tell of
        if former is None:
            atomic.discard(path)
        else:
            atomic.replace(path, former)


def _place(root: str, kept: Mapping[str, Mapping[str, bytes]]) -> None:
    """Make the folder with all children in it or none: one with a part of them would be believed."""
    making = f"{root}{atomic.TEMPORARY}{os.getpid()}.{threading.get_ident()}"
    atomic.make_folders(making)
    for name, parts in kept.items():
        atomic.make_folders(os.path.join(making, name))
        for part, data in parts.items():
            atomic.replace(os.path.join(making, name, FILES[part]), data)
    try:
        os.rename(making, root)
    except OSError:  # another process was faster
        for name, parts in kept.items():
            for part in parts:
                atomic.discard(os.path.join(making, name, FILES[part]))
            os.rmdir(os.path.join(making, name))
        os.rmdir(making)
