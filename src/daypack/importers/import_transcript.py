"""Import one transcript into a session in batches; every message is stored once, even after an interruption.

A later import continues at the offset of the newest `import.progress` event, if the file has the same bytes before it;
otherwise after the newest one whose digest matches, which takes reading the whole file. The messages of a batch are
written before its other rows, and those before the progress event: a crash in between repeats the batch, and client
keys and row contents identify what is already stored.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple

import msgspec

from daypack.derived.children import put_child, read_children
from daypack.errors import BadMessage, KeyConflict
from daypack.files import atomic
from daypack.files.lock import held_after_waiting
from daypack.history.draft import draft_from, same_payload
from daypack.importers.import_events import BEGUN, PROGRESS, Boundary, ImportLog, Totals
from daypack.importers.import_start import PartDigest, find_start
from daypack.importers.lines import Line, unreadable
from daypack.importers.observed_events import ObservedEvents
from daypack.importers.rewritten import find_difference, find_stored_part
from daypack.importers.transcript import (
    Compaction,
    Draft,
    RawRow,
    Removal,
    RequestRow,
    Rollback,
    Row,
    RowReader,
    Step,
    Transcript,
    child_session_name,
    parse_row,
)
from daypack.importers.window_events import WindowEvents, WindowStep
from daypack.session import Session
from daypack.types.authority import QUOTED, is_quoted, without_marks, writer_of
from daypack.types.history import Message

OpenSession = Callable[[str, str | None], Session]  # opens or creates a session, given its name and model
_BATCH_MESSAGES = 1000
_BATCH_STEPS = 5000
_BATCH_BYTES = 8 << 20
_FIRST_MESSAGES = 50  # of a child, among which its task is
_WAIT_SECONDS = 600.0  # for another import into the session: a transcript of 1 GB takes three minutes


class Problem(msgspec.Struct, frozen=True):
    """A row that could not be converted; it is kept as an event."""

    line: int
    problem: str


class ImportReport(msgspec.Struct):
    """The result of one import; all counts but `new` and `new_rows` include earlier imports."""

    path: str
    format: str
    session: str
    agent: str = ""  # where the session is stored
    parent: str = ""  # the session of a sub-agent's parent
    messages: int = 0
    new: int = 0
    known: int = 0
    tool_calls: int = 0
    quoted: int = 0  # new system messages, stored as quoted history
    rows: int = 0
    new_rows: int = 0
    calls: int = 0  # recorded requests
    children: list[str] = msgspec.field(default_factory=list[str])
    changed: int = 0
    note: str = ""  # what the file lacks
    incomplete: bool = False  # the last line is still being written, and was left out
    problems: list[Problem] = msgspec.field(default_factory=list[Problem])


class Manner(NamedTuple):
    """What the user chose for an import."""

    named: bool = False  # the session, so it may hold other messages
    trust_system: bool = False  # system messages instruct; otherwise they are quoted history
    verify: bool = False  # that nothing changed in the part that was imported: read all of it
    growing: bool = False  # the file is read again when it changes: an incomplete last line is left out


def import_transcript(
    transcript: Transcript, open_session: OpenSession, on_progress: Callable[[int], None], manner: Manner
) -> ImportReport:
    """Store the new part of a transcript."""
    with ExitStack() as stack:
        session = stack.enter_context(open_session(transcript.session, transcript.model))
        stack.enter_context(importing(session))

        def open_child(name: str) -> Session:
            return stack.enter_context(open_session(name, transcript.model))

        run = _Import(transcript, session, open_child, trust_system=manner.trust_system)
        run.begin(named=manner.named)
        run.store(on_progress, manner)
        for name, child in run.children.items():
            record_child(session, name, child)
        return run.report


def importing(session: Session) -> AbstractContextManager[None]:
    """Exclude other imports into a session, in this process and others, and wait for them."""
    path = os.path.join(session.history.layout.offsets, "importing")
    return held_after_waiting(path, _WAIT_SECONDS, f"another import into session {session.name}")


def record_child(parent: Session, name: str, child: Session) -> bool:
    """Store a child session's first question and last answer with its parent; return False if nothing changed."""
    handoff = _first_question(child)
    result = _last_answer(child)
    recorded = [known for known in read_children(parent.history) if known.name == name]
    if recorded and (recorded[0].handoff, recorded[0].result) == (handoff, result):
        return False
    put_child(parent.history, name, handoff=handoff, result=result)
    return True


def _first_question(session: Session) -> str | None:
    """Return the first message of the user or the parent; what the program wrote only if there is no other."""
    asked = [message for message in session.messages(1, _FIRST_MESSAGES) if message.role == "user"]
    chosen = next((message for message in asked if writer_of(message) in (None, "agent")), None)
    return (chosen or asked[0]).text if asked else None


