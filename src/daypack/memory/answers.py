"""The answers of the memory that a session's turns use.

Each question is asked once, not by every call of a tool loop. Where a turn can wait only so long, a thread asks: the
turn takes what came in time, and an answer that comes later is there for the next turn. A thread that hangs does not
keep the process from exiting.
"""

import os
import time
from collections.abc import Callable
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import AccessDenied, BadInput, NotFound
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.memory import Remembered

LATE_SECONDS = 30.0  # a request is given up after so long; its answer would be old
AGAIN_SECONDS = 15.0  # a failed question is not asked again for so long; another question is
# Threads that wait at a time: a server that hangs does not collect them, however often a session is opened or bound.
_REFUSALS = (NotFound, AccessDenied, BadInput)  # the memory has answered: it cannot be used
_MAX_WAITING = 2  # for one memory of a session
_MAX_THREADS = 32  # in this process
_THREAD = "daypack memory"


class Answer(Struct, frozen=True):
    """The context document, the entries that match the question, and what failed."""

    document: str | None = None
    hits: tuple[Remembered, ...] = ()
    problems: tuple[str, ...] = ()


class Question(NamedTuple):
    """What is asked of which memory; equal questions have the same answer."""

    memory: str
    message: int = 0  # the user message; 0: only the document is asked for
    query: str = ""
    limit: int = 0
    revision: int = 0  # of the memory, as far as it is known here: a capture changes it
    erased: int = 0  # the newest erasure: an answer from before may hold what was erased


_NO_QUESTION = Question("", -1)


class Reply(Struct, frozen=True):
    """What a turn has of an answer: if `problem` is set, only the document of an earlier one, if any."""

    answer: Answer = Answer()
    problem: str = ""
    unanswered: bool = False  # the memory was not reached; else it refused, and no earlier document counts
    unasked: bool = False  # there was no time


Ask = Callable[[Deadline], Answer]


class _Request:
    """A question that was asked; its thread sets the answer or the error, then `done`."""

    def __init__(self, question: Question, number: int, clock: Callable[[], float]) -> None:
        self.question = question
        self.number = number
        self.deadline = Deadline.after(LATE_SECONDS, clock)
        self.process = os.getpid()
        self.done = Event()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.again: Deadline = NO_DEADLINE  # when a failed question may be asked again

    def run(self, ask: Ask) -> None:
        try:
            self.answer = ask(self.deadline)
        except Exception as error:  # any memory can fail in its own way: the turn continues without it
            self.error = error
            self.again = Deadline.after(AGAIN_SECONDS, self.deadline.clock)
        self.done.set()

    def give_up(self) -> "_Request":
        """Return a request in its place that has no question, and no answer to it."""
        given_up = _Request(_NO_QUESTION, 0, self.deadline.clock)
        given_up.process, given_up.done = self.process, self.done
        return given_up

    @property
    def is_waiting(self) -> bool:
        """True if its thread still waits; a thread of a parent process does not exist here."""
        return not self.done.is_set() and self.process == os.getpid()

    @property
    def is_open(self) -> bool:
        """True if its answer may still come. A port of the caller can hold its thread for longer."""
        return self.is_waiting and not self.deadline.has_passed


class Answers:
    """Asks one memory after another for the turns of one session, which prepare one at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._requests: list[_Request] = []  # the newest last
        self._asked = 0
        self._newest: _Request | None = None  # that has an answer

    def ask(self, question: Question, ask: Ask, deadline: Deadline) -> Callable[[], Reply]:
        """Ask, and return what waits for the reply. Without a deadline the question is asked when that is called."""
        self._take_late()
        former = next((request for request in reversed(self._requests) if request.question == question), None)
        if former and former.answer:
            return lambda: Reply(former.answer or Answer())
        if deadline.seconds == NO_DEADLINE.seconds:
            return lambda: self._ask_now(question, ask)
        if former and former.is_open:  # an earlier call has waited for it
            return lambda: self._collect(former, 0.0, "It has not answered the request of an earlier call yet.")
        if former and (error := former.error) and not former.again.has_passed:
            return lambda: self._unanswered(question, _not_again(error, former.again), error)
        if deadline.has_passed:
            return lambda: replace(self._unanswered(question, "There was no time to ask it."), unasked=True)
        if sum(request.is_waiting for request in self._requests) >= _MAX_WAITING:
            return lambda: self._unanswered(question, "It was not asked: it has not answered earlier requests yet.")
        if (waiting := sum(thread.name == _THREAD for thread in enumerate_threads())) >= _MAX_THREADS:
            problem = f"It was not asked: {waiting} requests of this process to memories are not answered yet."
            return lambda: self._unanswered(question, problem)
        request = self._remember(question)
        Thread(target=request.run, args=(ask,), name=_THREAD, daemon=True).start()
        # In a loop on one message, only the first call waits: the others take the answer when it is there.
        late = f"It did not answer in the {deadline.seconds * 1000:,.0f} ms it had."
        return lambda: self._collect(request, 0.0 if former else deadline.remaining(), late)

    def _ask_now(self, question: Question, ask: Ask) -> Reply:
        request = self._remember(question)
        request.deadline = NO_DEADLINE
        request.run(ask)
        request.again = Deadline(seconds=0.0)  # what needs no network is asked again at once
        return self._collect(request, 0.0, "")

    def _remember(self, question: Question) -> _Request:
        self._asked += 1
        request = _Request(question, self._asked, self._clock)
        self._requests = [*(known for known in self._requests if known.is_waiting), request]
        return request

    def forget(self) -> None:
        """Ask every question anew. Threads that wait still count, and their answers are not used."""
        self._newest = None
        self._requests = [request.give_up() for request in self._requests if request.is_waiting]

    def _take_late(self) -> None:
        """Note the newest answer."""
        for request in self._requests:
            if request.answer and (self._newest is None or self._newest.number < request.number):
                self._newest = request

    def _collect(self, request: _Request, seconds: float, late: str) -> Reply:
        if request.done.wait(seconds) and request.answer:
            return Reply(request.answer)
        if request.error:
            return self._unanswered(request.question, problem_of(request.error), request.error)
        return self._unanswered(request.question, late)

    def _unanswered(self, question: Question, problem: str, error: Exception | None = None) -> Reply:
        """Return the document of the newest answer of this memory, unless the memory itself refuses."""
        self._take_late()
        refused = isinstance(error, _REFUSALS)
        newest = self._newest
        if refused or newest is None or newest.answer is None:
            return Reply(problem=problem, unanswered=not refused)
        same = newest.question.memory == question.memory and newest.question.erased == question.erased
        return Reply(Answer(newest.answer.document if same else None), problem, unanswered=True)


def problem_of(error: Exception) -> str:
    """Return why a memory did not answer."""
    if isinstance(error, _REFUSALS):
        return f"It cannot be used: {error}"
    return f"It did not answer: {str(error) or type(error).__name__}"


def _not_again(error: Exception, again: Deadline) -> str:
    return f"{problem_of(error)} It is not asked again for this message within {again.seconds:.0f} s."
