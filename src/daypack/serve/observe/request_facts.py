"""The facts about one request that log lines, metrics and the audit log share; never its contents."""

import os
import re
from contextvars import ContextVar
from typing import Literal

Door = Literal["http", "stdio"]

# Not beginning like an access token: a caller that confuses two headers must not write its token into the log.
_WELL_FORMED = re.compile(r"(?!dp_)[A-Za-z0-9][A-Za-z0-9._:-]{0,63}", re.ASCII)


class RequestFacts:
    """Filled in while a request is served: who, which route and tool, and the name of the error if it failed."""

    __slots__ = (
        "audited",
        "client",
        "damaged",
        "door",
        "error",
        "request_id",
        "route",
        "rpc_id",
        "status",
        "token_id",
        "tool",
        "user",
    )

    def __init__(self, door: Door, route: str = "", request_id: str = "") -> None:
        self.door: Door = door
        self.route = route
        self.request_id = request_id or new_request_id()
        self.tool = ""
        self.user = ""
        self.token_id = ""
        self.client = ""
        self.rpc_id = ""
        self.error = ""
        self.status = 200  # as HTTP would have it, over stdio too
        self.damaged = False  # damage was found
        self.audited = False  # the audit log has a line about it, or has enough of its kind


# Of the request that the running code serves; worker threads inherit it.
current: ContextVar[RequestFacts | None] = ContextVar("current", default=None)


def new_request_id() -> str:
    """Return a random id: 16 hexadecimal digits."""
    return os.urandom(8).hex()


def accept_request_id(text: object) -> str:
    """Return an id that a caller sent if it is well-formed (1 to 64 of A–Z a–z 0–9 . _ : -), else an empty text."""
    return text if isinstance(text, str) and _WELL_FORMED.fullmatch(text) else ""
