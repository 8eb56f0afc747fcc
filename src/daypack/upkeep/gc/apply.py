"""Apply a garbage collection plan: remove its files under the writers' lock and record one event.

{"type":"gc.applied","data":{"removed":{"pack":2,"swap":1},"bytes":9120,"paths":["context/pack.json",…]}}
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from daypack.errors import Damaged, DaypackError, StorageFailed
from daypack.files import atomic
from daypack.history.draft import draft_event
from daypack.history.session import INLINE_BYTES, History
from daypack.types.records import DedupRecord
from daypack.upkeep.gc.plan import REMOVAL_ORDER, Missing, Plan, Planner, Removal, Retained, blob_name
from daypack.upkeep.gc.policy import record_policy, recorded_policy
from daypack.upkeep.gc.reachability import Reachability
from daypack.upkeep.gc.references import read_index
from daypack.upkeep.gc.session_files import remove_folder

APPLIED = "gc.applied"


class Applied(Struct, frozen=True):
    """What was removed, which planned removals were skipped, and the event that records it (None: nothing removed)."""

    removed: tuple[Removal, ...]
    skipped: tuple[Retained, ...]
    bytes: int
    event: str | None = None


def apply(history: History, planned: Plan) -> Applied:
    """Remove the planned files that are still removable.

    The session is inspected again under the lock: a file that came into use after the plan was made is kept.
    """
    planner = Planner(history, planned.policy, planned.now, children=planned.children)
    planner.decide()  # the expensive reads happen before other writers have to wait for the lock
    with history.lock:
        current = planner.decide()
        if current.missing:
            raise _incomplete(history, current.missing)
        planned_paths = {removal.path for removal in planned.removals}
        removals = [removal for removal in current.removals if removal.path in planned_paths]
        skipped = tuple(retained for retained in current.retained if retained.path in planned_paths)
        removed: list[Removal] = []
        try:
            for removal in _remove(history, removals):
                removed.append(removal)  # noqa: PERF402 — after a failure, `removed` lists what is already gone
        except StorageFailed:
            with suppress(DaypackError):  # report the first failure, not this one
                _record(history, removed, planner.reachability)
            raise
    event = history.locked(partial(_record, history, removed, planner.reachability))
    return Applied(tuple(removed), skipped, sum(removal.bytes for removal in removed), event)


def _remove(history: History, removals: Sequence[Removal]) -> Iterator[Removal]:
    """Remove and yield each file; a file that refers to another is removed first."""
    session = history.layout.folder
    ordered = sorted(removals, key=lambda removal: REMOVAL_ORDER.index(removal.kind))
    blob_names = {os.path.basename(removal.path) for removal in ordered if removal.kind == "dedup"}
    changed_folders: set[str] = set()
    index_rewritten = False
    for removal in ordered:
        path = os.path.join(session, removal.path)
        if removal.kind == "dedup" and not index_rewritten:
            # The index before its blobs: no line is ever without its blob.
            _drop_from_index(os.path.join(history.layout.derived("dedup"), "index.jsonl"), blob_names)
            index_rewritten = True
        try:
            if removal.kind == "child" or os.path.isdir(path):
                remove_folder(path, history.layout.context)
            else:
                os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise atomic.refusal(path, error, "remove") from error
        changed_folders.add(os.path.dirname(path))
        yield removal
    for folder in changed_folders:
        atomic.sync_folder(folder)


def _drop_from_index(index: str, names: set[str]) -> None:
    lines = read_index(index, DedupRecord)
    remaining = [line for line, record in lines if record is None or blob_name(record) not in names]
    if len(remaining) < len(lines):
        atomic.replace(index, b"".join(remaining))


def _record(history: History, removed: Sequence[Removal], reachability: Reachability) -> str | None:
    """Append the policy event if the policy file is new, then the event that lists what was removed."""
    reachability.catch_up()
    policy = reachability.policy
    record_policy(history, recorded_policy(history, (policy,) if policy else ()))
    if not removed:
        return None
    counts = {kind: count for kind in REMOVAL_ORDER if (count := sum(removal.kind == kind for removal in removed))}
    data: dict[str, Any] = {"removed": counts, "bytes": sum(removal.bytes for removal in removed)}
    paths = [removal.path for removal in removed]
    encoded = msgspec.json.encode(paths)
    data |= {"paths": paths} if len(encoded) <= INLINE_BYTES else {"captured_paths": history.capture(encoded)}
    return history.append_event(draft_event(APPLIED, data)).id


def _incomplete(history: History, missing: Sequence[Missing]) -> Damaged:
    first = missing[0]
    more = f"; {len(missing) - 1} more missing" if len(missing) > 1 else ""
    return Damaged(
        f"file is missing: {first.reason}{more}",
        operation="collect",
        place=os.path.join(history.layout.folder, first.path),
        hint="nothing was removed; restore the file from a backup, or run `daypack rebuild` if it is under context/",
    )
