"""Rebuild: compute everything under `context/` again from the logs, without a model and without adding to them."""

import os
import shutil
from collections.abc import Callable

from msgspec import Struct

from daypack.config import Config
from daypack.derived.children import read_children
from daypack.errors import DaypackError
from daypack.files import atomic, blobs
from daypack.history.layout import Home, Layout
from daypack.history.session import History
from daypack.turn.prepare import Turns
from daypack.upkeep.gc.gc import APPLIED
from daypack.upkeep.gc.policy import restore_policy

# What history says byte for byte. Not here: indexes and search (they give the same answers), and what people write.
COMPARED = (
    *("context_doc", "summary", "facts", "decisions", "todo", "errors", "refs", "compaction"),
    *("swap", "dedup", "child", "pack", "pack_text"),
)


class Rebuilt(Struct, frozen=True):
    """What there is again."""

    messages: int
    events: int
    pins: int
    children: int
    compactions: int
    budget: bool
    pack: str | None  # the event whose pack was written
    problem: str | None = None  # why there is no pack


class Difference(Struct, frozen=True):
    """A file under context/ that says something else than history does."""

    path: str
    problem: str


def verify(place: Home, agent: str, name: str, config: Config) -> tuple[Difference, ...]:
    """Rebuild a session elsewhere and compare; the session itself is only read."""
    import tempfile  # noqa: PLC0415 — only here

    layout = place.session(agent, name)
    with tempfile.TemporaryDirectory(prefix="daypack-verify-") as folder:
        copy = Home(folder, place.uid).session(agent, name)
        shutil.copytree(layout.folder, copy.folder, symlinks=True, ignore=_outside(layout))
        history = History(copy, config)
        turns = Turns(history, config, name=name, agent=agent)
        problem = rebuild(history, turns).problem
        collected = {kind for one in history.events.records() if one.type == APPLIED for kind in one.data["removed"]}
        turns.close()
        history.close()
        made, found = _digests(copy), _digests(layout)
    if problem:
        return (Difference(os.path.relpath(layout.derived("pack"), layout.folder), problem),)
    told = [Difference(path, _problem(made.get(path), found.get(path))) for path in sorted(made.keys() | found.keys())]
    return tuple(
        one for one in told if one.problem and not _is_collected(one.path, collected, gone=one.path not in found)
    )


def _is_collected(path: str, kinds: set[str], *, gone: bool) -> bool:
    """Whether a file differs because `gc` took it, or what it lists, away."""
    part = path.split(os.sep)[1]
    if part == "dedup" and "dedup" in kinds:
        return True
    if part == "child" and "child" in kinds:
        return gone
    return gone and (part in ("pack.json", "pack.md") or os.sep + "sha256-" in path)


def _outside(layout: Layout) -> Callable[[str, list[str]], list[str]]:
    """Copy the truth: not what is derived from it."""
    return lambda folder, names: [name for name in names if os.path.join(folder, name) == layout.context]


def _digests(layout: Layout) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in COMPARED:
        path = layout.derived(name)
        inside = [os.path.join(at, one) for at, _, ones in os.walk(path) for one in ones]
        for file in inside or ([path] if os.path.isfile(path) else []):
            data = None if os.path.basename(file).startswith(atomic.TEMPORARY) else atomic.read(file)
            if data is not None:
                found[os.path.relpath(file, layout.folder)] = blobs.digest_bytes(data)
    return found


def _problem(made: str | None, found: str | None) -> str:
    if made == found:
        return ""
    return "is missing" if found is None else "history does not have it" if made is None else "says something else"


def rebuild(history: History, turns: Turns) -> Rebuilt:
    """Bring back indexes, pins, children, the budget and the newest pack; nothing is appended."""
    layout = history.layout
    messages, events = history.messages.rebuild(), history.events.rebuild()
    pins = len(history.pins())
    folded = turns.inputs.ledger.read()
    children = len(read_children(history, recorded=folded.children))
    turns.inputs.working.write()
    compactions = len(turns.inputs.working.read().accepted)
    path = layout.derived("budget")
    restore_policy(history, history.events.records())
    if folded.budget is not None and not os.path.lexists(path):
        atomic.make_folders(layout.context)
        atomic.replace(path, folded.budget.encode())
    event = problem = None
    if newest := folded.turns.get("model"):
        try:
            turns.write_pack(turns.replay(newest.event))
            event = newest.event
        except DaypackError as error:
            problem = str(error)
    turns.inputs.ledger.save(always=True)
    return Rebuilt(messages, events, pins, children, compactions, folded.budget is not None, event, problem)
