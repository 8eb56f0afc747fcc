"""What the bound memory adds to a turn: its context document, and the entries that match the question."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from daypack.errors import DaypackError
from daypack.turn.items import Item, Missing
from daypack.turn.survey.sources import Found
from daypack.types.authority import MADE_FROM_HISTORY
from daypack.types.deadline import Deadline
from daypack.types.memory import Remembered

if TYPE_CHECKING:
    from daypack.memory.answers import Answer, Answers, Question, Reply

MEMORY = "memory"  # the item of the context document
ANSWER = f"{MEMORY}:answer"  # what is missing if a memory does not answer; the document of the epoch may still be there
UNANSWERED = "unanswered"  # the memory of an epoch that began without knowing whether there is a document


class MemoryPort(Protocol):
    """A memory across sessions. If a turn has a limit of milliseconds, a thread of its own calls it.

    A port may also have `ask(query, limit, deadline)`, which returns an `Answer` with document and entries in one
    round; `remote`: it waits for a network, so that its time is limited in every turn; `place`, which names it in
    records; and `revision`, a number that changes when its answers may.
    """

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


def is_remote(memory: MemoryPort) -> bool:
    """Return True if the memory waits for a network."""
    try:
        return bool(getattr(memory, "remote", False))
    except DaypackError:  # a binding that cannot be used: asking it reports that
        return False


class Asked:
    """A question to the memory on its way."""

    def __init__(self, name: str, collect: "Callable[[], Reply]") -> None:
        self._name = name  # for records
        self._collect = collect

    @cached_property
    def reply(self) -> "Reply":
        """The reply, for which the first use waits."""
        return self._collect()

    def document(self, frozen: Item | None) -> Iterator[Found]:
        """Return the context document for the prefix; if the memory does not answer, the one the epoch has."""
        reply = self.reply
        if reply.answer.document:
            yield Item(
                id=MEMORY,
                kind="memory_document",
                context_kind="durable_memory",
                source="memory:document",
                text=reply.answer.document,
                title="memory",
                authority=MADE_FROM_HISTORY,
                placement="prefix",
                order=50,
                priority=0.65,
            )
        elif reply.unanswered and frozen:
            yield frozen

    def hits(self) -> Iterator[Found]:
        """Return the entries that match, and what is missing."""
        yield from map(_item, self.reply.answer.hits)
        for problem in (self.reply.problem, *self.reply.answer.problems):
            if problem:
                question = f"What is in {self._name}? {problem}"
                severity = "info" if self.reply.unasked else "medium"
                yield Missing(id=ANSWER, question=question, severity=severity, requested="memory:document")


def ask_memory(memory: MemoryPort, answers: "Answers", question: "Question", deadline: Deadline) -> Asked:
    """Ask for the document and for the entries that match; a thread asks if there is a deadline."""

    def ask(limit: Deadline) -> "Answer":
        one_round: Callable[[str, int, Deadline], Answer] | None = getattr(memory, "ask", None)
        if one_round is not None:
            return one_round(question.query, question.limit, limit)
        return _ask_in_two_rounds(memory, question)

    revised = question._replace(revision=int(getattr(memory, "revision", 0)))
    return Asked(_name_of(memory), answers.ask(revised, ask, deadline))


def _ask_in_two_rounds(memory: MemoryPort, question: "Question") -> "Answer":
    """Ask a port of the caller for its document, then for its entries; raise if nothing is answered."""
    from daypack.memory.answers import Answer, problem_of  # noqa: PLC0415 — only for sessions with a memory

    document: str | None = None
    hits: tuple[Remembered, ...] = ()
    problems: list[Exception] = []
    try:
        document = memory.document()
    except Exception as error:  # any implementation can fail in its own way
        if not question.query:
            raise
        problems.append(error)
    if question.query:
        try:
            hits = tuple(memory.search(question.query, question.limit))
        except Exception as error:
            if problems:
                raise
            problems.append(error)
    return Answer(document, hits, tuple(map(problem_of, problems)))


def _name_of(memory: MemoryPort) -> str:
    place = ""
    with suppress(DaypackError):
        place = str(getattr(memory, "place", ""))
    return " at ".join(filter(None, (f"memory {memory_id(memory)}".strip(), place)))


def _item(hit: Remembered) -> Item:
    return Item(
        id=f"memory:{hit.id}",
        kind="memory_entries",
        context_kind="retrieval_result",
        source=f"memory:{hit.id}",
        text=str(hit.text),
        title=f"memory {hit.when}".strip(),
        authority=MADE_FROM_HISTORY,
        placement="tail",
        order=45,
        priority=0.4,
        score=float(hit.score),
    )
