"""The users of a server: their memories and tools, and the worker threads that run the synchronous core."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from daypack.errors import AccessDenied, BadInput, RateLimited, ServerBusy
from daypack.serve.http.turns import Call, Caller, Turn, Turns
from daypack.serve.mcp.router import Router
from daypack.serve.problems import is_unreachable

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.memory.users import Grant
    from daypack.serve.toolset import Toolset

# Turns: in all, and of one user. What is left over is never used by one user alone. A barrier holds a thread as long as
# it waits, and a turn only while it works. Token checks have threads of their own, shared by address.
_TURNS, _TURNS_PER_USER = 16, 12
_BARRIERS, _BARRIERS_PER_USER = 128, 16
_CHECKS, _CHECKS_PER_ADDRESS = 4, 3
_GUESSES_QUEUED = 16
_GUESSING = "addresses that sent too many bad tokens"

AFTER = "Daypack-After"  # the header with a consistency token: the call reads at least as far

Result = TypeVar("Result")


class Load(NamedTuple):
    """Calls that run or wait now: barriers, and calls that no thread has taken yet."""

    barriers: int
    queued: int


class Tenants:
    """All users of a home. `owner` started the server; only the owner gets its default memory and session."""

    def __init__(
        self, memories: "Memories", toolset: "Toolset", prompts_folder: str, owner_tools: "Toolset | None" = None
    ) -> None:
        self.owner = memories.user
        self.backend = memories.backend
        self._memories = memories
        self._toolset = toolset
        self._prompts_folder = prompts_folder
        self._owner_tools = owner_tools
        self._waiting: set[Call] = set()  # barriers
        self._stopping = False
        self._observe_queue: Callable[[float, str], None] = lambda _seconds, _queue: None
        self.turns = Turns(_TURNS, _TURNS_PER_USER)
        self.barriers = Turns(_BARRIERS, _BARRIERS_PER_USER)
        self.checks = Turns(_CHECKS, _CHECKS_PER_ADDRESS)
        self._threads = anyio.CapacityLimiter(_TURNS + _BARRIERS + _CHECKS)
        self._examining, self._measuring = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)

    def memories(self, call: Call) -> "Memories":
        """Return the memories of the caller's user; a barrier lets others work while it waits."""
        memories = self._memories.as_caller(call.caller.user, call.caller.token_id, call.pause)
        if not call.after:
            return memories
        try:
            return memories.since(call.after)
        except BadInput as error:
            error.hint = f"send in {AFTER} a token exactly as a write of this user returned it, or no such header"
            raise

    def toolset(self, user: str | None) -> "Toolset":
        """Return the tools available to a user; None: those that every user has."""
        return self._owner_tools if self._owner_tools is not None and user == self.owner else self._toolset

    def router(self, call: Call | None) -> Router:
        """Return the MCP router of a call; None: one that only describes the server to every user."""
        memories = partial(self.memories, call or Call(Caller(self.owner, writes=False)))
        return Router(self.toolset(call and call.caller.user), memories, self._prompts_folder)

    async def run(self, work: Callable[[], Result], call: Call, *, waits: bool = False) -> Result:
        """Run `work` in a worker thread at the caller's turn; `waits` marks a barrier.

        Raises CallerGone if the caller disconnects: a queued call leaves the queue, a barrier ends, other work that
        already runs is finished. Raises ServerBusy for a barrier if the server stops.
        """
        if waits and self._stopping:
            raise _stopping()
        user, timed = call.caller.user, self._timed(work, "wait" if waits else "work")
        with anyio.CancelScope() as scope:
            call.on_leave(scope.cancel)
            place = await self._take_barrier(call) if waits else None
            try:
                call.turn = await self.turns.take(user)
                try:
                    return await anyio.to_thread.run_sync(timed, limiter=self._threads)
                finally:
                    call.turn.end()
            finally:
                if place is not None:
                    place.end()
                    self._waiting.discard(call)
        raise call.ended()

    async def _take_barrier(self, call: Call) -> Turn:
        self._waiting.add(call)
        try:
            return await self.barriers.take(call.caller.user)
        except BaseException:
            self._waiting.discard(call)
            raise

    def end_barriers(self) -> None:
        """End all barriers, and refuse new ones: the server stops. Their callers are asked to try again."""
        self._stopping = True
        for call in list(self._waiting):
            call.end_wait(_stopping)

    async def check_token(self, secret: str, address: str, *, guessing: bool = False) -> Caller | None:
        """Return the caller a token belongs to, or None if it is not valid.

        Addresses that are `guessing` share one queue, so that others do not wait for them; RateLimited if it is full.
        """
        key = _GUESSING if guessing else address
        if guessing and self.checks.queued(key) >= _GUESSES_QUEUED:
            problem = "too many tokens wait to be checked, from addresses that sent tokens that are not valid"
            raise RateLimited(problem, hint="try again later", retry_after=1)

        return await self._check(lambda: self._memories.users.check_token(secret), key)

    async def check_token_id(self, user: str, token_id: str, address: str) -> Caller | None:
        """Return the caller of a user's token, or None if it is not valid any more. Only for ids that we signed."""
        return await self._check(lambda: self._memories.users.check_token_id(user, token_id), address)

    async def _check(self, find_grant: "Callable[[], Grant]", key: str) -> Caller | None:
        def check() -> Caller | None:
            try:
                grant = find_grant()
            except AccessDenied as error:
                if is_unreachable(error):  # the account of the server was refused, not the token
                    raise
                return None
            return Caller(grant.user, writes=grant.scope == "write", token_id=grant.token_id)

        timed, turn = self._timed(check, "token"), await self.checks.take(key)
        try:
            return await anyio.to_thread.run_sync(timed, limiter=self._threads)
        finally:
            turn.end()

    async def examine_store(self) -> None:
        """Raise a DaypackError if the store cannot be read and written; cancelled, it leaves the worker to itself."""
        await anyio.to_thread.run_sync(self.backend.check, limiter=self._examining, abandon_on_cancel=True)

    async def measure(self, work: Callable[[], Result]) -> Result:
        """Run `work`, one at a time, outside of all turns; cancelled, it leaves the worker to itself."""
        return await anyio.to_thread.run_sync(work, limiter=self._measuring, abandon_on_cancel=True)

    def observe_queues(self, observe: Callable[[float, str], None]) -> None:
        """From now on, pass the seconds that each call waited for a thread, and which kind of thread, to `observe`."""
        self._observe_queue = observe

    def load(self) -> Load:
        """Return how many calls run or wait."""
        queued = sum(turns.queued() for turns in (self.turns, self.barriers, self.checks))
        return Load(self.barriers.running + self.barriers.queued(), queued)

    def _timed(self, work: Callable[[], Result], queue: str) -> Callable[[], Result]:
        asked = time.monotonic()

        def timed() -> Result:
            self._observe_queue(time.monotonic() - asked, queue)
            return work()

        return timed

    def close(self) -> None:
        """Close the toolsets and the memories."""
        for tools in (self._toolset, self._owner_tools):
            if tools is not None:
                tools.close()
        self._memories.close()


def _stopping() -> ServerBusy:
    return ServerBusy("the server is shutting down", hint="try again: the next server answers", retry_after=1)
