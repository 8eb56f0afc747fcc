"""What the memory across sessions adds to a turn: its document and the entries a question finds."""

from collections.abc import Callable, Iterator

from daypack.turn.items import Item, Missing
from daypack.turn.ports import MemoryPort
from daypack.turn.survey.sources import Found
from daypack.types.memory import Remembered

_MEMORY_HITS = 10


def memory_document(memory: MemoryPort | None) -> Iterator[Found]:
    """The document that stands in the prefix."""
    if memory is None:
        return
    try:
        text = memory.document()
    except Exception as error:  # whatever memory it is, the turn goes on without it
        yield _unanswered(error)
        return
    if text:
        yield Item(
            id="memory",
            kind="memory_document",
            context_kind="durable_memory",
            source="memory:document",
            text=text,
            title="memory",
            placement="prefix",
            order=50,
            priority=0.65,
        )


def memory_hits(memory: MemoryPort | None, query: str, in_time: Callable[[], bool]) -> tuple[list[Item], list[Missing]]:
    """The entries that a question finds, and what could not be asked."""
    if memory is None or not query:
        return [], []
    if not in_time():
        return [], [
            Missing(
                id="memory",
                question="What does memory hold on this? There was no time to ask.",
                severity="info",
                requested="memory:document",
            )
        ]
    try:
        return [_remembered(hit) for hit in memory.search(query, _MEMORY_HITS)], []
    except Exception as error:
        return [], [_unanswered(error)]


def _unanswered(error: Exception) -> Missing:
    question = f"What is in memory? It did not answer: {error or type(error).__name__}"
    return Missing(id="memory", question=question, severity="medium", requested="memory:document")


def _remembered(hit: Remembered) -> Item:
    return Item(
        id=f"memory:{hit.id}",
        kind="memory_entries",
        context_kind="retrieval_result",
        source=f"memory:{hit.id}",
        text=str(hit.text),
        title=f"memory {hit.when}".strip(),
        authority="agent",
        order=45,
        priority=0.4,
        score=float(hit.score),
    )
