"""Child agents of a session: what each was asked, what it answered, its status and its artifacts.

    context/child/<name>/agent, session   who it is and where it works
    context/child/<name>/status           pending, active, done, error or cancelled
    context/child/<name>/handoff.md       what it was asked: all it is given of its parent
    context/child/<name>/result.md        what it answered
    context/child/<name>/refs.jsonl       {"id":"r1","path":"src/a.py","kind":"file","summary":"…"}
    context/child/<name>/artifact/        files

The folder is derived. A `child.updated` event also records the input of `put_child`, and `blob/` of the session the
bytes of artifacts, so that a deleted folder can be rebuilt; files that other programs put there cannot. Nothing
else in a child's folder is read, least of all its messages.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from daypack.derived.child_files import (
    ARTIFACTS,
    FILES,
    WORDS,
    Files,
    check_artifact,
    is_folder,
    list_artifacts,
    list_names,
    place_all,
    read_texts,
    replaced,
    root_of,
)
from daypack.errors import BadInput, BadMessage, DamageWarning, DaypackError
from daypack.history.draft import draft_event
from daypack.history.layout import check_name, refuse_lookalike
from daypack.history.session import History
from daypack.plain_files import open_plain
from daypack.text.redact.redact import redact
from daypack.types.digest import digest_bytes
from daypack.types.history import Event
from daypack.types.records import Ref

UPDATED = "child.updated"
MAX_ARTIFACT_BYTES = 16 << 20
ChildStatus = Literal["pending", "active", "done", "error", "cancelled"]
STATUSES: tuple[ChildStatus, ...] = get_args(ChildStatus)
_ENDED: tuple[ChildStatus, ...] = ("done", "error", "cancelled")
_PATHS = WORDS | FILES
_SUMMARY_CHARS = 160
_decoder = msgspec.json.Decoder(Ref)


class Child(Struct, frozen=True):
    """A child agent as its parent sees it; `artifacts` are paths relative to the session.

    A child without a stated status is done if it has a result, else pending.
    """

    name: str
    handoff: str | None = None
    result: str | None = None
    refs: tuple[Ref, ...] = ()
    artifacts: tuple[str, ...] = ()
    agent: str | None = None
    session: str | None = None
    status: ChildStatus | None = None

    def __post_init__(self) -> None:
        if self.status is None:
            force_setattr(self, "status", "pending" if self.result is None else "done")


class ChildUpdate(Struct, frozen=True, kw_only=True):
    """The change to a child; omitted fields stay as they are."""

    handoff: str | None = None
    result: str | None = None
    refs: Sequence[Ref] = ()  # in place of the former ones
    artifacts: Mapping[str, bytes] = {}  # path below artifact/ -> content; beside the former ones
    agent: str | None = None
    session: str | None = None
    status: ChildStatus | None = None  # None: done with a result, pending when asked anew, else as it was


def put_child(
    history: History,
    name: str,
    update: ChildUpdate | None = None,
    *,
    handoff: str | None = None,
    result: str | None = None,
    refs: Sequence[Ref] = (),
) -> Event:
    """Record the task, the answer, the artifacts or the refs of a child, all or none.

    The three usual parts can be given beside an `update` and take precedence over it. `notes_of` returns what is
    odd about a result that is recorded.
    """
    check_name(name, "child")
    given = update or ChildUpdate()
    parts = {"handoff": handoff, "result": result, "refs": refs or None}
    given = replace(given, **{part: value for part, value in parts.items() if value is not None})
    texts = _texts(given)
    artifacts = {check_artifact(path): _limited(data, path) for path, data in given.artifacts.items()}

    def record() -> Event:
        root = root_of(history)
        if not is_folder(root):
            restore_children(history, history.events.records())  # this one makes the folder: the others must be in it
        refuse_lookalike(root, name, "child")
        folder = os.path.join(root, name)
        former = _read(root, name) if is_folder(folder) else None
        status = given.status or _status_after(given, former)
        data: dict[str, Any] = {"name": name} | {part: history.capture(text) for part, text in texts.items()}
        data |= {"agent": given.agent} if given.agent else {}
        data |= {"session": given.session} if given.session else {}
        data["status"] = status
        if changes := _changes(given, status, former):
            data["changes"] = changes
        if artifacts:
            data["artifacts"] = [_keep(history, path, content) for path, content in artifacts.items()]
        if notes := _notes(given, former):
            data["notes"] = notes
        words = {part: f"{data[part]}\n".encode() for part in WORDS if part in data}
        files = {_PATHS[part]: content for part, content in (texts | words).items()}
        files |= {f"{ARTIFACTS}/{path}": content for path, content in artifacts.items()}
        with replaced(folder, files):
            # Without its event a text would not survive a rebuild: it is as before when that fails.
            return history.append_event(draft_event(UPDATED, data))

    return history.locked(record)


def notes_of(event: Event) -> tuple[str, ...]:
    """Return what is odd about a recorded result: it came after a cancellation, or without a task."""
    return tuple(map(str, event.data.get("notes", ())))


def load_artifacts(paths: Iterable["str | os.PathLike[str]"]) -> dict[str, bytes]:
    """Read files to be given to `put_child` under their names."""
    found: dict[str, bytes] = {}
    for given in paths:
        path: str = os.fspath(given)
        name = check_artifact(os.path.basename(os.path.abspath(path)))
        if name in found:
            raise _refused("two artifacts have this name", name, "rename one of them")
        try:
            with open_plain(path) as file:
                found[name] = _limited(file.read(MAX_ARTIFACT_BYTES + 1), path)
        except OSError as error:
            raise _refused(error.strerror or str(error), path, "name a readable file") from error
    return found


def read_children(history: History, *, recorded: bool = True) -> tuple[Child, ...]:
    """Return the children in order of name; a deleted folder is rebuilt from the events.

    `recorded` false: no event mentions a child, so the events need not be read.
    """
    root = root_of(history)
    if not is_folder(root):
        return restore_children(history, history.events.records()) if recorded else ()
    return tuple(_read(root, name) for name in list_names(root))


def restore_children(history: History, events: Iterable[Event]) -> tuple[Child, ...]:
    """Fill a missing `context/child/` with what the events tell, and return the children."""
    children = recorded_files(history, events)
    with suppress(DaypackError, OSError):  # on a read-only file system they are read off the events each time
        place_all(root_of(history), children)
    return tuple(_recorded(name, children[name]) for name in sorted(children))


def recorded_files(history: History, events: Iterable[Event]) -> dict[str, Files]:
    """Return what the folders of children hold as far as events tell: name -> path in the folder -> its bytes."""
    found: dict[str, dict[str, Callable[[], bytes | None]]] = {}
    for event in events:
        if event.type == UPDATED:
            try:
                name, files = check_name(event.data["name"], "child"), _files(history, event.data)
                found.setdefault(name, {}).update(files)
            except (DaypackError, KeyError, TypeError, AttributeError) as error:
                _warn(f"{history.layout.events}: {event.id}: the child cannot be had again: {error}")
    return dict(found)


def merged(child: Child) -> tuple[Ref, ...]:
    """Return what the parent's refs name of a child: its result, with how that begins, and its artifacts; no ids."""
    found: list[Ref] = []
    if child.result is not None:
        path, digest = f"context/child/{child.name}/{FILES['result']}", digest_bytes(child.result.encode())
        found.append(Ref(id="", path=path, kind="child_result", summary=_summary(child), hash=digest))
    made = f"made by child {child.name}"
    found += [Ref(id="", path=path, kind="artifact", summary=made) for path in child.artifacts]
    return tuple(found)


