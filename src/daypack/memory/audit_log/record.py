"""One line of the audit log: who did what to which ids, through which door, and how it ended.

{"seq":7,"time":"2026-11-17T21:04:05.678Z","action":"read","door":"http","result":"ok","tool":"search_memories",
 "user":"ada","token":"5c1e…","request":"9f…","memory":"b06a…","entries":["77aa…","91b0…"],"crc":"1a2b3c4d"}
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

Action = Literal[
    "read", "write", "erase", "hide", "unhide", "export", "import", "backup", "restore",
    "token.new", "token.revoke", "user.set", "audit.cut", "audit.repair", "audit.lost",
]  # fmt: skip
ACTIONS: tuple[Action, ...] = get_args(Action)
Door = Literal["http", "stdio", "cli", "python"]
# Written before an erasure or an export begins, so that none is without a line, not even one that is killed.
STARTED, OK = "started", "ok"


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line. `result` is ok, started, or the name of an error; `request` joins it with the server's log.

    `user` is the caller, who owns the memories unless the result is an error; `token` is the public id of the access
    token, `uid` the account of a local caller.
    `seqs` are the first and last line that a cut removed.
    """

    seq: int
    time: str
    action: Action
    door: Door
    result: str
    tool: str = ""
    user: str = ""
    token: str = ""
    uid: int | None = None
    request: str = ""
    memory: str = ""
    memories: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    version: int | None = None
    # Of token.*: the token id; of erase: the plan; of backup: the file; of restore: the parts that were replaced.
    target: str = ""
    seqs: tuple[int, int] | None = None
    # Of audit.lost: lines that could not be written; of restore: parts; of a refusal: how many were left out before it.
    count: int | None = None


class Actor(NamedTuple):
    """Who acts: the door, and for a server the token and the request."""

    door: Door = "python"
    token: str = ""
    request: str = ""

    @property
    def uid(self) -> int | None:
        """The account of a local caller; a server acts for others."""
        return os.getuid() if self.door in ("cli", "python") else None


# Servers set it for each request, the command line once.
actor: ContextVar[Actor] = ContextVar("actor", default=Actor())  # noqa: B039 — immutable


@contextmanager
def acting(door: Door) -> Generator[None]:
    """Record what is done meanwhile as done through a door."""
    before = actor.set(Actor(door))
    try:
        yield
    finally:
        actor.reset(before)


class Deed(Struct, frozen=True, kw_only=True):
    """What is to be recorded; the log adds number, time and actor."""

    action: Action
    tool: str = ""
    user: str = ""
    memory: str = ""
    memories: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    version: int | None = None
    target: str = ""
    seqs: tuple[int, int] | None = None
    count: int | None = None
    result: str = OK
