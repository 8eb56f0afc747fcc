"""What the bound memory adds to a turn: its context document, and the entries that match the question."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from daypack.errors import DaypackError
from daypack.turn.items import Item, Missing
from daypack.turn.survey.sources import Found
from daypack.types.memory import Remembered

MEMORY = "memory"  # the item of the context document


class MemoryPort(Protocol):
    """A memory across sessions."""

    def document(self) -> str | None:
        """Return the current context document; None when there is none yet."""
        ...

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        """Return the entries that fit a query, best first."""
        ...


def memory_id(memory: MemoryPort) -> str:
    """Return which memory a session is bound to; empty for a port of the caller, which has no id."""
    try:
        return str(getattr(memory, "memory_id", ""))
    except DaypackError:  # it was unbound a moment ago
        return ""


def memory_document(memory: MemoryPort) -> Iterator[Found]:
    """Return the context document for the prefix."""
    try:
        text = memory.document()
    except Exception as error:  # any implementation can fail in its own way: the turn continues without it
        yield _failed(error)
        return
    if text:
        yield Item(
            id=MEMORY,
            kind="memory_document",
            context_kind="durable_memory",
            source="memory:document",
            text=text,
            title="memory",
            placement="prefix",
            order=50,
            priority=0.65,
        )


def memory_hits(memory: MemoryPort, query: str, limit: int, in_time: Callable[[], bool]) -> Iterator[Found]:
    """Return at most `limit` entries that match a query."""
    if not query or not limit:
        return
    if not in_time():
        question = "What does memory hold on this? There was no time to search it."
        yield Missing(id="memory", question=question, severity="info", requested="memory:document")
        return
    try:
        yield from [_item(hit) for hit in memory.search(query, limit)]
    except Exception as error:
        yield _failed(error)


def _failed(error: Exception) -> Missing:
    question = f"What is in memory? It did not answer: {error or type(error).__name__}"
    return Missing(id="memory", question=question, severity="medium", requested="memory:document")


def _item(hit: Remembered) -> Item:
    return Item(
        id=f"memory:{hit.id}",
        kind="memory_entries",
        context_kind="retrieval_result",
        source=f"memory:{hit.id}",
        text=str(hit.text),
        title=f"memory {hit.when}".strip(),
        authority="agent",
        placement="tail",
        order=45,
        priority=0.4,
        score=float(hit.score),
    )
