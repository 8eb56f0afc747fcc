"""The nine tools of a memory server, called from here: the methods of `Memories`, over the server's JSON API."""

import os
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPSConnection, IncompleteRead
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from daypack import errors
from daypack.errors import AccessDenied, BadInput, DaypackError, ServerFailed
from daypack.llm.client import CONNECT_SECONDS, MAX_BODY_BYTES, TROUBLE, origin, reason
from daypack.types.memory import (
    About,
    Added,
    Consistency,
    ContextDocument,
    EntryPage,
    Level,
    Memory,
    SearchResult,
    User,
    Where,
)

ATTEMPTS = 3
ANSWER_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
# What says "not now": the request was not carried out.
_BUSY = (429, 503)
_Result = TypeVar("_Result")


class _Told(msgspec.Struct, frozen=True):
    code: str
    message: str
    hint: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: _Told


# Made here, by one thread: the first use of a type is not safe by several.
_READ_MEMORY = msgspec.json.Decoder(Memory)
_READ_MEMORIES = msgspec.json.Decoder(tuple[Memory, ...])
_READ_ADDED = msgspec.json.Decoder(Added)
_READ_PAGE = msgspec.json.Decoder(EntryPage)
_READ_DOCUMENT = msgspec.json.Decoder(ContextDocument)
_READ_CONSISTENCY = msgspec.json.Decoder(Consistency)
_READ_USER = msgspec.json.Decoder(User)
_READ_FOUND = msgspec.json.Decoder(SearchResult)
_READ_REFUSAL = msgspec.json.Decoder(_Refusal)


