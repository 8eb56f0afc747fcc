"""Computes the recap of a session without a model: rules, CONTEXT.md, files, tests, failed attempts, open work."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from daypack.derived.artifacts.artifacts import read_artifacts
from daypack.derived.artifacts.observations import Artifacts, TestRun, merge
from daypack.derived.artifacts.test_runners import Test, covers
from daypack.derived.compaction.compaction import CompactionRequest, compact
from daypack.derived.compaction.utterances import spoken_words, user_words
from daypack.derived.raw_history import raw_of
from daypack.derived.records import Folded, document
from daypack.derived.template import render
from daypack.derived.title import title_of
from daypack.errors import NothingToCompact
from daypack.files import atomic
from daypack.history.logs.lines import ROLE_SHIFT
from daypack.history.session import History
from daypack.hooks.recap.last_session import LastSession, write_last
from daypack.hooks.recap.recap import FileNote, Recap, read_recap
from daypack.memory.project import Project
from daypack.session import Session
from daypack.text.redact.redact import redact
from daypack.text.tokens import counter_named
from daypack.text.trim import trim
from daypack.types.compaction import Records
from daypack.types.history import Message
from daypack.types.kinds import ROLES
from daypack.types.names import one_line
from daypack.types.records import ErrorRecord, Ref

# Measured: 12 MB of messages.jsonl a second.
MAX_BYTES = 8 << 20  # of the newest messages, for a compaction of the host: a window of 1M tokens, and more
MAX_BYTES_PER_STOP = 1 << 20  # after every turn
_SLAB_BYTES = 4 << 20
_SLOTS = 2_000
_MOST_FILES = 60
_MOST_FAILED = 10
_MOST_TESTS = 4
_MOST_LAST_FILES = 12
_COMMAND_CHARS = 160
_SAID_CHARS = 500
_UNRECORDED = 400  # messages examined for rules again and again before the examination is recorded
_USER_OR_UNKNOWN = (0, ROLES.index("user") + 1)
COMPACTED = "import.compacted"  # the host compacted: a boundary in its transcript
_CHANGED = ("written", "created", "deleted")


def write_recap(session: Session, project: Project | None, *, compacting: bool = False) -> Recap | None:
    """Bring the recap of a session up to date, and the state of the project's last session; None if it is empty.

    `compacting`: the host is about to compact, or has done so, and everything it may lose is read.
    """
    history = session.history
    newest = history.messages.reader.newest().seq
    if not newest:
        return None
    known = read_recap(history.layout)
    left = _find_left(history, known, newest)
    compacting = compacting or left.lost > (known.lost if known else 0)  # not every host says it before
    if known and (known.through, known.lost) == (newest, left.lost) and (known.whole or not compacting):
        recap = known
    else:
        recap = _make(session, newest, left, project, whole=compacting)
        atomic.make_folders(history.layout.context, durable=False)
        atomic.replace(history.layout.derived("recap"), msgspec.json.encode(recap), durable=False)
    if project is not None:
        write_last(history.layout.home, project, _as_last(session, recap, project))
    return recap


class _Left(NamedTuple):
    """What left the window of the host: messages up to `lost`, except those in `kept`; `events` were looked at."""

    lost: int = 0
    kept: tuple[int, ...] = ()
    events: int = 0


def _make(session: Session, newest: int, left: _Left, project: Project | None, *, whole: bool) -> Recap:
    history = session.history
    reading = _Reading(history, reach(history, newest, MAX_BYTES if whole else MAX_BYTES_PER_STOP), newest)
    records, refs = _compact(reading)
    closed = tuple(error for error in records.errors if error.resolution)
    shown = replace(records, errors=closed)  # the open ones are among the failed attempts, with their commands
    return Recap(
        through=newest,
        tokenizer=history.tokenizer,
        at=reading.at,
        lost=left.lost,
        kept=left.kept,
        events=left.events,
        whole=whole or reading.start == 1,
        title=title_of(history),
        rules=_rules(session, newest),
        document=render(document(shown)) if shown != Records() else "",
        task=records.task.text if records.task else "",
        done=bool(records.task and records.task.done),
        pending=tuple(todo.text for todo in records.todos if not todo.done),
        files=_files(refs, project),
        tests=_tests(reading.artifacts),
        failed=_failed(reading.artifacts, records.errors),
        said=reading.said,
        turns=reading.turns,
    )


class _Reading:
    """Reads a range once, in pieces of bounded size."""

    def __init__(self, history: History, start: int, stop: int) -> None:
        self.history = history
        self.start, self.stop = start, stop
        self.artifacts = Artifacts()
        self.at = self.said = ""
        self.turns = 0
        for first, last in _slabs(history, start, stop):
            self._take(list(history.messages.records(first, last)), first, last)

    def _take(self, messages: list[Message], first: int, last: int) -> None:
        raw = raw_of(messages, first, last, redacting=True)
        self.artifacts = merge(self.artifacts, read_artifacts(raw))
        for message in raw.messages:
            self.at = message.ts or self.at
            if message.role == "user" and user_words(message):
                self.turns += 1
            elif message.role == "assistant" and not message.tool_calls and (words := spoken_words(message)):
                self.said = trim(words, _SAID_CHARS)


def reach(history: History, newest: int, most_bytes: int) -> int:
    """Return the first of the newest messages that are read: so many bytes of them."""
    reader = history.messages.reader
    stop = reader.position(newest + 1)
    first = newest
    while stop > 0:
        start = max(0, stop - _SLOTS)
        for slot in reversed(reader.slots(start, stop)):
            most_bytes -= slot.length
            if most_bytes < 0:
                return first
            first = slot.seq
        stop = start
    return first


def _slabs(history: History, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last message of each piece."""
    reader = history.messages.reader
    first, size = start, 0
    for slot in reader.slots(reader.position(start), reader.position(stop + 1)):
        size += slot.length
        if size > _SLAB_BYTES:
            yield first, slot.seq
            first, size = slot.seq + 1, 0
    if first <= stop:
        yield first, stop


