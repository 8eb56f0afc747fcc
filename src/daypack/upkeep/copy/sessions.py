"""Copies one session: compared first, continued where an earlier copy ended, and verified by digests at the end."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from hashlib import sha256
from typing import Literal, NamedTuple
from zlib import crc32

from msgspec import Struct

from daypack.errors import BadInput, Damaged
from daypack.history.logs.upstream import Mark
from daypack.history.postgres.rewriting import MAX_ROW_BYTES
from daypack.upkeep.copy.port import LOGS, Extent, SessionSide, Side

# new: not in the target; continued: the target has the beginning of it; newer: the target has all of it and more;
# unfinished: all of it is there, but a copy was interrupted; conflict: the target has another session of this name.
State = Literal["new", "continued", "unfinished", "same", "newer", "conflict"]
_BATCH_BYTES = 16 << 20  # of blobs in one transaction
_OPERATION = "copy"


class PlannedSession(Struct, frozen=True):
    """What a copy does with one session. `torn`: bytes of an unfinished append at the end, which are not copied."""

    agent: str
    session: str
    state: State
    bytes: int = 0  # of the logs, to copy
    blobs: int = 0
    torn: int = 0
    problem: str = ""

    @property
    def name(self) -> str:
        """The session as AGENT/NAME."""
        return f"{self.agent}/{self.session}"

    @property
    def is_copied(self) -> bool:
        """True if a copy writes something."""
        return self.state in ("new", "continued", "unfinished")


class CopiedSession(Struct, frozen=True):
    """A session that was copied, with the digests that source and target have in common. `grew`: bytes that the
    source got meanwhile, which the next copy takes.
    """

    agent: str
    session: str
    messages: str
    events: str
    blobs: int
    bytes: int
    torn: int = 0
    grew: int = 0


class _Compared(NamedTuple):
    """A log of both sides: where the target ends, and the first byte that differs, if one does."""

    place: Mark
    differs_at: int | None


def plan_session(source: Side, target: Side, agent: str, name: str) -> PlannedSession | None:
    """Return what copying a session would do; None if it is gone."""
    with ExitStack() as opened:
        ours = source.find(agent, name)
        if ours is None:
            return None
        opened.enter_context(closing(ours))
        extent = ours.measure()
        theirs = target.find(agent, name)
        names = ours.blob_names()
        if theirs is None:
            return PlannedSession(agent, name, "new", sum(extent.ends), len(names), extent.torn)
        opened.enter_context(closing(theirs))
        there = theirs.measure()
        problem = _difference(ours, extent, theirs, there)
        if problem:
            return PlannedSession(agent, name, "conflict", problem=problem)
        missing = set(names) - set(theirs.blob_names())
        behind = [max(0, end - size) for end, size in zip(extent.ends, there.sizes, strict=True)]
        ahead = any(size > end for end, size in zip(extent.ends, there.sizes, strict=True))
        state: State = "continued" if any(behind) or missing else "newer" if ahead else "same"
        if state == "same" and not theirs.is_finished():
            state = "unfinished"
        return PlannedSession(agent, name, state, sum(behind), len(missing), extent.torn)


def _difference(ours: SessionSide, extent: Extent, theirs: SessionSide, there: Extent) -> str:
    """Return why the target has another session of this name; "" if it has this one, or its beginning."""
    for file in ("created_at", "cwd"):
        known, found = getattr(extent.files, file), getattr(there.files, file)
        if known != found and found:
            return f"another session of this name: {file} differs"
    for log, file in enumerate(LOGS):
        compared = _compare(ours, theirs, log, min(extent.ends[log], there.sizes[log]))
        if compared.differs_at is not None:
            return f"another session of this name: {file} differs at byte {compared.differs_at:,}"
    lengths = [size - end for end, size in zip(extent.ends, there.sizes, strict=True)]
    if min(lengths) < 0 < max(lengths):
        return "both sides have lines that the other does not have"
    return ""


def _compare(ours: SessionSide, theirs: SessionSide, log: int, length: int) -> _Compared:
    """Compare the beginnings of two logs, part by part."""
    at = crc = 0
    for part, other in _side_by_side(ours.read(log, 0, length), theirs.read(log, 0, length)):
        if part != other:
            common = next((n for n, (a, b) in enumerate(zip(part, other, strict=False)) if a != b), 0)
            return _Compared(Mark(at, crc), at + common)
        at, crc = at + len(part), crc32(part, crc)
    return _Compared(Mark(at, crc), None if at == length else at)


def _side_by_side(first: Iterator[bytes], second: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield parts of equal length of two streams, as long as both have bytes."""
    one = other = b""
    while True:
        one, other = one or next(first, b""), other or next(second, b"")
        length = min(len(one), len(other))
        if not length:
            return
        yield one[:length], other[:length]
        one, other = one[length:], other[length:]


