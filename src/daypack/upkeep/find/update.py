"""Brings the index up to date: finds the sessions that changed, and adds their new messages in batches.

Each batch is one transaction, so a process that is killed loses at most one, and the next continues there. One process
indexes at a time; another waits a little, and then searches what is there. Sessions that were written last are first.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from daypack.errors import DaypackError, LockUnavailable
from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.files.offsets import HEADER, SLOT
from daypack.files.read_only import is_read_only
from daypack.files.rewrite import JOURNAL
from daypack.history.across_sessions import forget_index
from daypack.history.layout import Home, Layout
from daypack.upkeep.find.index import FindIndex, Indexed, Piece, Words
from daypack.upkeep.find.log_words import LogWords, fingerprint

WAIT_SECONDS = 2.0  # for another process that indexes
_BATCH_CHARS = 24_000_000  # of texts that are added in one transaction
_BATCH_MESSAGES = 20_000
_LINE_BYTES = 1_000  # of a line, where a log has no sidecar
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_TRIES = 5  # after which others may change the index as often as they like


class Progress(NamedTuple):
    """How far indexing is: sessions with something new, messages done and in total (about)."""

    sessions: int
    done: int
    total: int


OnProgress = Callable[[Progress], None]


class Updated(NamedTuple):
    """What an update did: messages added, and whether another process still adds more."""

    messages: int = 0
    complete: bool = True


class _Source(NamedTuple):
    """A session whose log has something new."""

    layout: Layout
    known: Indexed  # what is indexed of it; nothing if it is new or was rewritten
    lines: int  # that are new, about


class _Plan(NamedTuple):
    changed: list[_Source]
    gone: list[Indexed]


def update(home: Home, index: FindIndex, on_progress: OnProgress = lambda _: None) -> Updated:
    """Index what is new in all sessions of a home."""
    plan = _plan(home, index.sessions()[0])
    if not plan.changed and not plan.gone:
        return Updated()
    if is_read_only(index.path):
        return Updated(_apply(home, index, on_progress))
    try:
        with held_after_waiting(f"{index.path}.lock", WAIT_SECONDS, "indexing"):
            return Updated(_apply(home, index, on_progress))
    except LockUnavailable:
        return Updated(0, complete=False)


def _apply(home: Home, index: FindIndex, on_progress: OnProgress) -> int:
    added = 0
    for _ in range(_MOST_TRIES):
        known, opened = index.sessions()
        plan = _plan(home, known)
        if plan.gone:
            index.drop(plan.gone)
            if index.is_mostly_dead():
                index.close()
                forget_index(home.find_index)
                continue
        if not plan.changed:
            break
        total = added + sum(source.lines for source in plan.changed)
        on_progress(Progress(len(plan.changed), added, total))
        for pieces in _batches(plan.changed):
            if not index.add(pieces, opened):
                break  # it was replaced, or another process added the same: plan again
            added += sum(len(piece.messages) for piece in pieces)
            on_progress(Progress(len(plan.changed), added, max(total, added)))
        else:
            break
    return added


def _plan(home: Home, known: Sequence[Indexed]) -> _Plan:
    """Compare the logs with what is indexed: one `lstat` for each session."""
    rows = {row.key: row for row in known}
    changed: list[tuple[int, _Source]] = []
    gone: list[Indexed] = []
    for agent in home.agents():
        folder = home.sessions(agent)
        for name in _names(home, agent):
            row = rows.pop((agent, name), None)
            try:
                status = os.lstat(f"{folder}/{name}/messages.jsonl")
            except OSError:
                status = None
            if status is None or not stat.S_ISREG(status.st_mode):
                gone += [row] if row else []
                continue
            if row and (row.inode, row.size, row.changed) == (status.st_ino, status.st_size, status.st_mtime_ns):
                continue
            layout = home.session(agent, name)
            if row and not _continues(layout, row, status):
                gone.append(row)
                row = None
            fresh = Indexed(agent=agent, name=name)
            changed.append((status.st_mtime_ns, _Source(layout, row or fresh, _count_new(layout, row, status))))
    changed.sort(key=lambda pair: (-pair[0], pair[1].known.key))
    return _Plan([source for _, source in changed], [*gone, *rows.values()])


def _names(home: Home, agent: str) -> list[str]:
    with suppress(DaypackError):  # a folder of another agent may be unreadable
        return home.list(agent)
    return []


def _continues(layout: Layout, row: Indexed, status: os.stat_result) -> bool:
    """Return True if a log only grew. That it is the same inode is not enough: another file may have got it."""
    if row.inode != status.st_ino or status.st_size < row.stop:
        return False
    try:
        fd = os.open(layout.messages, _OPEN)
    except OSError:
        return False
    try:
        return fingerprint(fd, row.stop) == row.print
    finally:
        os.close(fd)


def _count_new(layout: Layout, row: Indexed | None, status: os.stat_result) -> int:
    """Return about how many lines are new: the sidecar has a slot of known size for each line."""
    try:
        lines = (os.stat(layout.index("messages")).st_size - HEADER.size) // SLOT.size
    except OSError:
        lines = status.st_size // _LINE_BYTES
    return max(1, lines - (row.lines if row else 0))


def _batches(sources: Sequence[_Source]) -> Iterator[list[Piece]]:
    """Yield new messages of sessions, as many as one transaction takes."""
    pieces: list[Piece] = []
    room = _BATCH_MESSAGES
    for source in sources:
        for piece, is_last in _pieces(source):
            pieces.append(piece)
            room -= (
                len(piece.messages)
                + 1
                + sum(len(words.text) for words in piece.messages) * _BATCH_MESSAGES // _BATCH_CHARS
            )
            if room <= 0 or not is_last:
                yield pieces
                pieces, room = [], _BATCH_MESSAGES
    if pieces:
        yield pieces


def _pieces(source: _Source) -> Iterator[tuple[Piece, bool]]:
    """Yield the new messages of a session, and whether they are the last; a session that cannot be read has none."""
    layout, before = source.layout, source.known
    if os.path.lexists(os.path.join(layout.folder, JOURNAL)):
        return  # the next use completes a rewrite
    try:
        fd = os.open(layout.messages, _OPEN)
    except OSError:
        return
    try:
        status = os.fstat(fd)
        log = LogWords(fd, before, status.st_size)
        messages: list[Words] = []
        chars = 0
        for words in log:
            messages.append(words)
            chars += len(words.text)
            if len(messages) >= _BATCH_MESSAGES or chars >= _BATCH_CHARS:
                after = replace(_summed(log.state(before), messages), inode=status.st_ino, size=0)
                yield Piece(before, after, messages), False
                before, messages, chars = after, [], 0
        cwd = (atomic.read(layout.cwd) or b"").decode("utf-8", "replace").strip()
        seen = {"inode": status.st_ino, "size": status.st_size, "changed": status.st_mtime_ns, "cwd": cwd}
        yield Piece(before, replace(_summed(log.state(before), messages), **seen), messages), True
    except (OSError, DaypackError):
        return
    finally:
        os.close(fd)


def _summed(state: Indexed, messages: Sequence[Words]) -> Indexed:
    moments = [words.moment for words in messages if words.moment]
    oldest = min([moment for moment in (state.oldest, *moments) if moment], default=0)
    return replace(
        state,
        messages=state.messages + len(messages),
        words=state.words + sum(words.length for words in messages),
        oldest=oldest,
        newest=max([state.newest, *moments]),
    )