def _compact(reading: _Reading) -> tuple[Records, tuple[Ref, ...]]:
    """Return the records and refs of a range. Nothing is recorded: the window of the host is not that of a turn."""
    request = CompactionRequest(start=reading.start, through=reading.stop)
    try:
        compaction = compact(reading.history, Folded(), request, counter_named(reading.history.tokenizer))
    except NothingToCompact:  # too little was said
        return Records(), ()
    return compaction.records, compaction.refs


def _find_left(history: History, known: Recap | None, newest: int) -> _Left:
    """Return what left the window with the newest compaction of the host, as events and its summaries show."""
    start = known.events if known else 0
    events = history.events.reader.newest().seq
    left = _Left(known.lost, known.kept) if known else _Left()
    for event in history.events.records(start + 1, events) if events > start else ():
        through = event.data.get("through")
        if event.type == COMPACTED and isinstance(through, int) and through >= left.lost:
            left = _Left(through, tuple(event.data.get("kept", ())))
    if (summarised := _find_summary(history, known, newest) - 1) > left.lost:
        left = _Left(summarised)
    return left._replace(events=events)


def _find_summary(history: History, known: Recap | None, newest: int) -> int:
    """Return the newest message that is a summary of the host; 0 if there is none since the known recap."""
    reader = history.messages.reader
    start, stop = reader.position(known.through + 1 if known else 1), reader.position(newest + 1)
    while start < stop:
        at = max(start, stop - _SLOTS)
        seqs = [slot.seq for slot in reader.slots(at, stop) if slot.flags >> ROLE_SHIFT & 7 in _USER_OR_UNKNOWN]
        for message in reversed(reader.pick(seqs)):
            if message.meta and message.meta.get("foreign_summary"):
                return message.seq
        stop = at
    return 0


def _rules(session: Session, newest: int) -> tuple[str, ...]:
    """Return the standing rules in force; what was examined is recorded now and then, and not examined again."""
    inputs = session.turns.inputs
    recorded = inputs.ledger.read().rules
    book = inputs.rules.examine(newest, recording=False)
    if book.rules.keys() != recorded.rules.keys() or newest - recorded.through > _UNRECORDED:
        inputs.rules.examine(newest, recording=True)
        inputs.rules.examine_rest()
    return tuple(redact(rule.text).text for rule in session.rules())


def _files(refs: Iterable[Ref], project: Project | None) -> tuple[FileNote, ...]:
    """Return the files that were changed or read, changed ones first, each newest first; not those only listed."""
    notes: list[tuple[bool, int, FileNote]] = []
    for ref in refs:
        done = ref.summary.partition(";")[0]
        changed = any(verb in done for verb in _CHANGED)
        if ref.kind == "file" and (changed or "read" in done):
            last = int(ref.summary.rpartition("messages:")[2] or 0)
            notes.append((changed, last, FileNote(_relative(ref.path, project), ref.summary)))
    notes.sort(key=lambda note: note[:2], reverse=True)
    return tuple(note for _, _, note in notes[:_MOST_FILES])


def _relative(path: str, project: Project | None) -> str:
    return path.removeprefix(f"{project.top}/") if project and project.top != "/" else path


def _tests(artifacts: Artifacts) -> tuple[str, ...]:
    """Return the newest run of each suite or target, newest first; not failures that passed in a wider run since."""
    newest: dict[tuple[str, ...], TestRun] = {}
    for run in artifacts.tests:
        if run.outcome == "passed":
            newest = {key: old for key, old in newest.items() if old.outcome == "passed" or not _includes(run, old)}
        key = run.runner, *sorted(run.targets)
        newest.pop(key, None)
        newest[key] = run
    return tuple(map(_test_line, list(newest.values())[::-1][:_MOST_TESTS]))


def _includes(wide: TestRun, narrow: TestRun) -> bool:
    return covers(Test(wide.runner, wide.targets), Test(narrow.runner, narrow.targets))


def _test_line(run: TestRun) -> str:
    counts = [f"{count:,} {word}" for count, word in ((run.failed, "failed"), (run.passed, "passed")) if count]
    outcome = ", ".join(counts) or run.outcome
    return f"`{_short(run.command)}`: {outcome} (messages:{run.result or run.seq})"


def _failed(artifacts: Artifacts, errors: Iterable[ErrorRecord]) -> tuple[str, ...]:
    """Return the attempts that failed and were not mended: what was tried, and what it said."""
    tried = {f"messages:{error.seq}": error.command for error in artifacts.errors if error.command}
    lines: list[str] = []
    for error in errors:
        if not error.resolution:
            command = _short(tried.get(error.source, ""))
            lines.append(f"`{command}`: {error.error}" if command else error.error)
    return tuple(dict.fromkeys(lines))[:_MOST_FAILED]


def _short(command: str) -> str:
    return trim(one_line(command).replace("`", "'"), _COMMAND_CHARS)


def _as_last(session: Session, recap: Recap, project: Project) -> LastSession:
    changed = tuple(note for note in recap.files if any(verb in note.summary for verb in _CHANGED))
    return LastSession(
        agent=session.agent,
        session=session.name,
        through=recap.through,
        at=recap.at,
        top=project.top,
        title=recap.title,
        task="" if recap.done else recap.task,
        pending=recap.pending,
        files=changed[:_MOST_LAST_FILES],
        tests=recap.tests,
        failed=recap.failed,
        said=recap.said,
        turns=recap.turns,
    )
