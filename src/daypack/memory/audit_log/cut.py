"""Shortens the audit log: older lines are copied to a file and removed, and the last line says so. Plan, then apply."""

import os

from daypack.errors import BadInput, Damaged
from daypack.memory.audit_log.port import Cut, Log
from daypack.memory.times import parse_time


def plan_cut(log: Log, before: str) -> Cut:
    """Return which lines are older than a time; lines after the first newer one stay, whatever their time."""
    moment = parse_time(before)
    if moment is None:
        hint = "write an ISO 8601 time, for example 2026-01-31"
        raise BadInput(f"{before[:64]!r} is not a time", operation="audit cut", place="--before", hint=hint)
    if wrong := log.verify():
        hint = "run `daypack audit-log verify`; keep a copy of the log as it is"
        raise Damaged(wrong[0].problem, operation="audit cut", place=log.place, hint=hint)
    lines = size = first = last = kept = 0
    for line in log.lines():
        assert line.record is not None  # verified
        if kept or (parse_time(line.record.time) or 0) >= moment:
            kept += 1
            continue
        lines, size = lines + 1, size + len(line.data) + 1
        first, last = first or line.record.seq, line.record.seq
    return Cut(lines, size, first, last, kept)


def apply_cut(log: Log, before: str, archive: str) -> Cut:
    """Copy the older lines to a new file, then remove them; the removal is a line of the log itself."""
    if os.path.lexists(archive):
        raise BadInput("the file exists", operation="audit cut", place=archive, hint="name a new file")
    log.require()
    planned = plan_cut(log, before)
    return log.cut(lambda: plan_cut(log, before), archive) if planned.lines else planned
