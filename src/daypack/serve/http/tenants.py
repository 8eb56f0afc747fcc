"""Whom a server serves: one store, each user's own memories, and the threads in which the synchronous core works."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from daypack.errors import AccessDenied
from daypack.serve.http.gate import Caller
from daypack.serve.stdio.requests import Offer

if TYPE_CHECKING:
    from daypack.memory.tools import Memories
    from daypack.serve.toolset import Toolset

_WORKING = 16
_WAITING = 32
_CHECKING = 4

Result = TypeVar("Result")


class Tenants:
    """All users of a home. `owner` is who started the server: a session that is served too is theirs alone."""

    def __init__(
        self, memories: "Memories", toolset: "Toolset", prompts_folder: str, session_tools: "Toolset | None" = None
    ) -> None:
        self.owner = memories.user
        self._memories = memories
        self._toolset = toolset
        self._prompts_folder = prompts_folder
        self._session_tools = session_tools
        self._working = anyio.CapacityLimiter(_WORKING)
        # Those who wait for a barrier block nobody who works, and those who are checked wait for neither.
        self._waiting = anyio.CapacityLimiter(_WAITING)
        self._checking = anyio.CapacityLimiter(_CHECKING)

    def memories(self, user: str) -> "Memories":
        """Return the memories of a user and nobody else's."""
        return self._memories if user == self.owner else self._memories.as_user(user)

    def toolset(self, user: str) -> "Toolset":
        """Return the tools a user is offered."""
        return self._session_tools if self._session_tools is not None and user == self.owner else self._toolset

    def offer(self, user: str) -> Offer:
        """Return what a user is offered over MCP."""
        return Offer(self.toolset(user), partial(self.memories, user), self._prompts_folder)

    async def run(self, work: Callable[[], Result], *, waits: bool = False) -> Result:
        """Do something in a thread."""
        return await anyio.to_thread.run_sync(work, limiter=self._waiting if waits else self._working)

    async def check_token(self, secret: str) -> Caller | None:
        """Return whom a token stands for; None for one that is not valid."""

        def check() -> Caller | None:
            try:
                grant = self._memories.users.check_token(secret)
            except AccessDenied:
                return None
            return Caller(grant.user, writes=grant.scope == "write")

        return await anyio.to_thread.run_sync(check, limiter=self._checking)

    def close(self) -> None:
        """Close every file."""
        for tools in (self._toolset, self._session_tools):
            if tools is not None:
                tools.close()
        self._memories.close()
