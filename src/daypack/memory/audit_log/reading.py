"""Reads the audit log: every sealed line, filtered, and what is wrong with the rest."""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from daypack.errors import BadInput
from daypack.files import jsonl
from daypack.files.atomic import refusal, release
from daypack.memory.audit_log.record import ACTIONS, OK, Record
from daypack.memory.times import parse_end_time, parse_time

_decode = msgspec.json.Decoder(Record).decode


class Line(NamedTuple):
    """A line of the log, without its LF; `record` is None if it cannot be read."""

    number: int
    offset: int
    data: bytes
    record: Record | None

    @classmethod
    def read(cls, number: int, offset: int, data: bytes) -> "Line":
        """Return a line with the record in it."""
        return cls(number, offset, data, _read(data))


class Selection(Struct, frozen=True, kw_only=True):
    """Which lines to read; empty values select all. `memory` is an id or the start of one, also in lists.

    `user` is the caller; `owned` are the memories of an owner, by any caller.
    """

    user: str = ""
    owned: frozenset[str] | None = None
    memory: str = ""
    action: str = ""
    since: str = ""
    until: str = ""
    request: str = ""


class Wrong(NamedTuple):
    """Something in the audit log that is not as it was written."""

    line: int
    offset: int
    problem: str


def read_lines(path: str) -> Iterator[Line]:
    """Yield every complete line of a file, in order; a torn last line is not one. No file: no lines."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise refusal(path, error, "read") from error
    try:
        for number, (offset, line) in enumerate(jsonl.scan(fd, 0, os.fstat(fd).st_size), 1):
            yield Line.read(number, offset, line[:-1])
    finally:
        release(fd)


def select(lines: Iterable[Line], wanted: Selection) -> Iterator[Record]:
    """Yield the records that a selection names, oldest first; damaged lines are skipped (see `verify`)."""
    matches = _matcher(wanted)
    for line in lines:
        if line.record is not None and matches(line.record):
            yield line.record


def named_memories(record: Record) -> tuple[str, ...]:
    """Return the ids of the memories that a record is about."""
    return (record.memory, *record.memories) if record.memory else record.memories


def owned_by(lines: Iterable[Line], user: str) -> frozenset[str]:
    """Return the memories that the log shows to be of a user: only an owner's call succeeds. Erased ones too."""
    mine = select(lines, Selection(user=user))
    return frozenset(memory for record in mine if record.result == OK for memory in named_memories(record))


def verify(path: str) -> list[Wrong]:
    """Return what is wrong with a file: damaged lines, missing numbers, a torn tail. A cut that is recorded is not."""
    wrong, end = verify_lines(read_lines(path))
    if os.path.exists(path) and os.path.getsize(path) > end:
        wrong.append(Wrong(0, end, f"{os.path.getsize(path) - end:,} bytes of an unfinished line at the end"))
    return wrong


def verify_lines(lines: Iterable[Line]) -> tuple[list[Wrong], int]:
    """Return which lines are damaged and which numbers are missing, unless a cut is recorded; and where they end."""
    wrong: list[Wrong] = []
    expected = 0
    first: Line | None = None
    cuts: set[int] = set()
    end = 0
    for line in lines:
        end = line.offset + len(line.data) + 1
        if line.record is None:
            wrong.append(Wrong(line.number, line.offset, "damaged: the checksum or the form of the line is wrong"))
            expected += bool(expected)
            continue
        seq = line.record.seq
        if first is None:
            first = line
        elif seq != expected:
            wrong.append(Wrong(line.number, line.offset, f"number {seq}, expected {expected}"))
        expected = seq + 1
        if line.record.action == "audit.cut" and line.record.seqs:
            cuts.add(line.record.seqs[1])
    if first is not None and first.record is not None:
        start = first.record.seq - (first.number - 1)  # damaged lines before it have numbers too
        if start != 1 and start - 1 not in cuts:
            wrong.insert(0, Wrong(1, 0, f"the first line has number {start}, and no cut is recorded"))
    return wrong, end


def _read(data: bytes) -> Record | None:
    if jsonl.check(data) != "sealed":
        return None
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None


class _Matcher:
    def __init__(self, wanted: Selection, since: int | None, until: int | None) -> None:
        self._wanted = wanted
        self._since = since
        self._until = until

    def __call__(self, record: Record) -> bool:
        wanted = self._wanted
        if self._since is not None or self._until is not None:
            moment = parse_time(record.time) or 0
            if (self._since is not None and moment < self._since) or (self._until is not None and moment > self._until):
                return False
        return (
            wanted.user in ("", record.user)
            and wanted.action in ("", record.action)
            and wanted.request in ("", record.request)
            and (not wanted.memory or any(each.startswith(wanted.memory) for each in named_memories(record)))
            and (wanted.owned is None or not wanted.owned.isdisjoint(named_memories(record)))
        )


def _matcher(wanted: Selection) -> _Matcher:
    if wanted.action and wanted.action not in ACTIONS:
        hint = f"the actions are {', '.join(ACTIONS)}"
        raise BadInput(f"unknown action {wanted.action!r}", operation="audit-log", place="--action", hint=hint)
    since, until = parse_time(wanted.since or None), None if not wanted.until else parse_end_time(wanted.until)
    for option, text, found in (("--since", wanted.since, since), ("--until", wanted.until, until)):
        if text and found is None:
            hint = "write an ISO 8601 time, for example 2026-01-31"
            raise BadInput(f"{text[:64]!r} is not a time", operation="audit-log", place=option, hint=hint)
    return _Matcher(wanted, since, until)
