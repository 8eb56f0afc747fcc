"""Rebuild everything under `context/` from the logs, without a model and without appending to them."""

import os
import shutil
from collections.abc import Callable, Iterable
from typing import cast

from msgspec import Struct

from daypack.config import Config
from daypack.derived.children import read_children
from daypack.errors import DaypackError, StorageFailed
from daypack.files import atomic
from daypack.history.layout import Home, Layout
from daypack.history.session import History
from daypack.turn.prepare import Turns
from daypack.types.digest import digest_bytes
from daypack.upkeep.fetching import fetch_session
from daypack.upkeep.gc.apply import APPLIED
from daypack.upkeep.gc.policy import restore_policy

# Files that history reproduces byte for byte: without indexes (same answers, other bytes) and files written by people.
COMPARED = (
    *("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs", "compaction"),
    *("swap", "dedup", "child", "pack", "pack_text"),
)


class Rebuilt(Struct, frozen=True):
    """What a rebuild restored."""

    messages: int
    events: int
    pins: int
    children: int
    compactions: int
    budget: bool
    pack: str | None  # the event whose pack was written
    problem: str | None = None  # why there is no pack


class Difference(Struct, frozen=True):
    """A file under context/ that differs from what history reproduces."""

    path: str
    problem: str


def verify(place: Home, agent: str, name: str, config: Config) -> tuple[Difference, ...]:
    """Rebuild a copy of a session in a temporary folder and compare; the session itself is only read.

    Of a session in a database, this worker has no files that only another one wrote: a missing file is no difference.
    """
    import tempfile  # noqa: PLC0415 — only `verify` needs it

    layout = place.session(agent, name)
    fetch_session(layout)
    is_cache = place.database is not None
    with tempfile.TemporaryDirectory(prefix="daypack-verify-") as folder:
        copy = Home(folder, place.uid).session(agent, name)
        _copy(layout, copy)
        history = History(copy, config)
        turns = Turns(history, config, name=name, agent=agent)
        problem = rebuild(history, turns).problem
        applied = [event for event in history.events.records() if event.type == APPLIED]
        collected = {kind for event in applied for kind in _kinds(event.data.get("removed"))}
        turns.close()
        history.close()
        rebuilt, actual = _digests(copy), _digests(layout)
    if problem:
        return (Difference(os.path.relpath(layout.derived("pack"), layout.folder), problem),)
    return tuple(
        Difference(path, problem)
        for path in sorted(rebuilt.keys() | actual.keys())
        if (problem := _compare(rebuilt.get(path), actual.get(path)))
        and not (is_cache and path not in actual)
        and not _is_collected(path, collected, removed=path not in actual)
    )


def _copy(layout: Layout, copy: Layout) -> None:
    """Copy a session without its derived files; a file that cannot be copied (a pipe, no permission) is named."""
    try:
        shutil.copytree(layout.folder, copy.folder, symlinks=True, ignore=_ignore_context(layout))
    except shutil.Error as error:
        path, _, problem = error.args[0][0]
        hint = "move it out of the session; `daypack doctor` lists what does not belong there"
        raise StorageFailed(str(problem), operation="verify", place=str(path), hint=hint) from error
    except OSError as error:
        raise atomic.refusal(layout.folder, error, "copy") from error


def _kinds(removed: object) -> Iterable[str]:
    """Return the kinds of files that an event says were removed; none if the event was written by hand."""
    return map(str, cast("Iterable[object]", removed)) if isinstance(removed, dict | list) else ()


def _is_collected(path: str, kinds: set[str], *, removed: bool) -> bool:
    """Return True if a file differs because `gc` removed it or files it lists."""
    part = path.split(os.sep)[1]
    if part == "dedup" and "dedup" in kinds:
        return True
    if part == "child" and "child" in kinds:
        return removed
    return removed and (part in ("pack.json", "pack.md") or os.sep + "sha256-" in path)


def _ignore_context(layout: Layout) -> Callable[[str, list[str]], list[str]]:
    """Return an ignore function for copytree that leaves out derived files."""
    return lambda folder, names: [name for name in names if os.path.join(folder, name) == layout.context]


def _digests(layout: Layout) -> dict[str, str]:
    digests: dict[str, str] = {}
    for name in COMPARED:
        path = layout.derived(name)
        files = [os.path.join(folder, file) for folder, _, names in os.walk(path) for file in names]
        for file in files or ([path] if os.path.isfile(path) else []):
            data = None if os.path.basename(file).startswith(atomic.TEMPORARY) else atomic.read(file)
            if data is not None:
                digests[os.path.relpath(file, layout.folder)] = digest_bytes(data)
    return digests


def _compare(rebuilt: str | None, actual: str | None) -> str:
    if rebuilt == actual:
        return ""
    return "missing" if actual is None else "not in history" if rebuilt is None else "content differs"


def rebuild(history: History, turns: Turns) -> Rebuilt:
    """Restore indexes, pins, children, compacted records, the budget and the newest pack; nothing is appended."""
    layout = history.layout
    messages, events = history.messages.rebuild(), history.events.rebuild()
    atomic.discard(layout.derived("calls"))  # the next view of them reads the logs
    pins = len(history.pins())
    folded = turns.inputs.ledger.read()
    children = len(read_children(history, recorded=folded.children))
    turns.inputs.working_state.write()
    compactions = len(turns.inputs.working_state.read().accepted)
    path = layout.derived("budget")
    restore_policy(history, history.events.records())
    if folded.budget is not None and not os.path.lexists(path):
        atomic.make_folders(layout.context)
        atomic.replace(path, folded.budget.encode())
    event = problem = None
    if newest := folded.turns.get("model"):
        try:
            # The digests of an erased turn are not comparable; its pack shows the markers.
            turns.write_pack(turns.replay(newest.event, verify_digests=not newest.erased))
            event = newest.event
        except DaypackError as error:
            problem = str(error)
    turns.inputs.ledger.save(always=True)
    return Rebuilt(messages, events, pins, children, compactions, folded.budget is not None, event, problem)
