"""Taking a transcript into a session: in groups, each message once, whatever was interrupted before.

A later import finds the newest `import.progress` event whose digest still matches the file and goes on behind it. The
messages of a group are written before its rows, its rows before the progress: a crash between them repeats the group,
and the keys of its messages and the bytes of its rows tell what is there already.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from daypack.errors import KeyConflict
from daypack.files import atomic
from daypack.history.draft import draft_from
from daypack.importers.batch import Batch, Entry
from daypack.importers.children import child_session, conclude
from daypack.importers.progress import BEGUN, PROGRESS, ROLLED_BACK, Boundary, ImportLog, Totals
from daypack.importers.rollback import find_taken_back
from daypack.importers.transcript import Kept, Row, RowReader, Transcript, parse_row, unreadable
from daypack.session import Session
from daypack.types.history import Event, Message

if TYPE_CHECKING:
    from hashlib import _Hash  # pyright: ignore[reportPrivateUsage] — the only name its type has

Opener = Callable[[str, str | None], Session]  # opens or makes a session: its name, and the model it is for


class Problem(msgspec.Struct, frozen=True):
    """A row that could not be read as it stands; it is kept as an event."""

    line: int
    problem: str


class Report(msgspec.Struct):
    """What came of one transcript; all but `new` and `new_rows` count earlier imports too."""

    path: str
    format: str
    session: str
    messages: int = 0
    new: int = 0
    known: int = 0
    tool_calls: int = 0
    rows: int = 0
    new_rows: int = 0
    children: list[str] = msgspec.field(default_factory=list[str])
    changed: int = 0
    problems: list[Problem] = msgspec.field(default_factory=list[Problem])


def take_in(transcript: Transcript, opener: Opener, tell: Callable[[int], None], *, named: bool = False) -> Report:
    """Store what is new in a transcript; `named` says that somebody chose the session on purpose."""
    with ExitStack() as stack:
        session = stack.enter_context(opener(transcript.session, transcript.model))
        intake = _Intake(transcript, session, lambda name: stack.enter_context(opener(name, transcript.model)))
        intake.begin(named=named)
        intake.run(tell)
        for name, child in intake.children.items():
            conclude(session, name, child)
        return intake.report


class _Intake:
    """The import of one transcript into one session."""

    def __init__(self, transcript: Transcript, session: Session, open_child: Callable[[str], Session]) -> None:
        self.transcript = transcript
        self.origin = transcript.origin
        self.session = session
        self.report = Report(self.origin.path, self.origin.format, session.name)
        self.children: dict[str, Session] = {}
        self._open_child = open_child
        self._log = ImportLog(session.history, self.origin)
        self._totals = Totals()

    def begin(self, *, named: bool) -> None:
        """Say in the log that an import begins; refuse a session that already is somebody else's."""
        if self._log.begun:
            return
        if self.session.history.messages.reader.count() and not named:
            problem = f"session {self.session.name} exists, and holds something else"
            raise unreadable(self.origin.path, problem, "name another session with --session")
        if self.transcript.cwd and not named:
            # The session was made where the import runs; its agent worked elsewhere.
            atomic.replace(self.session.history.layout.cwd, f"{self.transcript.cwd}\n".encode())
        self._log.tell(BEGUN, {"path": os.path.abspath(self.origin.path)})

    def run(self, tell: Callable[[int], None]) -> None:
        """Read what follows the part that is known, and store it."""
        start, hashed = self._find_start()
        self._totals = msgspec.structs.replace(start.totals)
        self.report.known = start.totals.messages
        self._log.start_behind(start.lines)
        reader = self.transcript.reader(self._log.keep)
        batch, lines = Batch(), start.lines
        for number, (raw, whole) in enumerate(self.transcript.lines(), 1):
            if number <= start.lines:
                reader.note(Row(number, raw))
                continue
            row = parse_row(number, raw)
            if row.problem and not whole:
                self._finish(reader, batch, lines, hashed)
                self._keep_torn(row)
                break
            if batch.full and reader.begins(row):
                self._finish(reader, batch, lines, hashed)
                batch = Batch()
                tell(self._totals.messages)
            lines = number
            hashed.update(raw + b"\n")
            self._read(reader, row, batch)
        else:
            self._finish(reader, batch, lines, hashed)
        self._log.take_files(self.transcript.files)
        for name, value in msgspec.structs.asdict(self._totals).items():
            setattr(self.report, name, value)
        self.report.children = sorted(self.children)

    # The part that is known

    def _find_start(self) -> tuple[Boundary, "_Hash"]:
        """Return the newest boundary that still matches the file, and the digest so far."""
        from hashlib import sha256  # noqa: PLC0415 — 2 ms that other commands need not pay

        hashed = sha256()
        found, at_found = Boundary(), hashed.copy()
        awaited = {one.lines: one for one in self._log.boundaries}
        last = max(awaited, default=0)
        for number, (raw, _) in enumerate(self.transcript.lines() if last else (), 1):
            hashed.update(raw + b"\n")
            if number in awaited:
                if awaited[number].digest == _spelled(hashed):
                    found, at_found = awaited[number], hashed.copy()
                else:
                    self._tell_change(number)
                    break
            if number == last:
                break
        return found, at_found

    def _tell_change(self, line: int) -> None:
        """Tell that the part imported before has changed; without ids its messages cannot be told apart."""
        problem = f"the part up to line {line} is not what was imported before"
        if not self.origin.stable:
            hint = "to keep both, import it under another name with --session"
            raise unreadable(self.origin.path, f"{problem}, so session {self.session.name} is left as it is", hint)
        self.report.problems.append(Problem(line, f"{problem}; what is new in it is added"))

    # Reading and storing

    def _read(self, reader: RowReader, row: Row, batch: Batch) -> None:
        batch.count(row)
        if row.problem:
            batch.add(Kept(row, problem=row.problem))
        elif row.raw.strip():
            if row.mended:
                problem = "has characters that cannot be stored; they were replaced, and the line is kept as it was"
                batch.add(Kept(row._replace(value=None), problem=problem))
            for step in reader.read(row):
                batch.add(step)

    def _finish(self, reader: RowReader, batch: Batch, lines: int, hashed: "_Hash") -> None:
        """Store a group and say how far it reaches."""
        for step in reader.finish():
            batch.add(step)
        newest, new = self._newest_seq(), self.report.new
        answers = self._store_messages(batch)
        events = [event for kept in batch.kept for event in self._log.new_row(kept)]
        events += self._rollback_events(batch, answers, newest)
        self._log.append(events)
        self.report.new_rows += len(events)
        self._totals.rows += len(batch.kept)
        self.report.problems += [Problem(kept.row.number, kept.problem) for kept in batch.kept if kept.problem]
        further = lines > max((one.lines for one in self._log.boundaries), default=0)
        if events or further or self.report.new > new:
            facts = {"path": os.path.abspath(self.origin.path), "lines": lines, "digest": _spelled(hashed)}
            self._log.tell(PROGRESS, {**facts, "totals": msgspec.structs.asdict(self._totals)})

    def _rollback_events(self, batch: Batch, answers: Sequence[Message | None], newest: int) -> list[Event]:
        events: list[Event] = []
        for position, rollback in batch.rollbacks:
            line = rollback.row.number
            if line in self._log.rolled_back:
                continue
            before = [one.seq for one in answers[:position] if one]
            behind = [one.seq - 1 for one in answers[position:] if one]
            last = max(before) if before else min(behind, default=newest)
            if taken_back := find_taken_back(self.session, last, rollback, list(self._log.rolled_back.values())):
                self._log.rolled_back[line] = taken_back
                facts = {"line": line, "turns": rollback.turns, "messages": str(taken_back)}
                events.append(self._log.draft(ROLLED_BACK, facts, rollback.row))
        return events

    def _keep_torn(self, row: Row) -> None:
        """Keep a last line that is not complete, without counting it as read: it may be completed."""
        self.report.problems.append(Problem(row.number, "the last line is not complete; import again when it is"))
        events = self._log.new_row(Kept(row, problem=row.problem))
        self._log.append(events)
        self.report.new_rows += len(events)

    def _store_messages(self, batch: Batch) -> list[Message | None]:
        """Append the messages of a group and return them as stored, with None for what is there in another state."""
        for name in dict.fromkeys(entry.draft.child for entry in batch.entries if entry.draft.child):
            if name not in self.children:
                self.children[name] = self._open_child(child_session(self.session.name, name))
            own = [entry for entry in batch.entries if entry.draft.child == name]
            self._log.copy_blobs(self.children[name].history, [entry.message for entry in own])
            self._append(self.children[name], own, batch)
        stored = iter(self._append(self.session, [one for one in batch.entries if not one.draft.child], batch))
        return [None if entry.draft.child else next(stored) for entry in batch.entries]

    def _append(self, session: Session, entries: Sequence[Entry], batch: Batch) -> list[Message | None]:
        waiting: list[Entry | None] = list(entries)
        while True:
            live = [entry.message for entry in waiting if entry]
            try:
                stored = session.history.append(live)
            except KeyConflict as conflict:
                self._settle(session, waiting, conflict, batch)
                continue
            self._count(live, stored)
            answers = iter(stored)
            return [next(answers) if entry else None for entry in waiting]

    def _settle(self, session: Session, waiting: list[Entry | None], conflict: KeyConflict, batch: Batch) -> None:
        """Deal with a message that is stored in an earlier state: only what it lacks is to be appended."""
        number = conflict.place.removeprefix("msg-")
        for stored in session.messages(int(number), int(number)) if number.isdecimal() else ():
            for at, entry in enumerate(waiting):
                if entry and entry.message.client_key == stored.client_key:
                    waiting[at] = self._rest(entry, stored, batch)
                    return
        raise conflict

    def _rest(self, entry: Entry, stored: Message, batch: Batch) -> Entry | None:
        rows, again = entry.draft.rows, entry.draft.again
        ours = (entry.message.meta or {}).get("rows", ())
        there = (stored.meta or {}).get("rows") or ours[:1]  # a message of one row does not list it
        if again and 0 < len(there) < len(ours) and there == ours[: len(there)]:
            draft = again(rows[len(there) :])
            return Entry(draft, draft_from(draft.message))
        self.report.changed += 1
        batch.kept += [Kept(row, changed=stored.id) for row in rows]
        return None

    def _count(self, drafts: Sequence[Message], stored: Sequence[Message]) -> None:
        new = sum(one is draft for one, draft in zip(stored, drafts, strict=True))
        self.report.new += new
        self.report.known += len(stored) - new
        self._totals.messages += len(stored)
        self._totals.tool_calls += sum(len(one.tool_calls) for one in stored)

    def _newest_seq(self) -> int:
        newest = self.session.tail(1)
        return newest[0].seq if newest else 0


def _spelled(hashed: "_Hash") -> str:
    return f"sha256:{hashed.hexdigest()}"