def _summary(child: Child) -> str:
    # All of it, before it is cut: half a secret would not be recognised.
    lines = (line.strip("#*->` \t\r") for line in redact(child.result or "").text.split("\n"))
    first = next(filter(None, lines), "it answered nothing")
    if len(first) > _SUMMARY_CHARS:
        cut = first.rfind(" ", _SUMMARY_CHARS // 2, _SUMMARY_CHARS)
        first = first[: cut if cut > 0 else _SUMMARY_CHARS].rstrip()
    return f"result of child {child.name} ({child.status}): {first}"


# What is given


def _texts(given: ChildUpdate) -> dict[str, bytes]:
    for part, word in (("agent", given.agent), ("session", given.session)):
        if word is not None:
            check_name(word, part)
    if given.status is not None and given.status not in STATUSES:
        raise _refused(f"{given.status!r} is not a status", "status", f"use one of {', '.join(STATUSES)}")
    lines = "".join(f"{msgspec.json.encode(ref).decode()}\n" for ref in given.refs) or None
    parts = {"handoff": given.handoff, "result": given.result, "refs": lines}
    return {part: _spelled(text, part) for part, text in parts.items() if text is not None}


def _spelled(text: str, place: str) -> bytes:
    try:
        return text.encode()
    except (AttributeError, UnicodeEncodeError) as error:
        problem = "is not text that UTF-8 can spell"
        raise BadMessage(problem, operation="put child", place=place, hint="give a str") from error


def _limited(data: bytes, place: str) -> bytes:
    if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] — the edge: anything may come
        raise _refused("is not bytes", place, "give the content of the file")
    if len(data) > MAX_ARTIFACT_BYTES:
        raise _refused(
            f"has more than {MAX_ARTIFACT_BYTES:,} bytes", place, "leave it where it is, and name it by a ref"
        )
    return data


