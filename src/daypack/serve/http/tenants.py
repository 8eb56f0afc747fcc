"""The users of a server: their memories and tools, and the worker threads that run the synchronous core."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from daypack.errors import AccessDenied
from daypack.serve.http.gate import Caller
from daypack.serve.mcp.router import Router

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.serve.toolset import Toolset

# Worker threads. Calls that wait for consistency must not block working calls, nor either of them token checks.
_WORK_THREADS = 16
_WAIT_THREADS = 32
_TOKEN_THREADS = 4

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
        self._observe_queue: Callable[[float, str], None] = lambda _seconds, _queue: None
        self._working = anyio.CapacityLimiter(_WORK_THREADS)
        self._waiting = anyio.CapacityLimiter(_WAIT_THREADS)
        self._checking = anyio.CapacityLimiter(_TOKEN_THREADS)

    def memories(self, caller: Caller) -> "Memories":
        """Return the memories of the caller's user."""
        return self._memories.as_caller(caller.user, caller.token_id)

    def toolset(self, user: str | None) -> "Toolset":
        """Return the tools available to a user; None: those that every user has."""
        return self._owner_tools if self._owner_tools is not None and user == self.owner else self._toolset

    def router(self, caller: Caller | None) -> Router:
        """Return the MCP router of a caller; None: one that only describes the server to every user."""
        memories = partial(self.memories, caller or Caller(self.owner, writes=False))
        return Router(self.toolset(caller and caller.user), memories, self._prompts_folder)

    async def run(self, work: Callable[[], Result], *, waits: bool = False) -> Result:
        """Run `work` in a worker thread; `waits` marks calls that mostly sleep."""
        limiter = self._waiting if waits else self._working
        return await anyio.to_thread.run_sync(self._timed(work, "wait" if waits else "work"), limiter=limiter)

    async def check_token(self, secret: str) -> Caller | None:
        """Return the caller a token belongs to, or None if it is not valid."""

        def check() -> Caller | None:
            try:
                grant = self._memories.users.check_token(secret)
            except AccessDenied:
                return None
            return Caller(grant.user, writes=grant.scope == "write", token_id=grant.token_id)

        return await anyio.to_thread.run_sync(self._timed(check, "token"), limiter=self._checking)

    async def examine_store(self) -> None:
        """Raise a DaypackError if the store cannot be read and written; cancelled, it leaves the worker to itself."""
        check = self.backend.check
        await anyio.to_thread.run_sync(check, limiter=self._working, abandon_on_cancel=True)

    def observe_queues(self, observe: Callable[[float, str], None]) -> None:
        """From now on, pass the seconds that each call waited for a thread, and which kind of thread, to `observe`."""
        self._observe_queue = observe

    def load(self) -> Load:
        """Return how many calls run or wait."""
        work, wait, token = (limiter.statistics() for limiter in (self._working, self._waiting, self._checking))
        queued = sum(limiter.tasks_waiting for limiter in (work, wait, token))
        return Load(wait.borrowed_tokens + wait.tasks_waiting, queued)

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