def _last_answer(session: Session) -> str | None:
    for count in (50, len(session.messages())):
        for message in reversed(session.tail(count)):
            if message.role == "assistant" and message.text.strip():
                return message.text
    return None


class _Entry(NamedTuple):
    draft: Draft
    message: Message


def _entry(draft: Draft, *, trust_system: bool) -> _Entry:
    """Return a draft with its message; a system message of another program is quoted unless it is trusted."""
    message = draft_from(draft.message)
    if message.role == "system" and not trust_system:
        message = msgspec.structs.replace(message, meta={**(message.meta or {}), QUOTED: True})
    return _Entry(draft, message)


class _Batch:
    """Steps that are stored together, in the order of their rows."""

    def __init__(self, *, trust_system: bool) -> None:
        self._trust_system = trust_system
        self.entries: list[_Entry] = []
        self.raw_rows: list[RawRow] = []
        self.window_steps: list[WindowStep] = []
        self.requests: list[Row] = []
        self._by_key: dict[tuple[str, str], Message] = {}
        self._bytes = 0

    @property
    def full(self) -> bool:
        steps = len(self.entries) + len(self.raw_rows) + len(self.requests)
        return len(self.entries) >= _BATCH_MESSAGES or steps >= _BATCH_STEPS or self._bytes >= _BATCH_BYTES

    def count_bytes(self, row: Row) -> None:
        self._bytes += len(row.raw)

    def add(self, step: Step) -> None:
        """Add a step; the rows of a message that cannot be stored are added as raw rows."""
        if isinstance(step, RawRow):
            self.raw_rows.append(step)
        elif isinstance(step, Rollback | Removal | Compaction):
            self.window_steps.append((len(self.entries), step))
        elif isinstance(step, RequestRow):
            self.requests.append(step.row)
        else:
            try:
                self._add_message(_entry(step, trust_system=self._trust_system))
            except BadMessage as error:
                problem = f"{error.place}: {error.problem}"
                self.raw_rows += [RawRow(row, problem=problem) for row in step.rows]

    def _add_message(self, entry: _Entry) -> None:
        """Add a message; a repeated key is skipped if the payload is the same, and made unique if it differs."""
        key = entry.draft.child, entry.message.client_key or ""
        earlier = self._by_key.get(key)
        if earlier and same_payload(earlier, entry.message):
            return
        if earlier:
            unique = f"{key[1][:240]}~{entry.draft.rows[0].number}"
            entry = _Entry(entry.draft, msgspec.structs.replace(entry.message, client_key=unique))
        self._by_key[key] = entry.message
        self.entries.append(entry)


class _Position:
    """How far the file was read."""

    def __init__(self, lines: int, digest: PartDigest) -> None:
        self.lines = lines
        self.digest = digest  # since the last boundary
        self.line: Line | None = None

    def advance(self, number: int, line: Line) -> None:
        self.lines, self.line = number, line
        self.digest.add(line.raw)