class RemoteMemories:
    """The memories of one user on a server. Threads may share it; each has its own connection.

    Whose memories they are is decided by the token, without one by the server; a `user` that is neither None nor
    "local" must be the same.
    """

    def __init__(self, url: str, *, user: str | None = None, token: str | None = None) -> None:
        self._url = _checked(url)
        self._token = token if token is not None else os.environ.get("DAYPACK_TOKEN", "")
        self._expected = None if user in (None, "local") else user
        self._lines = threading.local()
        self._lock = threading.Lock()
        self._opened: list[_Line] = []

    def __repr__(self) -> str:
        return f"RemoteMemories({self._url!r})"

    def create_memory(self, title: str, memory_type: str = "chat", description: str = "") -> Memory:
        """Make a memory; its document is the placeholder."""
        given = {"title": title, "memory_type": memory_type, "description": description}
        return self._ask("create_memory", given, _READ_MEMORY, repeat=False)

    def get_memory(self, memory_id: str) -> Memory:
        """Return what is known about a memory."""
        return self._ask("get_memory", {"memory_id": memory_id}, _READ_MEMORY)

    def add_entry(
        self,
        memory_id: str,
        raw_entry: str,
        summary: str | None = None,
        *,
        about: About | Mapping[str, Any] | None = None,
        client_key: str | None = None,
    ) -> Added:
        """Store one raw message with its summary; with a client key it is safe to do it twice."""
        given = {"memory_id": memory_id, "raw_entry": raw_entry, "summary": summary, "client_key": client_key}
        return self._ask("add_entry", given | _flat(about), _READ_ADDED, repeat=client_key is not None)

    def list_entries(
        self, memory_id: str, limit: int | str = 25, before: str | None = None, after: str | None = None
    ) -> EntryPage:
        """Return entries, newest first."""
        given = {"memory_id": memory_id, "limit": limit, "before": before, "after": after}
        return self._ask("list_entries", given, _READ_PAGE)

    def get_context(self, memory_id: str) -> ContextDocument:
        """Return the current document."""
        return self._ask("get_context", {"memory_id": memory_id}, _READ_DOCUMENT)

    def put_context(self, memory_id: str, content: object) -> ContextDocument:
        """Write a new version of the document."""
        given = {"memory_id": memory_id, "content": content}
        return self._ask("put_context", given, _READ_DOCUMENT, repeat=False)

    def await_consistency(
        self,
        memory_id: str | None = None,
        token: str | None = None,
        timeout_ms: int = 10_000,
        level: Level = "searchable",
    ) -> Consistency:
        """Wait until the writes before it are durable, visible or searchable, and say whether they are."""
        given = {"memory_id": memory_id, "token": token, "timeout_ms": timeout_ms, "level": level}
        # A barrier also reports failed writes, once: the report must not be lost with a connection that broke.
        return self._ask("await_consistency", given, _READ_CONSISTENCY, repeat=False, seconds=timeout_ms / 1000)

    def get_user(self) -> User:
        """Return the profile, with quotas and what is used of them."""
        return self._ask("get_user", {}, _READ_USER)

    def search_memories(
        self,
        memory_id: str,
        query: str,
        top_k: int | str = 10,
        explain: bool = False,  # noqa: FBT001, FBT002 — the tool's own signature
        where: Where | Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Return the entries that fit a query best, with the latest document and the one that fits best."""
        given = {"memory_id": memory_id, "query": query, "top_k": top_k, "explain": explain}
        return self._ask("search_memories", given | _flat(where), _READ_FOUND)

    def memories(self) -> tuple[Memory, ...]:
        """Return the user's memories."""
        return self._ask("memories", None, _READ_MEMORIES)

    def close(self) -> None:
        """Close every connection; a call after it opens a new one."""
        with self._lock:
            opened, self._opened = self._opened, []
        for line in opened:
            line.connection.close()

    def __enter__(self) -> "RemoteMemories":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        tool: str,
        given: Mapping[str, Any] | None,
        decoder: "msgspec.json.Decoder[_Result]",
        *,
        repeat: bool = True,
        seconds: float = 0.0,
    ) -> _Result:
        if self._expected is not None:
            self._check_user(self._expected)
        body = self._send(tool, given, attempts=ATTEMPTS if repeat else 1, seconds=ANSWER_SECONDS + seconds)
        try:
            return decoder.decode(body)
        except (msgspec.DecodeError, UnicodeError) as error:
            hint = "is a daypack server of this version at this address?"
            raise self._failed(tool, "the answer is not of the form it should have", hint) from error

    def _check_user(self, expected: str) -> None:
        self._expected = None
        actual = self.get_user().user_id
        if actual != expected:
            self._expected = expected
            hint = f"make a token for {expected} with `daypack token new`, and give it in DAYPACK_TOKEN"
            raise AccessDenied(f"the server knows this caller as {actual!r}", operation="open memory", hint=hint)

    def _send(self, tool: str, given: Mapping[str, Any] | None, *, attempts: int, seconds: float) -> bytes:
        """Return the body of a good answer; what may be repeated is, when the connection broke or nobody had time."""
        body = None if given is None else _encode({name: value for name, value in given.items() if value is not None})
        pause = _PAUSE_SECONDS
        for left in reversed(range(attempts)):
            try:
                answer = self._exchange(tool, body, seconds)
            except ConnectionRefusedError as error:
                hint = "is `daypack serve` running at this address?"
                raise self._failed(tool, reason(error), hint) from error
            except TROUBLE as error:
                if not left:
                    raise self._failed(tool, reason(error), "check the address and the server") from error
            else:
                if answer.status == 200:
                    return answer.body
                if answer.status not in _BUSY or not left:
                    raise self._refusal(tool, answer)
            time.sleep(pause)
            pause *= 2
        raise AssertionError  # the last attempt returns or raises

    def _exchange(self, tool: str, body: bytes | None, seconds: float) -> "_Answer":
        headers = {"Accept": "application/json", "User-Agent": "daypack"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        line = self._line()
        try:
            line.wait(seconds)
            target = f"{urlsplit(self._url).path}/api/{tool}"
            line.connection.request("GET" if body is None else "POST", target, body, headers)
            answer = line.connection.getresponse()
            read = answer.read(MAX_BODY_BYTES + 1)
            if len(read) > MAX_BODY_BYTES:
                raise ValueError(f"the answer has more than {MAX_BODY_BYTES:,} bytes")
            if answer.length:
                raise IncompleteRead(read, answer.length)
        except BaseException:
            self._drop(line)
            raise
        if answer.will_close:
            self._drop(line)
        return _Answer(answer.status, read)

    def _line(self) -> "_Line":
        """Return this thread's connection; a new one when there is none, or the server has closed it meanwhile."""
        line: _Line | None = getattr(self._lines, "own", None)
        if line is not None and line.usable:
            return line
        if line is not None:
            self._drop(line)
        line = _Line(self._url)
        self._lines.own = line
        with self._lock:
            self._opened.append(line)
        return line

    def _drop(self, line: "_Line") -> None:
        self._lines.own = None
        if line.pid == os.getpid():
            line.connection.close()
        with self._lock:
            if line in self._opened:
                self._opened.remove(line)

    def _refusal(self, tool: str, answer: "_Answer") -> DaypackError:
        """Return the error the server had, as if it had been raised here."""
        try:
            told = _READ_REFUSAL.decode(answer.body).error
        except (msgspec.DecodeError, UnicodeError):
            hint = "is a daypack server at this address?"
            return self._failed(tool, f"HTTP {answer.status}", hint)
        kind = getattr(errors, told.code, None)
        if isinstance(kind, type) and issubclass(kind, DaypackError):
            return kind(told.message, operation=tool, place=self._url, hint=told.hint)
        return self._failed(tool, told.message, told.hint)

    def _failed(self, tool: str, problem: str, hint: str) -> ServerFailed:
        return ServerFailed(problem, operation=tool, place=self._url, hint=hint)


class _Answer(NamedTuple):
    status: int
    body: bytes


class _Line:
    """A connection that is kept between calls."""

    def __init__(self, url: str) -> None:
        scheme, host, port = origin(url)
        kind = HTTPSConnection if scheme == "https" else HTTPConnection
        self.connection = kind(host, port, timeout=CONNECT_SECONDS)
        self.pid = os.getpid()

    @property
    def usable(self) -> bool:
        """Whether the next request can go this way: open, of this process, and nothing to read on it."""
        import select  # noqa: PLC0415 — only with a server

        socket = self.connection.sock
        if self.pid != os.getpid() or socket is None:
            return False
        waiting = select.poll()
        waiting.register(socket, select.POLLIN)
        return not waiting.poll(0)

    def wait(self, seconds: float) -> None:
        """Connect if need be; from now on wait so long for each answer."""
        if self.connection.sock is None:
            self.connection.connect()
        if (socket := self.connection.sock) is not None:
            socket.settimeout(seconds)


def _checked(url: str) -> str:
    """Return the address the API is below; the one for MCP clients means the same server."""
    trimmed = url.strip().rstrip("/").removesuffix("/mcp")
    try:
        scheme, host, _ = origin(trimmed)
        usable = scheme in ("http", "https") and host and not urlsplit(trimmed).query
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(f"{url!r} is no address of a server", operation="open memory", hint="http://127.0.0.1:8420")
    return trimmed


def _flat(given: About | Where | Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else msgspec.structs.asdict(given)


def _encode(given: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(given)
    except (UnicodeEncodeError, TypeError, RecursionError) as error:
        raise BadInput("this cannot be written as JSON", operation="call", hint="use plain text") from error
