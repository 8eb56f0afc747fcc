"""Garbage collection: `plan` says what may go and why, `apply` does it under the writers' lock.

    {"type":"gc.applied","data":{"removed":{"pack":2,"swap":1},"bytes":9120,"paths":["context/pack.json",…]}}

Only derived files go: packs, chunks that history gives again, blobs nobody refers to, what crashed writers left, and
children when it is asked for. Logs, captured text, pins, the budget and the policy never do.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from daypack.errors import Damaged, DaypackError, StorageFailed
from daypack.files import atomic
from daypack.history.draft import draft_event
from daypack.history.session import INLINE_BYTES, History
from daypack.types.records import DedupRecord
from daypack.upkeep.gc.inspection import KINDS, Going, Inspection, Missing, Plan, Staying, blob_name
from daypack.upkeep.gc.policy import Policy, recorded_policy, take_in_policy
from daypack.upkeep.gc.reachability import Reach, read_index
from daypack.upkeep.gc.tree import remove_folder

APPLIED = "gc.applied"


class Applied(Struct, frozen=True):
    """What was removed, what of the plan stays after all, and the event that tells of it; None: nothing went."""

    removed: tuple[Going, ...]
    spared: tuple[Staying, ...]
    bytes: int
    event: str | None = None


def plan(history: History, policy: Policy, now: float, *, children: bool = False) -> Plan:
    """Say what may go. It only reads; `children`: those that are done and nobody names may go too."""
    return Inspection(history, policy, now, children=children).decide()


def apply(history: History, planned: Plan) -> Applied:
    """Remove what a plan names, as far as it may still go, and record it in one event."""
    look = Inspection(history, planned.policy, planned.now, children=planned.children)
    look.decide()  # what is dear is read before the others have to wait
    with history.lock:
        fresh = look.decide()
        if fresh.missing:
            raise _incomplete(history, fresh.missing)
        asked = {one.path for one in planned.going}
        going = [one for one in fresh.going if one.path in asked]
        spared = tuple(one for one in fresh.staying if one.path in asked)
        removed: list[Going] = []
        try:
            for one in _remove(history, going):
                removed.append(one)  # noqa: PERF402 — when it fails, what went before is told
        except StorageFailed:
            with suppress(DaypackError):  # the first failure is the one to tell of
                _record(history, removed, look.reach)
            raise
        event = _record(history, removed, look.reach)
    return Applied(tuple(removed), spared, sum(one.bytes for one in removed), event)


def _remove(history: History, going: Sequence[Going]) -> Iterator[Going]:
    """Remove and yield one after the other; a name goes before what it names."""
    folder = history.layout.folder
    ordered = sorted(going, key=lambda one: KINDS.index(one.kind))
    blobs_going = {os.path.basename(one.path) for one in ordered if one.kind == "dedup"}
    folders: set[str] = set()
    rewritten = False
    for one in ordered:
        path = os.path.join(folder, one.path)
        if one.kind == "dedup" and not rewritten:
            # The index before its blobs: no line is ever without its blob.
            _forget(os.path.join(history.layout.derived("dedup"), "index.jsonl"), blobs_going)
            rewritten = True
        try:
            if one.kind == "child" or os.path.isdir(path):
                remove_folder(path, history.layout.context)
            else:
                os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise atomic.refusal(path, error, "remove") from error
        folders.add(os.path.dirname(path))
        yield one
    for place in folders:
        atomic.sync_folder(place)


def _forget(index: str, names: set[str]) -> None:
    lines = read_index(index, DedupRecord)
    kept = [line for line, record in lines if record is None or blob_name(record) not in names]
    if len(kept) < len(lines):
        atomic.replace(index, b"".join(kept))


def _record(history: History, removed: Sequence[Going], reach: Reach) -> str | None:
    """Append what was done: the policy, when somebody wrote it by hand, and what went."""
    reach.catch_up()
    take_in_policy(history, recorded_policy(history, (reach.policy,) if reach.policy else ()))
    if not removed:
        return None
    counts = {kind: number for kind in KINDS if (number := sum(one.kind == kind for one in removed))}
    data: dict[str, Any] = {"removed": counts, "bytes": sum(one.bytes for one in removed)}
    paths = [one.path for one in removed]
    listed = msgspec.json.encode(paths)
    data |= {"paths": paths} if len(listed) <= INLINE_BYTES else {"listed": history.capture(listed)}
    return history.append_event(draft_event(APPLIED, data)).id


def _incomplete(history: History, missing: Sequence[Missing]) -> Damaged:
    first = missing[0]
    more = f"; and {len(missing) - 1} more" if len(missing) > 1 else ""
    return Damaged(
        f"it is missing, and {first.why}{more}",
        operation="collect",
        place=os.path.join(history.layout.folder, first.path),
        hint="nothing was removed; restore it from a backup, or see `daypack rebuild` if it is under context/",
    )
