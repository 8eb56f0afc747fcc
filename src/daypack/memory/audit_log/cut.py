"""Shortens the audit log: older lines are copied to a file and removed, and the last line says so. Plan, then apply."""

import os
from contextlib import suppress
from typing import NamedTuple

from daypack.errors import BadInput, Damaged, WriteFailed
from daypack.files import jsonl
from daypack.files.atomic import TEMPORARY, discard, sync_folder
from daypack.files.durable import sync
from daypack.memory.audit_log.log import AuditLog
from daypack.memory.audit_log.reading import read_lines, verify
from daypack.memory.audit_log.record import Deed
from daypack.memory.times import parse_time
from daypack.plain_files import open_plain


class Cut(NamedTuple):
    """What a cut removes: lines, bytes, and the numbers of the first and the last of them."""

    lines: int
    bytes: int
    first: int
    last: int
    kept: int


def plan_cut(log: AuditLog, before: str) -> Cut:
    """Return which lines are older than a time; lines after the first newer one stay, whatever their time."""
    moment = parse_time(before)
    if moment is None:
        hint = "write an ISO 8601 time, for example 2026-01-31"
        raise BadInput(f"{before[:64]!r} is not a time", operation="audit cut", place="--before", hint=hint)
    if wrong := verify(log.path):
        hint = "run `daypack audit-log verify`; keep a copy of the file as it is"
        raise Damaged(wrong[0].problem, operation="audit cut", place=log.path, hint=hint)
    lines = size = first = last = kept = 0
    for line in read_lines(log.path):
        assert line.record is not None  # verified
        if kept or (parse_time(line.record.time) or 0) >= moment:
            kept += 1
            continue
        lines, size = lines + 1, size + len(line.data) + 1
        first, last = first or line.record.seq, line.record.seq
    return Cut(lines, size, first, last, kept)


def apply_cut(log: AuditLog, before: str, archive: str) -> Cut:
    """Copy the older lines to a new file, then remove them; the removal is a line of the log itself."""
    if os.path.lexists(archive):
        raise BadInput("the file exists", operation="audit cut", place=archive, hint="name a new file")
    log.require()
    if not plan_cut(log, before).lines:
        return plan_cut(log, before)
    with log.lock:
        cut = plan_cut(log, before)
        last_line = log.render(Deed(action="audit.cut", tool="audit-log", seqs=(cut.first, cut.last)))
        shortened = os.path.join(os.path.dirname(log.path), f"{TEMPORARY}audit.{os.getpid()}")
        try:
            with open_plain(log.path) as source:
                _copy(source.fileno(), (0, cut.bytes), archive)
                sync_folder(os.path.dirname(os.path.abspath(archive)))
                _copy(source.fileno(), (cut.bytes, os.path.getsize(log.path)), shortened, last_line)
            os.replace(shortened, log.path)
        except OSError as error:
            discard(shortened)
            problem = error.strerror or str(error)
            hint = "the audit log is unchanged; name a file in a folder with free space"
            raise WriteFailed(problem, operation="audit cut", place=archive, hint=hint) from error
        sync_folder(os.path.dirname(log.path))
    log.close()
    return cut


def _copy(source: int, span: tuple[int, int], path: str, last_line: bytes = b"") -> None:
    """Copy a part of a file, and then a line, to a new file, durably; leave none if that fails."""
    start, stop = span
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while start < stop and (data := os.pread(source, min(1 << 20, stop - start), start)):
            jsonl.write_all(fd, data)
            start += len(data)
        jsonl.write_all(fd, last_line)
        sync(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)
