"""The nine tools of a memory server, called from here: the methods of `Memories`, over the server's JSON API."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from daypack import errors
from daypack.errors import AccessDenied, BadInput, DaypackError, ServerFailed
from daypack.llm.addresses import origin
from daypack.llm.client import NETWORK_ERRORS, NO_RETRY, Client, Deadline, Response, Retry, describe_error
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

ANSWER_SECONDS = 60.0
RETRY = Retry(attempts=3, pause_seconds=0.2, if_refused=False, if_broken=True)
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
    """The memories of one user on a server. Threads may share it.

    Whose memories they are is decided by the token, without one by the server; a `user` that is neither None nor
    "local" must be the same.
    """

    def __init__(self, url: str, *, user: str | None = None, token: str | None = None) -> None:
        self._url = _checked(url)
        self._token = token if token is not None else os.environ.get("DAYPACK_TOKEN", "")
        self._expected = None if user in (None, "local") else user
        self._client = Client(self._url, key=self._token, keep_alive=True)

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
        """Close the idle connections; the next call opens a new one."""
        self._client.close()

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
        deadline = Deadline(ANSWER_SECONDS + seconds)
        body = self._send(tool, given, retry=RETRY if repeat else NO_RETRY, deadline=deadline)
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

    def _send(self, tool: str, given: Mapping[str, Any] | None, *, retry: Retry, deadline: Deadline) -> bytes:
        """Return the body of a successful response, or raise the server's error."""
        body = None if given is None else _encode({name: value for name, value in given.items() if value is not None})
        path = f"{urlsplit(self._url).path}/api/{tool}"
        method = "GET" if body is None else "POST"
        try:
            response = self._client.send(method, path, body, retry=retry, deadline=deadline)
        except ConnectionRefusedError as error:
            hint = "is `daypack serve` running at this address?"
            raise self._failed(tool, describe_error(error), hint) from error
        except NETWORK_ERRORS as error:
            raise self._failed(tool, describe_error(error), "check the address and the server") from error
        if response.status != 200:
            raise self._refusal(tool, response)
        return response.body

    def _refusal(self, tool: str, answer: Response) -> DaypackError:
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