def _status_after(given: ChildUpdate, former: Child | None) -> ChildStatus:
    before = former.status if former else None
    if given.result is None:
        asked_again = given.handoff is not None and before != "active"
        return "pending" if before is None or asked_again else before
    return "cancelled" if before == "cancelled" else "done"  # who was cancelled stays so, whatever it answers


def _changes(given: ChildUpdate, status: ChildStatus, former: Child | None) -> list[str]:
    """Return whether an update starts or ends a child: fields of its event, so that a crash cannot part them."""
    ended, running = status in _ENDED, former is not None and former.status not in _ENDED
    starts = former is None or (not running and (not ended or given.handoff is not None))
    ends = ended and (starts or running or given.result is not None or (former and former.status != status))
    return ["started"] * starts + ["ended"] * bool(ends)


def _notes(given: ChildUpdate, former: Child | None) -> list[str]:
    notes: list[str] = []
    if given.result is not None:
        if former and former.status == "cancelled":
            notes.append("the child had been cancelled before it answered")
        if given.handoff is None and (former is None or former.handoff is None):
            notes.append("the child is not known to have been asked anything")
    return notes


def _keep(history: History, path: str, data: bytes) -> dict[str, Any]:
    blob = history.blobs.put(data)
    return {"name": path, "digest": digest_bytes(data), "blob": blob, "bytes": len(data)}


def _refused(problem: str, place: str, hint: str) -> BadInput:
    return BadInput(problem, operation="put child", place=place, hint=hint)


# What is there


def _read(root: str, name: str) -> Child:
    folder = os.path.join(root, name)
    return _child(name, read_texts(folder), list_artifacts(folder))


def _child(name: str, texts: Mapping[str, bytes], artifacts: Iterable[str]) -> Child:
    words = {part: data.decode("utf-8", "replace") for part, data in texts.items() if part != "refs"}
    lines = {part: words[part].strip() or None for part in WORDS if part in words}
    status = lines.get("status")
    if status not in (None, *STATUSES):
        _warn(f"child/{name}/status: {status!r} is not a status")
        status = None
    return Child(
        name=name,
        handoff=words.get("handoff"),
        result=words.get("result"),
        refs=_refs(name, texts.get("refs", b"")),
        artifacts=tuple(f"context/child/{name}/{path}" for path in sorted(artifacts)),
        agent=lines.get("agent"),
        session=lines.get("session"),
        status=status,
    )


def _refs(name: str, data: bytes) -> tuple[Ref, ...]:
    found: list[Ref] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.strip():
                found.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeError) as error:
            _warn(f"child/{name}/{FILES['refs']}: line {number} is no ref: {error}")
    return tuple(found)


def _recorded(name: str, files: Files) -> Child:
    texts = {part: files[path]() or b"" for part, path in _PATHS.items() if path in files}
    return _child(name, texts, [path for path in files if path.startswith(f"{ARTIFACTS}/")])


def _files(history: History, data: Mapping[str, Any]) -> dict[str, Callable[[], bytes | None]]:
    texts = {part: history.captured(data[part]) for part in FILES if part in data}
    texts |= {part: f"{data[part]}\n".encode() for part in WORDS if part in data}
    found: dict[str, Callable[[], bytes | None]] = {_PATHS[part]: partial(bytes, text) for part, text in texts.items()}
    for artifact in data.get("artifacts", ()):
        path, blob = check_artifact(artifact["name"]), str(artifact["blob"])
        if history.blobs.has(blob):
            found[f"{ARTIFACTS}/{path}"] = partial(_blob, history, blob)
        else:
            _warn(f"{history.layout.blob}/{blob}: is missing: the artifact {path} cannot be had again")
    return found


def _blob(history: History, name: str) -> bytes | None:
    try:
        return history.blobs.get(name)
    except DaypackError as error:
        _warn(str(error))
        return None


def _warn(problem: str) -> None:
    warnings.warn(DamageWarning(problem), stacklevel=4)
