"""Check a session for damage and report each problem with its place and a remedy. Read-only."""

import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal, cast
from zlib import crc32

import msgspec

from daypack.config import settle
from daypack.errors import BadSource, DaypackError
from daypack.files import atomic, blobs, jsonl
from daypack.files.offsets import DAMAGED, UNSEALED, Offsets, Slot
from daypack.files.rewrite import STAGING
from daypack.history.creation import check_format
from daypack.history.layout import Layout
from daypack.history.logs.lines import UNREADABLE, examine, next_seq
from daypack.history.logs.reader import PREFIX
from daypack.text.tokens import counter_named
from daypack.turn.evidence.observed.record import blobs_of
from daypack.turn.ledger import OBSERVED
from daypack.types.digest import file_name_of
from daypack.types.history import Event, Message
from daypack.types.kinds import SESSION_STATES

Severity = Literal["damage", "warning", "note"]
_BATCH = 10_000
_EVENTS = msgspec.json.Decoder(Event)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem. Damage: bytes were lost or changed. Warning: repairs itself or is easily repaired."""

    severity: Severity
    path: str
    problem: str
    advice: str
    line: int | None = None
    offset: int | None = None


def examine_session(layout: Layout) -> Iterator[Finding]:
    """Yield every finding of one session."""
    try:
        layout.guard()
    except DaypackError as error:
        yield Finding("damage", error.place, error.problem, error.hint)
        return
    for path, shape in ((layout.messages, Message), (layout.events, Event)):
        yield from _examine_log(layout, path, shape)
    yield from _examine_meta(layout)
    yield from _examine_blobs(layout)
    yield from _examine_tree(layout)


def _examine_log(layout: Layout, path: str, shape: type[Message | Event]) -> Iterator[Finding]:
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield Finding(
            "damage",
            path,
            f"{name} is missing",
            "restore it from a backup; create an empty file only if the log never had a line",
        )
        return
    except OSError as error:
        refused = atomic.refusal(path, error, "read")
        yield Finding("damage", path, refused.problem, refused.hint)
        return
    try:
        size = os.fstat(fd).st_size
        yield from examine_lines(path, jsonl.scan(fd, 0, size), shape, _IndexCheck(layout, path))
        tail = jsonl.unterminated(fd, 0, size)
        if tail and os.fstat(fd).st_size == size:
            tail_kind, remedy = "incomplete line", "moves it to a .torn file"
            if jsonl.complete(tail):
                tail_kind, remedy = "complete line without a newline", "adds the newline"
            yield Finding(
                "warning",
                path,
                f"{tail_kind} at the end, {len(tail)} bytes (a crash, or a write in progress)",
                f"nothing to do: the next append {remedy} and continues",
                offset=size - len(tail),
            )
    except OSError as error:
        refused = atomic.refusal(path, error, "read")
        yield Finding("damage", path, refused.problem, refused.hint)
    finally:
        os.close(fd)


def examine_lines(
    path: str,
    lines: Iterable[tuple[int, bytes]],
    shape: type[Message | Event],
    index: "_IndexCheck | None" = None,
) -> Iterator[Finding]:
    """Yield what is wrong with the lines of a log, each given with its offset, and with their index."""
    decoder = msgspec.json.Decoder(shape)
    seq = number = crc = 0
    unsealed: list[int] = []
    for number, (offset, line) in enumerate(lines, 1):
        examined = examine(line[:-1])
        problem = examined.reason
        try:
            if examined.record:
                decoder.decode(examined.record)
        except UNREADABLE as error:
            problem = problem or f"not a valid log line: {error}"
        if problem:
            advice = "compare it with a backup, or leave it: readers skip it, and it is never deleted"
            if examined.reason.startswith("checksum"):
                advice += "; if you edited the line yourself, remove its crc key"
            yield Finding("damage", path, problem, advice, number, offset)
        if examined.flags & UNSEALED:
            unsealed.append(number)
        elif examined.record and examined.seq != seq + 1:
            yield _misnumbered(path, shape, examined.seq, seq, (number, offset))
        seq = next_seq(seq, examined)
        crc = crc32(line, crc)
        if index is not None:
            index.compare(number, (offset, len(line), seq, crc), damaged=bool(examined.flags & DAMAGED))
    if unsealed:
        shown = ", ".join(map(str, unsealed[:10])) + (" …" if len(unsealed) > 10 else "")
        problem = f"{(f'{len(unsealed)} lines' if len(unsealed) > 1 else '1 line')} without a checksum: {shown}"
        yield Finding("note", path, problem, "fine for lines written by hand; later changes to them cannot be detected")
    if index is not None:
        yield from index.findings(number)


def _misnumbered(path: str, shape: type, stated: int, previous: int, place: tuple[int, int]) -> Finding:
    prefix = PREFIX[shape]
    if stated > previous + 1:
        missing = f"{prefix}-{previous + 1}" + (f" to {prefix}-{stated - 1}" if stated > previous + 2 else "")
        problem = f"{missing} {'are' if stated > previous + 2 else 'is'} missing before this line"
    else:
        problem = f"{prefix}-{stated} follows {prefix}-{previous}: a line was copied or moved"
    return Finding(
        "damage", path, problem, "restore the log from a backup, or leave it: readers continue after it", *place
    )


class _IndexCheck:
    """Compares a log's offset index with the log, line by line."""

    def __init__(self, layout: Layout, log: str) -> None:
        self.path = layout.index(os.path.basename(log).removesuffix(".jsonl"))
        self._offsets = Offsets(self.path, None)
        self._slots = self._read(self._offsets.refresh())
        self._first_difference = 0
        self._line_damaged = False

    def _read(self, count: int) -> Iterator[Slot]:
        for start in range(0, count, _BATCH):
            yield from self._offsets.read(start, min(start + _BATCH, count))

    def compare(self, line: int, facts: tuple[int, int, int, int], *, damaged: bool) -> None:
        slot = next(self._slots, None)
        if slot and (slot.offset, slot.length, slot.seq, slot.crc) != facts and not self._first_difference:
            self._first_difference = line
            self._line_damaged = damaged

    def findings(self, lines: int) -> Iterator[Finding]:
        surplus = next(self._slots, None) is not None
        self._offsets.close()
        if self._first_difference and not self._line_damaged:
            problem = f"differs from its log, starting at line {self._first_difference}"
        elif surplus:
            problem = f"has more entries than its log has lines ({lines})"
        else:
            return
        advice = f"delete it; it is rebuilt from the log: rm {shlex.quote(self.path)}"
        yield Finding("warning", self.path, problem, advice)


