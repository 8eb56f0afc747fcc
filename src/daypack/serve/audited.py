"""Records the calls of servers in the audit log: reads, writes and refused attempts, by ids only."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from daypack.memory.audit.record import OK, Actor, Deed, actor
from daypack.memory.store.port import is_id
from daypack.serve.observe.observer import report_unaudited
from daypack.serve.observe.request_facts import current
from daypack.types.memory import Added, ContextDocument, EntryPage, Memory, MemoryPage, SearchResult

if TYPE_CHECKING:
    from daypack.memory.tools import Memories

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
    asked = memory_id if isinstance(memory_id, str) and is_id(memory_id) else ""  # anything else could be contents
    action = "write" if writes else "read"
    try:
        if writes:
            audit.require()
        yield outcome
    except Exception as error:
        deed = Deed(action=action, tool=tool, user=memories.user, memory=asked, result=type(error).__name__)
        if not audit.record(deed):
            report_unaudited(tool)
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
        if not audit.record(deed, durable=writes):
            report_unaudited(tool)
    finally:
        if reset is not None:
            actor.reset(reset)


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
