"""Records the calls of servers in the audit log: reads, writes and refused attempts, by ids only."""

import time
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from daypack.memory.audit_log.record import OK, Actor, Deed, actor
from daypack.memory.store.port import is_id
from daypack.serve.observe.observer import report_unaudited
from daypack.serve.observe.request_facts import current
from daypack.types.memory import Added, ContextDocument, EntryPage, Memory, MemoryPage, SearchResult

if TYPE_CHECKING:
    from daypack.memory.audit_log.port import Log
    from daypack.memory.tools import Memories

REFUSALS_PER_MINUTE = 60  # of one cause: a flood must not fill the disk, nor hide what others do
_WINDOW_SECONDS = 60.0
_MOST_CAUSES = 4096
_UNRECORDED = ("await_consistency",)  # it reads and writes nothing, and is polled


class Outcome:
    """What a call returned; set by the code under `audited`."""

    value: Struct | None = None


@contextmanager
def audited(memories: "Memories", tool: str, memory_id: object = "", *, writes: bool = False) -> Generator[Outcome]:
    """Record a call when it has ended. A write does not begin while the audit log cannot be written.

    An answered write is on disk in the log, an answered read is with the operating system.
    """
    audit = memories.backend.audit
    outcome = Outcome()
    if audit is None or tool in _UNRECORDED:
        yield outcome
        return
    facts = current.get()
    reset = None if facts is None else actor.set(Actor(facts.door, facts.token_id, facts.request_id))
    asked = asked_memory(memory_id)
    action = "write" if writes else "read"
    try:
        if writes:
            audit.require()
        yield outcome
    except Exception as error:
        deed = Deed(action=action, tool=tool, user=memories.user, memory=asked, result=type(error).__name__)
        _record_refused(audit, deed)
        raise
    else:
        memory, memories_read, entries, version = _ids(outcome.value)
        deed = Deed(
            action=action,
            tool=tool,
            user=memories.user,
            memory=memory or asked,
            memories=tuple(memories_read),
            entries=tuple(entries),
            version=version,
            result=OK,
        )
        if facts is not None:
            facts.audited = True
        if not audit.record(deed, durable=writes):
            report_unaudited(tool)
    finally:
        if reset is not None:
            actor.reset(reset)


def audit_refused(audit: "Log | None", deed: Deed) -> None:
    """Record an attempt that was refused before its tool was called, unless the request has a line already."""
    facts = current.get()
    if audit is None or deed.tool in _UNRECORDED or (facts is not None and facts.audited):
        return
    reset = None if facts is None else actor.set(Actor(facts.door, facts.token_id, facts.request_id))
    try:
        _record_refused(audit, deed)
    finally:
        if reset is not None:
            actor.reset(reset)


def asked_memory(memory_id: object) -> str:
    """Return what a caller sent as the id of a memory if it is one: anything else could be contents."""
    return memory_id if isinstance(memory_id, str) and is_id(memory_id) else ""


def _record_refused(audit: "Log", deed: Deed) -> None:
    facts = current.get()
    if facts is not None:
        facts.audited = True
    left_out = _refusals.admit((audit.place, deed.user, deed.tool, deed.result))
    if left_out is None:
        return
    if not audit.record(replace(deed, count=left_out or None)):
        report_unaudited(deed.tool)


class _Refusals:
    """Lets so many refusals of a cause (user, tool, error) into the log in a minute, and counts the others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: OrderedDict[tuple[str, ...], list[float]] = OrderedDict()  # by cause: start, written, left out

    def admit(self, cause: tuple[str, ...]) -> int | None:
        """Return how many were left out before this one; None: leave this one out too."""
        now = time.monotonic()
        with self._lock:
            window = self._windows.setdefault(cause, [now, 0, 0])
            left_out = 0
            if now - window[0] >= _WINDOW_SECONDS:
                left_out = int(window[2])
                window[:] = [now, 0, 0]
            if window[1] >= REFUSALS_PER_MINUTE:
                window[2] += 1
                return None
            window[1] += 1
            self._windows.move_to_end(cause)
            if len(self._windows) > _MOST_CAUSES:
                self._windows.popitem(last=False)
            return left_out


_refusals = _Refusals()


def _ids(value: Struct | None) -> tuple[str, Sequence[str], Sequence[str], int | None]:
    """Return the ids in a result: the memory, listed memories, entries, and the version of a document."""
    if isinstance(value, Added):
        return value.memory_id, (), (value.entry_id,), None
    if isinstance(value, EntryPage):
        return value.memory_id, (), [entry.entry_id for entry in value.entries], None
    if isinstance(value, SearchResult):
        return value.memory_id, (), [hit.entry_id for hit in value.entries], None
    if isinstance(value, ContextDocument):
        return value.memory_id, (), (), value.version
    if isinstance(value, Memory):
        return value.memory_id, (), (), None
    if isinstance(value, MemoryPage):
        return "", [memory.memory_id for memory in value.memories], (), None
    return "", (), (), None
