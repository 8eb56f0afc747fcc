"""Check a session in a database: its rows, lines and blobs, and the folder that is a cache of it. Read-only.

Rows and blobs are read one batch at a time, so memory does not grow with the session.
"""

import os
import shlex
from collections.abc import Iterator
from zlib import crc32

from daypack.errors import DaypackError
from daypack.files import atomic, blobs, jsonl
from daypack.history.facets import parse_meta
from daypack.history.layout import Layout
from daypack.history.postgres.cache import store_of
from daypack.history.postgres.folder import read_marker
from daypack.history.postgres.rewriting import Known, Row, SessionRows
from daypack.history.postgres.store import Opened
from daypack.history.sessions import session_missing
from daypack.plain_files import open_fd
from daypack.types.history import Event, Message
from daypack.upkeep.doctor import Finding, Severity, check_settings, examine_lines, references_in

_SHAPES: tuple[type[Message | Event], ...] = (Message, Event)
_FILES = ("messages.jsonl", "events.jsonl")
_RESTORE = "restore the database from a backup"


def examine_stored(layout: Layout) -> Iterator[Finding]:
    """Yield every finding of a session in a database; raise SessionMissing if it is not there."""
    store = store_of(layout)
    opened = store.find(layout.agent, layout.name)
    if opened is None:
        raise session_missing(layout.home, layout.agent, layout.name, "doctor")
    rows = SessionRows(store.database, store.tenant, opened.stored.number)
    known = rows.known()
    place = f"{store.place} {layout.agent}/{layout.name}"
    cache = _Cache(layout, opened, known, rows)
    referenced: dict[str, str] = {}
    try:
        for log, shape in enumerate(_SHAPES):
            check = _RowCheck(rows, known, log, f"{place} {_FILES[log]}")
            lines = check.lines(cache, referenced if shape is Event else None)
            yield from examine_lines(check.path, lines, shape)
            yield from check.findings
        yield from _examine_blobs(opened, place, referenced)
        yield from _examine_meta(layout, known, place)
        yield from cache.findings()
    finally:
        cache.close()


