"""Memories on a server: the nine tools over its JSON API."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from daypack import errors
from daypack.errors import AccessDenied, BadInput, DaypackError, ServerFailed, ServerUnreachable
from daypack.llm.addresses import is_loopback, is_private, origin
from daypack.llm.client import NETWORK_ERRORS, NO_RETRY, Client, Response, Retry, describe_error
from daypack.memory.port import MemoryTools
from daypack.memory.requests import (
    REQUESTS,
    AddEntry,
    AwaitConsistency,
    CreateMemory,
    GetUser,
    PutContext,
    Request,
    Result,
    read_number,
)
from daypack.types.deadline import Deadline
from daypack.types.memory import MemoryPage

ANSWER_SECONDS = 60.0  # for one call with its retries, unless its deadline is earlier
RETRY = Retry(attempts=3, pause_seconds=0.2, if_refused=False, if_broken=True)
_Answer = TypeVar("_Answer")


class _Problem(msgspec.Struct, frozen=True):
    code: str
    message: str
    hint: str = ""


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Problem


# msgspec inspects a type at its first use, which is not thread-safe: do it here.
_RESULTS: dict[type[Request[Any]], "msgspec.json.Decoder[Any]"] = {
    request: msgspec.json.Decoder(request.result) for request in REQUESTS
}
_MEMORY_PAGE = msgspec.json.Decoder(MemoryPage)
_ERROR = msgspec.json.Decoder(_ErrorBody)


class RemoteMemories(MemoryTools):
    """The memories of one user on a server. Threads may share it.

    The token identifies the user; without a token the server decides. A `user` other than None and "local" must be
    the user the server has identified. Without a default `memory`, a request without one means the server's default.
    Without a `token`, that of the environment is used if it is for this address; `named` is false if the caller did not
    name the address but found it in a file.
    """

    def __init__(
        self, url: str, *, user: str | None = None, token: str | None = None, memory: str = "", named: bool = True
    ) -> None:
        self.default_memory = memory
        self._url = _api_address(url)
        self._unchecked = [] if user is None or user == "local" else [user]
        self._withheld = ""  # why the token of the environment is not sent
        if token is None:
            token, self._withheld = find_token(self._url, os.environ, named=named)
        if token and not is_private(self._url):
            hint = "use an https address, or a tunnel to a loopback address; without DAYPACK_TOKEN no token is sent"
            problem = "a token is not sent over a network without encryption"
            raise BadInput(problem, operation="open memory", place=self._url, hint=hint)
        self._client = Client(self._url, key=token, keep_alive=True)

    @property
    def remote(self) -> bool:
        """True: every call waits for the server."""
        return True

    @property
    def place(self) -> str:
        """The address of the server."""
        return self._url

    def __repr__(self) -> str:
        return f"RemoteMemories({self._url!r})"

    def call(self, request: Request[Result]) -> Result:
        """Send a request of any of the nine tools and return its result."""
        request = self.with_default(request)
        waiting = request.timeout_ms / 1000 if isinstance(request, AwaitConsistency) else 0.0
        deadline = self.deadline.within(ANSWER_SECONDS + waiting)
        return self._send(request.tool, _encode(request), _RESULTS[type(request)], _retry_of(request), deadline)

    def list_memories(self, limit: int | str = 50, after: str | None = None) -> MemoryPage:
        """Return the user's own memories, oldest first: the first, or those after a memory id."""
        asked = {"limit": str(read_number(limit, "limit", "list_memories"))} | (
            {} if after is None else {"after": after}
        )
        path, deadline = f"memories?{urlencode(asked, errors='replace')}", self.deadline.within(ANSWER_SECONDS)
        return self._send(path, None, _MEMORY_PAGE, RETRY, deadline)

    def close(self) -> None:
        """Close the idle connections; the next call opens a new one."""
        self._client.close()

    def _send(
        self,
        tool: str,
        body: bytes | None,
        decoder: "msgspec.json.Decoder[_Answer]",
        retry: Retry,
        deadline: Deadline,
    ) -> _Answer:
        if self._unchecked:
            self._check_user(self._unchecked[0], deadline)
        return self._send_unchecked(tool, body, decoder, retry, deadline)

    def _send_unchecked(
        self,
        tool: str,
        body: bytes | None,
        decoder: "msgspec.json.Decoder[_Answer]",
        retry: Retry,
        deadline: Deadline,
    ) -> _Answer:
        path = f"{urlsplit(self._url).path}/api/{tool}"
        tool = tool.partition("?")[0]
        try:
            response = self._client.send("GET" if body is None else "POST", path, body, retry=retry, deadline=deadline)
        except ConnectionRefusedError as error:
            hint = "start the server with `daypack serve`, or correct the address"
            raise self._unreachable(tool, error, hint) from error
        except NETWORK_ERRORS as error:
            raise self._unreachable(tool, error, "check the address and the server") from error
        if response.status != 200:
            raise self._error_of(tool, response)
        try:
            return decoder.decode(response.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            hint = "check that a daypack server of this version is at this address"
            raise self._failed(tool, "the response does not have the expected format", hint) from error

    def _check_user(self, expected: str, deadline: Deadline) -> None:
        actual = self._send_unchecked(GetUser.tool, b"{}", _RESULTS[GetUser], RETRY, deadline).user_id
        if actual == expected:
            self._unchecked.clear()
        else:
            hint = f"create a token with `daypack token new {expected}` and set it as DAYPACK_TOKEN"
            problem = f"the server identifies this caller as {actual!r}, not {expected!r}"
            raise AccessDenied(problem, operation="open memory", place=self._url, hint=hint)

    def _error_of(self, tool: str, response: Response) -> DaypackError:
        """Return the server's error as the same class it has there."""
        try:
            problem = _ERROR.decode(response.body).error
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            hint = "check that a daypack server is at this address"
            return self._failed(tool, f"HTTP {response.status}", hint)
        kind = getattr(errors, problem.code, None)
        if isinstance(kind, type) and issubclass(kind, DaypackError):
            hint = self._withheld if kind is AccessDenied and self._withheld else problem.hint
            return kind(problem.message, operation=tool, place=self._url, hint=hint)
        return self._failed(tool, problem.message, problem.hint)

    def _failed(self, tool: str, problem: str, hint: str) -> ServerFailed:
        return ServerFailed(problem, operation=tool, place=self._url, hint=hint)

    def _unreachable(self, tool: str, error: Exception, hint: str) -> ServerUnreachable:
        return ServerUnreachable(describe_error(error), operation=tool, place=self._url, hint=hint)


def _api_address(url: str) -> str:
    """Return the address without /mcp: MCP clients and this one use the same server."""
    trimmed = url.strip().rstrip("/").removesuffix("/mcp")
    try:
        scheme, host, _ = origin(trimmed)
        parts = urlsplit(trimmed)
        valid = scheme in ("http", "https") and host and not parts.query
    except ValueError:
        parts, valid = None, False
    if parts is not None and parts.scheme in ("http", "https") and parts.username is not None:
        hint = "put the token into DAYPACK_TOKEN, not into the address"
        shown = f"{parts.scheme}://…@{parts.hostname}"
        raise BadInput("the address has a name or a password", operation="open memory", place=shown, hint=hint)
    if not valid:
        hint = "write http://127.0.0.1:8420 for a server, postgresql://USER@HOST/DATABASE for a database"
        problem = f"{_without_password(url)!r} is not the address of a server or a database"
        raise BadInput(problem, operation="open memory", hint=hint)
    return trimmed


def _without_password(url: str) -> str:
    """Return a text that is no address, without the parts in which an address has passwords."""
    before, at, after = url.partition("?")[0].rpartition("@")
    scheme, mark, _ = before.partition("://")
    return f"{scheme + mark if mark else ''}…@{after}" if at else after


def find_token(url: str, environ: Mapping[str, str], *, named: bool) -> tuple[str, str]:
    """Return the token of the environment if it is for this address, else why it is not sent."""
    token, place = environ.get("DAYPACK_TOKEN", ""), environ.get("DAYPACK_URL", "")
    if not token:
        return "", ""
    if place:
        try:
            fits = origin(place) == origin(url)
        except ValueError:
            fits = False
        return (token, "") if fits else ("", "DAYPACK_TOKEN is for the address in DAYPACK_URL, which is another one")
    if named or is_loopback(origin(url)[1]):
        return token, ""
    return "", f"DAYPACK_TOKEN was not sent: set DAYPACK_URL={url} if the token is for this server"


def _retry_of(request: Request[Any]) -> Retry:
    """Return whether a request that the server may have carried out can be sent again."""
    if isinstance(request, AddEntry):
        return NO_RETRY if request.client_key is None else RETRY
    # A barrier reports a failed write once: a second barrier would not repeat what a lost response reported.
    return NO_RETRY if isinstance(request, (CreateMemory, PutContext, AwaitConsistency)) else RETRY


def _encode(request: Request[Any]) -> bytes:
    try:
        return msgspec.json.encode(request)
    except (UnicodeEncodeError, TypeError, RecursionError) as error:
        problem = "the arguments cannot be written as JSON"
        raise BadInput(problem, operation=request.tool, hint="send text without lone surrogates") from error