class _Import:
    """The import of one transcript into one session."""

    def __init__(
        self, transcript: Transcript, session: Session, open_child: Callable[[str], Session], *, trust_system: bool
    ) -> None:
        self._trust_system = trust_system
        self.transcript = transcript
        self.origin = transcript.origin
        self.session = session
        parent = transcript.parent[0] if transcript.parent else ""
        self.report = ImportReport(self.origin.path, self.origin.format, session.name, session.agent, parent)
        self.report.note = transcript.note
        self.children: dict[str, Session] = {}
        self._open_child = open_child
        self._log = ImportLog(session.history, self.origin)
        self._requests = ObservedEvents(session.history, self.origin, self._log.store_blob)
        self._window = WindowEvents(self._log, session)
        self._totals = Totals()
        self._is_rewritten = False  # and the boundary in the new file is not recorded yet

    def begin(self, *, named: bool) -> None:
        """Record that an import begins; refuse a session that holds other messages."""
        if self._log.begun:
            return
        has_messages = self.session.history.messages.reader.count() > 0
        if has_messages and not named:
            problem = f"session {self.session.name} exists and holds other messages"
            raise unreadable(self.origin.path, problem, "choose another session with --session NAME")
        if self.transcript.cwd and not has_messages:
            # The session was created in the folder of the import; the agent worked elsewhere.
            atomic.replace(self.session.history.layout.cwd, f"{self.transcript.cwd}\n".encode())
        self._log.record(BEGUN, {"path": os.path.abspath(self.origin.path)})

    def store(self, on_progress: Callable[[int], None], manner: Manner) -> None:
        """Read and store everything after the part that earlier imports stored."""
        reader = self.transcript.reader(self._log.store_blob)
        start, lines = self._start(reader, verify=manner.verify)
        self._totals = msgspec.structs.replace(start.totals)
        self.report.known = start.totals.messages
        self._log.start_after(start.lines)
        self._requests.start_after(start.lines)
        batch = _Batch(trust_system=self._trust_system)
        position = _Position(start.lines, PartDigest(start.digest))
        for number, line in lines:
            row = parse_row(number, line.raw)
            if row.problem and not line.complete:
                self._commit(reader, batch, position)
                self.report.incomplete = manner.growing
                if not manner.growing:
                    self._keep_incomplete(row)
                break
            if batch.full and reader.is_boundary(row):
                self._commit(reader, batch, position)
                batch = _Batch(trust_system=self._trust_system)
                on_progress(self._totals.messages)
            position.advance(number, line)
            self._read(reader, row, batch)
        else:
            self._commit(reader, batch, position)
        self._log.record_files(self.transcript.files)
        for name, value in msgspec.structs.asdict(self._totals).items():
            setattr(self.report, name, value)
        self.report.children = sorted(self.children)

    # The part that earlier imports stored

    def _start(self, reader: RowReader, *, verify: bool) -> tuple[Boundary, Iterator[tuple[int, Line]]]:
        """Return the newest boundary that the file still has, and the lines after it with their numbers."""
        newest, lines = self._log.newest, self.transcript.lines
        if newest.resumable and newest.mark and not verify and lines.matches(newest.mark):
            reader.resume(newest.reader or {})
            return newest, enumerate(lines.read_after(newest.mark), newest.lines + 1)
        self._log.read_all()
        start, changed, is_shorter = find_start(lines, self._log.boundaries)
        if is_shorter and not changed and not self.origin.has_row_ids:
            changed = self._find_difference()
        if changed and (rewritten := self._find_rewritten()):
            start, self._is_rewritten = rewritten, True
        elif changed:
            self._report_change(changed)
        return start, self._observed(reader, start.lines)

    def _find_rewritten(self) -> Boundary | None:
        """Return the boundary after what is stored, if the file has it in other bytes; rows with ids need none."""
        if self.origin.has_row_ids:
            return None
        reader = self.transcript.reader(self._log.store_blob)
        return find_stored_part(self.transcript.lines, reader, self._imported(), self._log.newest.totals)

    def _find_difference(self) -> int:
        """Return the first line of a shortened file that is not stored at its place; 0 if only its end is missing."""
        return find_difference(self.transcript.lines, self.transcript.reader(self._log.store_blob), self._imported())

    def _imported(self) -> list[Message]:
        return [message for message in self.session.messages() if (message.meta or {}).get("format")]

    def _observed(self, reader: RowReader, stop: int) -> Iterator[tuple[int, Line]]:
        """Yield the numbered lines after the first ones, which the reader observes."""
        for number, line in enumerate(self.transcript.lines.read(), 1):
            if number <= stop:
                reader.observe(Row(number, line.raw))
            else:
                yield number, line

    def _report_change(self, line: int) -> None:
        """Report that the imported part of the file changed; refuse formats whose rows have no ids to match by."""
        problem = f"the file changed since the last import (at or before line {line})"
        if not self.origin.has_row_ids:
            hint = "to keep both versions, import the file into another session with --session NAME"
            raise unreadable(self.origin.path, f"{problem}; session {self.session.name} is unchanged", hint)
        self.report.problems.append(Problem(line, f"{problem}; new rows are added"))

    # Reading and storing

    def _read(self, reader: RowReader, row: Row, batch: _Batch) -> None:
        batch.count_bytes(row)
        if row.problem:
            batch.add(RawRow(row, problem=row.problem))
        elif row.raw.strip():
            if row.repaired:
                problem = "characters that cannot be stored were replaced; the original line is kept as an event"
                batch.add(RawRow(row._replace(value=None), problem=problem))
            for step in reader.read(row):
                batch.add(step)

    def _commit(self, reader: RowReader, batch: _Batch, position: _Position) -> None:
        """Store a batch and record the line it reaches."""
        for step in reader.finish():
            batch.add(step)
        newest, new_before = self._newest_seq(), self.report.new
        stored = self._store_messages(batch)
        rows = [row for entry in batch.entries for row in entry.draft.rows]
        observed = self._requests.read(batch.requests, stored, rows)
        batch.raw_rows += observed.rows
        lined = [(raw.row.number, event) for raw in batch.raw_rows for event in self._log.new_row(raw)]
        events = [event for _, event in sorted(lined + observed.events, key=lambda pair: pair[0])]
        events += self._window.read(batch.window_steps, stored, newest)
        self._log.append(events, self._requests.number)
        self.report.new_rows += len(events)
        self._totals.rows += len(batch.raw_rows)
        self._totals.calls += observed.calls
        self.report.problems += [Problem(raw.row.number, raw.problem) for raw in batch.raw_rows if raw.problem]
        advanced = position.lines > max((boundary.lines for boundary in self._log.boundaries), default=0)
        if events or advanced or self.report.new > new_before or self._is_rewritten:
            self._record_progress(position, reader.state())

    def _record_progress(self, position: _Position, state: dict[str, Any] | None) -> None:
        facts = {"path": os.path.abspath(self.origin.path), "lines": position.lines, "after": position.digest.after}
        facts |= {"digest": str(position.digest), "totals": msgspec.structs.asdict(self._totals)}
        mark = self.transcript.lines.mark(position.line) if position.line else None
        if mark and state is not None:
            facts |= {"mark": msgspec.to_builtins(mark), "reader": state}
        if (highest := self._log.highest) > position.lines:
            facts["highest"] = highest
        self._log.record(PROGRESS, facts)
        self._is_rewritten = False
        position.digest = PartDigest(str(position.digest))

    def _keep_incomplete(self, row: Row) -> None:
        """Keep an incomplete last line as an event without counting it as read: it may be completed later."""
        self.report.problems.append(Problem(row.number, "the last line is incomplete; import again when it is written"))
        events = self._log.new_row(RawRow(row, problem=row.problem))
        self._log.append(events)
        self.report.new_rows += len(events)

    def _store_messages(self, batch: _Batch) -> list[Message | None]:
        """Append the messages of a batch and return them as stored; None for a child's or a changed message."""
        for name in dict.fromkeys(entry.draft.child for entry in batch.entries if entry.draft.child):
            if name not in self.children:
                self.children[name] = self._open_child(child_session_name(self.session.name, name))
            entries = [entry for entry in batch.entries if entry.draft.child == name]
            self._log.copy_blobs(self.children[name].history, [entry.message for entry in entries])
            self._append(self.children[name], entries, batch)
        stored = iter(self._append(self.session, [entry for entry in batch.entries if not entry.draft.child], batch))
        return [None if entry.draft.child else next(stored) for entry in batch.entries]

    def _append(self, session: Session, entries: Sequence[_Entry], batch: _Batch) -> list[Message | None]:
        pending: list[_Entry | None] = list(entries)
        while True:
            messages = [entry.message for entry in pending if entry]
            try:
                stored = session.history.append(messages)
            except KeyConflict as conflict:
                self._resolve_conflict(session, pending, conflict, batch)
                continue
            self._count(messages, stored)
            remaining = iter(stored)
            return [next(remaining) if entry else None for entry in pending]

    def _resolve_conflict(
        self, session: Session, pending: list[_Entry | None], conflict: KeyConflict, batch: _Batch
    ) -> None:
        """Replace the entry whose message is stored in an earlier state by the part that is not stored yet."""
        number = conflict.place.removeprefix("msg-")
        for stored in session.messages(int(number), int(number)) if number.isdecimal() else ():
            for position, entry in enumerate(pending):
                if entry and entry.message.client_key == stored.client_key:
                    if same_payload(without_marks(entry.message), without_marks(stored)):
                        message = msgspec.structs.replace(entry.message, content=stored.content, meta=stored.meta)
                        pending[position] = _Entry(entry.draft, message)
                    else:
                        pending[position] = self._unstored_part(entry, stored, batch)
                    return
        raise conflict

    def _unstored_part(self, entry: _Entry, stored: Message, batch: _Batch) -> _Entry | None:
        """Return an entry of the rows after the stored ones; if earlier rows changed, keep all rows as events."""
        rows, from_rows = entry.draft.rows, entry.draft.from_rows
        row_ids = (entry.message.meta or {}).get("rows", ())
        stored_ids = (stored.meta or {}).get("rows") or row_ids[:1]  # a message of one row does not list it
        if from_rows and 0 < len(stored_ids) < len(row_ids) and stored_ids == row_ids[: len(stored_ids)]:
            return _entry(from_rows(rows[len(stored_ids) :]), trust_system=self._trust_system)
        self.report.changed += 1
        batch.raw_rows += [RawRow(row, changed=stored.id) for row in rows]
        return None

    def _count(self, drafts: Sequence[Message], stored: Sequence[Message]) -> None:
        new = [message for message, draft in zip(stored, drafts, strict=True) if message is draft]
        self.report.new += len(new)
        self.report.known += len(stored) - len(new)
        self.report.quoted += sum(map(is_quoted, new))
        self._totals.messages += len(stored)
        self._totals.tool_calls += sum(len(message.tool_calls) for message in stored)

    def _newest_seq(self) -> int:
        newest = self.session.tail(1)
        return newest[0].seq if newest else 0