class _RowCheck:
    """Reads the rows of a log, and notes what is wrong with them."""

    def __init__(self, rows: SessionRows, known: Known, log: int, path: str) -> None:
        self._rows = rows
        self._known = known
        self._log = log
        self.path = path
        self.findings: list[Finding] = []

    def lines(self, cache: "_Cache", referenced: dict[str, str] | None) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the bytes of every line."""
        at = crc = offset = 0
        pending: list[bytes] = []
        for row in self._rows.read(self._known.generation, self._log, 0, self._known.ends[self._log].end):
            crc = self._check(row, at, crc)
            if row.start != at:
                pending.clear()  # the rest of this line is missing
                offset = row.start
            cache.compare(self._log, row)
            *whole, rest = row.data.split(b"\n")
            for part in whole:
                line = b"".join((*pending, part, b"\n"))
                pending.clear()
                if referenced is not None:
                    for event, name in references_in(line[:-1]):
                        referenced.setdefault(name, f"{event.id or 'an event'} ({event.type})")
                yield offset, line
                offset += len(line)
            if rest:
                pending.append(rest)
            at = row.stop
        if pending:
            self._note("the last line is not complete", offset)

    def _check(self, row: Row, at: int, crc: int) -> int:
        """Compare a row with what comes before it; return the checksum that the log has after it."""
        if row.start > at:
            self._note(f"a row is missing: bytes {at:,} to {row.start - 1:,}", at)
        elif row.start < at:
            self._note(f"two rows have the bytes {row.start:,} to {at - 1:,}", row.start)
        elif row.stop != row.start + len(row.data):
            self._note(f"a row has {len(row.data):,} bytes, not {row.stop - row.start:,}", row.start)
        elif crc32(row.data, crc) != row.crc:
            self._note("a row does not match its checksum", row.start)
        if row.data and not row.data.endswith(b"\n"):
            self._note("a row does not end with a line", row.start)
        return row.crc

    def _note(self, problem: str, offset: int) -> None:
        self.findings.append(Finding("damage", self.path, problem, _RESTORE, offset=offset))


def _examine_blobs(opened: Opened, place: str, referenced: dict[str, str]) -> Iterator[Finding]:
    names = opened.stored.blob_names()
    for name in names:
        data = opened.stored.blob(name)
        if data is not None and blobs.name_of(data) != name:
            yield Finding("damage", f"{place} {name}", "content does not match its digest name", _RESTORE)
    for name in referenced.keys() - set(names):
        problem = f"missing, but referenced by {referenced[name]}"
        yield Finding("damage", f"{place} {name}", problem, _RESTORE)


def _examine_meta(layout: Layout, known: Known, place: str) -> Iterator[Finding]:
    meta = parse_meta(known.files.meta)
    path = f"{place} meta.json"
    if meta is None:
        yield Finding("damage", path, "meta.json is not a JSON object", _RESTORE)
        return
    try:
        check_settings(layout, meta)
    except DaypackError as error:
        yield Finding("damage", path, error.problem, error.hint)


class _Cache:
    """The folder of a session on this machine, compared with the rows while they are read."""

    def __init__(self, layout: Layout, opened: Opened, known: Known, rows: SessionRows) -> None:
        self._layout = layout
        self._rows = rows
        self._known = known
        self._marker = read_marker(layout)
        self._is_current = self._marker is not None and (self._marker.identity, self._marker.generation) == (
            opened.identity,
            known.generation,
        )
        paths = (layout.messages, layout.events) if self._is_current else ()
        self._fds = [_open(path) for path in paths]
        self._sizes = [os.fstat(fd).st_size if fd >= 0 else 0 for fd in self._fds]
        self._problem = ""

    def compare(self, log: int, row: Row) -> None:
        """Compare a row with the same bytes of the folder, as far as it has them."""
        if not self._is_current or self._problem or self._fds[log] < 0:
            return
        length = min(len(row.data), max(0, self._sizes[log] - row.start))
        try:
            if length and jsonl.read_at(self._fds[log], row.start, length) != row.data[:length]:
                self._problem = f"{_FILES[log]} differs from the database after byte {row.start:,}"
        except (OSError, EOFError):
            self._problem = f"{_FILES[log]} cannot be read"

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the folder, once: it is made again as a whole."""
        if not os.path.lexists(self._layout.folder):
            return
        if not self._is_current:
            yield self._finding("note", "a cache of an earlier state of the session")
            return
        ends = self._rows.known().ends  # another worker may have appended since the folder was opened
        for log, size in enumerate(self._sizes):
            if size > ends[log].end and not self._problem:
                self._problem = f"{_FILES[log]} has more than the database"
        problem = self._problem or self._meta_problem() or self._blob_problem()
        if problem:
            yield self._finding("warning", f"the cache is wrong: {problem}")

    def _meta_problem(self) -> str:
        if self._marker is None or self._marker.version != self._known.version:
            return ""
        cached, stored = parse_meta(atomic.read(self._layout.meta) or b""), parse_meta(self._known.files.meta)
        own = {"counters": None}  # each worker counts for itself
        same = (cached is None) == (stored is None) and {**(cached or {}), **own} == {**(stored or {}), **own}
        return "" if same else "meta.json differs from the database"

    def _blob_problem(self) -> str:
        names = sorted(os.listdir(self._layout.blob)) if os.path.isdir(self._layout.blob) else []
        for name in names:
            if name.startswith(atomic.TEMPORARY):
                continue
            try:
                data = atomic.read(os.path.join(self._layout.blob, name)) or b""
            except DaypackError as error:
                return f"blob {name}: {error.problem}"
            if blobs.name_of(data) != name:
                return f"blob {name} does not match its name"
        return ""

    def _finding(self, severity: Severity, problem: str) -> Finding:
        folder = shlex.quote(self._layout.folder)
        advice = f"deleting it is safe, and the next use fetches it again: rm -r {folder}"
        return Finding(severity, self._layout.folder, problem, advice)

    def close(self) -> None:
        for fd in self._fds:
            if fd >= 0:
                atomic.release(fd)


def _open(path: str) -> int:
    try:
        return open_fd(path, os.O_NOFOLLOW)
    except OSError:
        return -1