def copy_session(source: Side, target: Side, planned: PlannedSession) -> CopiedSession | None:
    """Copy what the target lacks of a session, and compare all of it; None if it is gone from the source."""
    agent, name = planned.agent, planned.session
    with ExitStack() as opened:
        ours = source.find(agent, name)
        if ours is None:
            return None
        opened.enter_context(closing(ours))
        extent = ours.measure()
        theirs = target.create(agent, name, extent.files)
        opened.enter_context(closing(theirs))
        there = theirs.measure()
        if problem := _difference(ours, extent, theirs, there):
            raise _conflict(f"{planned.name}: {problem}", target.place)
        if there.files.meta != extent.files.meta:
            theirs.put_settings(extent.files)
        blobs = ours.blob_names()  # after the measure: all that its lines refer to
        _copy_blobs(ours, theirs, blobs)
        for log in range(len(LOGS)):
            _copy_log(ours, theirs, log, extent.ends[log], there.sizes[log])
        copied = _verify(ours, theirs, planned, extent, blobs)
        theirs.finish()
        return copied


class SessionConflict(BadInput):
    """The target has another session of the same name."""


def _conflict(problem: str, place: str) -> SessionConflict:
    hint = "nothing of it was changed; delete it there, or archive it if it is in files, then copy again"
    return SessionConflict(problem, operation=_OPERATION, place=place, hint=hint)


def _copy_blobs(ours: SessionSide, theirs: SessionSide, names: list[str]) -> None:
    there = set(theirs.blob_names())
    batch: dict[str, bytes] = {}
    size = 0
    for name in names:
        if name in there:
            continue
        data = ours.blob(name)
        if batch and size + len(data) > _BATCH_BYTES:
            theirs.put_blobs(batch)
            batch, size = {}, 0
        batch[name] = data
        size += len(data)
    if batch:
        theirs.put_blobs(batch)


def _copy_log(ours: SessionSide, theirs: SessionSide, log: int, end: int, reached: int) -> None:
    place = _compare(ours, theirs, log, min(end, reached)).place
    for part in _whole_lines(ours.read(log, place.end, end)):
        crc = crc32(part, place.crc)
        theirs.append(log, place, part, crc)
        place = Mark(place.end + len(part), crc)


def _whole_lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a log in parts that end with a line, of about a row each; a longer line is a part."""
    gathered = bytearray()
    for part in parts:
        gathered += part
        while len(gathered) > MAX_ROW_BYTES:
            cut = gathered.rfind(b"\n", 0, MAX_ROW_BYTES)
            cut = cut if cut != -1 else gathered.find(b"\n", MAX_ROW_BYTES)
            if cut == -1:
                break
            yield bytes(gathered[: cut + 1])
            del gathered[: cut + 1]
    if gathered:
        yield bytes(gathered)


def _verify(
    ours: SessionSide, theirs: SessionSide, planned: PlannedSession, extent: Extent, blobs: list[str]
) -> CopiedSession:
    """Read both sides again and compare the digests of what was copied; a source in use has more by now."""
    there = theirs.measure()
    digests: list[str] = []
    for log, file in enumerate(LOGS):
        first, second = (_digest(side, log, extent.ends[log]) for side in (ours, theirs))
        if first != second:
            raise _not_equal(f"{file} has sha256 {first} in the source and {second} in the copy", theirs.place)
        digests.append(first)
    for name in blobs:
        if sha256(ours.blob(name)).digest() != sha256(theirs.blob(name)).digest():
            raise _not_equal(f"blob {name} differs", theirs.place)
    for file in extent.files._fields:
        if getattr(extent.files, file) != getattr(there.files, file):
            raise _not_equal(f"{file} differs", theirs.place)
    after = ours.measure()
    return CopiedSession(
        agent=planned.agent,
        session=planned.session,
        messages=digests[0],
        events=digests[1],
        blobs=len(blobs),
        bytes=sum(extent.ends),
        torn=extent.torn,
        grew=max(0, sum(after.ends) - sum(extent.ends)),
    )


def _digest(side: SessionSide, log: int, length: int) -> str:
    digest = sha256()
    for part in side.read(log, 0, length):
        digest.update(part)
    return digest.hexdigest()


def _not_equal(problem: str, place: str) -> Damaged:
    hint = "the copy cannot be used: delete it, check the disk with `daypack doctor`, then copy again"
    return Damaged(problem, operation=_OPERATION, place=place, hint=hint)