def _examine_meta(layout: Layout) -> Iterator[Finding]:
    advice = "remove it and open the session: a new one is written"
    try:
        data = atomic.read(layout.meta)
        if data is None:
            yield Finding("warning", layout.meta, "meta.json is missing", "open the session: a new one is written")
        elif not isinstance(meta := msgspec.json.decode(data), dict):
            yield Finding("damage", layout.meta, "meta.json is not an object", advice)
        else:
            check_settings(layout, cast(dict[str, Any], meta))
    except DaypackError as error:
        yield Finding("damage", layout.meta, error.problem, error.hint)
    except UNREADABLE as error:
        yield Finding("damage", layout.meta, f"meta.json is not JSON: {error}", advice)
    state = (atomic.read(layout.state) or b"active").decode("utf-8", "replace").strip()
    if state not in SESSION_STATES:
        yield Finding("warning", layout.state, f"unknown state {state!r}", f"write one of {', '.join(SESSION_STATES)}")


def check_settings(layout: Layout, meta: dict[str, Any]) -> None:
    """Raise BadConfig if a session cannot be opened with its settings."""
    check_format(layout, meta)
    settle([(layout.meta, meta)])
    counter_named(str(meta.get("tokenizer") or "o200k_base"))


def _examine_blobs(layout: Layout) -> Iterator[Finding]:
    advice = "restore it from a backup; events refer to it"
    names = sorted(os.listdir(layout.blob)) if os.path.isdir(layout.blob) else []
    for name in names:
        path = os.path.join(layout.blob, name)
        try:
            if not name.startswith(atomic.TEMPORARY) and blobs.name_of(atomic.read(path) or b"") != name:
                yield Finding("damage", path, "content does not match its digest name", advice)
        except DaypackError as error:
            yield Finding("damage", path, error.problem, error.hint)
    reported: set[str] = set()
    for event, name in _references(layout):
        path = os.path.join(layout.blob, name)
        if name not in reported and not os.path.lexists(path):
            reported.add(name)
            yield Finding("damage", path, f"missing, but referenced by {event.id or 'an event'} ({event.type})", advice)


def _references(layout: Layout) -> Iterator[tuple[Event, str]]:
    """Yield the blobs that events refer to: captured text, items of turns, envelopes."""
    for line in (atomic.read(layout.events) or b"").split(b"\n"):
        yield from references_in(line)


def references_in(line: bytes) -> list[tuple[Event, str]]:
    """Return the event of a line with each blob it refers to."""
    if (b'"blob":' in line or b'"context.' in line) and (record := examine(line).record):
        with suppress(*UNREADABLE, TypeError, KeyError, AttributeError, BadSource):
            event = _EVENTS.decode(record)
            return [(event, name) for name in _blobs_of(event)]
    return []


def _blobs_of(event: Event) -> list[str]:
    data = event.data
    objects: list[dict[str, Any]] = [data, *(value for value in data.values() if isinstance(value, dict))]
    names = [str(captured["blob"]) for captured in objects if "blob" in captured]
    if event.type == "context.turn":
        items = [*data.get("items", ()), *data.get("opening", {}).get("items", ())]
        names += [file_name_of(item["digest"]) for item in items if "text" not in item]
    elif event.type == "context.imported":
        names.append(file_name_of(data["digest"]))
    elif event.type == OBSERVED:
        names += map(file_name_of, blobs_of(event))
    return names


def _examine_tree(layout: Layout) -> Iterator[Finding]:
    for folder, _, names in os.walk(layout.folder):
        for path in (folder, *(os.path.join(folder, name) for name in sorted(names))):
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            name = os.path.basename(path)
            if name == STAGING:
                yield Finding(
                    "warning", path, "an erasure was interrupted", "open the session: it is completed or undone"
                )
            if stat.S_ISLNK(mode):
                yield Finding("damage", path, "symbolic link, which daypack never follows", "replace it with the file")
            elif mode & 0o077:
                advice = f"chmod {'700' if stat.S_ISDIR(mode) else '600'} {shlex.quote(path)}"
                yield Finding("note", path, f"accessible to other users (mode {mode & 0o777:o})", advice)
            if name.startswith(atomic.TEMPORARY):
                yield Finding("note", path, "temporary file of an interrupted write", "it can be deleted")
            elif ".jsonl.torn-" in name:
                yield Finding(
                    "note", path, "incomplete line of an interrupted append", "inspect it, then delete it if you like"
                )
