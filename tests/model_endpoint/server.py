"""The HTTP server of the scripted model: which API is asked, whether the request is valid, and what is sent back."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import islice
from typing import Any, NamedTuple, Protocol

from scripted_endpoint import LoopbackServer

from model_endpoint import chat, generate_content, messages, responses
from model_endpoint.script import Fail, Say, Sent, Step

_PATIENCE_SECONDS = 30
_MAX_PROBLEMS = 3
_RETRIED = (429, 500, 503, 529)


class Api(Protocol):
    """What one API of a provider refuses and answers: a module."""

    @property
    def DONE(self) -> bytes: ...  # noqa: N802 — a constant of the module

    def check(self, body: Mapping[str, Any]) -> Iterator[str]: ...
    def tokens(self, body: Mapping[str, Any]) -> int: ...
    def too_long(self, count: int, window: int) -> Fail: ...
    def error(self, fail: Fail) -> dict[str, Any]: ...
    def whole(self, say: Say, body: Mapping[str, Any], number: int) -> dict[str, Any]: ...
    def events(self, say: Say, body: Mapping[str, Any], number: int) -> Iterator[Sent]: ...
    def failure(self, fail: Fail) -> Sent: ...


_APIS: dict[str, Api] = {chat.PATH: chat, responses.PATH: responses, messages.PATH: messages}

_KEY_HEADERS: tuple[tuple[Api, str], ...] = ((messages, "x-api-key"), (generate_content, "x-goog-api-key"))


def _api_at(path: str) -> Api | None:
    return generate_content if generate_content.METHOD.fullmatch(path) else _APIS.get(path)


class Request(NamedTuple):
    """A received request; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class ModelEndpoint:
    """The server: `steps` are its replies in order, or `answer` chooses one for each request.

    `window`: requests of more tokens, estimated at four characters each, are refused as too long. `requests` has all
    that came, `refused` why some were refused; clear it in a test that expects a refusal. `strict=False` is for
    programs whose requests have fields and roles that the published types do not have: only the path is checked.
    """

    def __init__(
        self,
        *steps: Step,
        answer: Callable[[Request], Step] | None = None,
        window: int | None = None,
        strict: bool = True,
    ) -> None:
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self.left = list(steps)
        self._answer = answer or self._next_step
        self._window = window
        self._strict = strict
        self._lock = threading.Lock()
        self._resumed = threading.Event()
        self._server = LoopbackServer(self._connection())
        self.url = self._server.url  # the base address for Anthropic's client

    @property
    def openai_url(self) -> str:
        """The base address for OpenAI's client."""
        return f"{self.url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which clients of another process find this endpoint."""
        return {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": self.openai_url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.url,
        }

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    def resume(self) -> None:
        """Send the rest of a reply with `pause_after`; also when it has not come that far."""
        self._resumed.set()

    def __enter__(self) -> "ModelEndpoint":
        self._server.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._resumed.set()
        self._server.stop()
        if kind is None:
            assert self.refused == [], "requests that a provider would refuse"

    def _next_step(self, _request: Request) -> Step:
        return self.left.pop(0) if self.left else Fail(400, "the script has no more replies")

    def reply(self, api: Api, request: Request) -> tuple[int, Say | Fail]:
        """Return the number of a request and the answer; the lock keeps the steps in order."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            step = self._refusal(api, request) or self._answer(request)
        if isinstance(step, Fail):
            return number, step
        return number, (Say(step) if isinstance(step, str) else step).numbered(number)

    def _refusal(self, api: Api, request: Request) -> Fail | None:
        if _api_at(request.path) is None:
            return self._refuse(Fail(404, f"unknown path {request.path}"))
        if problem := next(_check_headers(api, request.headers), None):
            return self._refuse(Fail(401, problem))
        if self._strict and (problem := "; ".join(islice(dict.fromkeys(api.check(request.body)), _MAX_PROBLEMS))):
            return self._refuse(Fail(400, problem))
        count = api.tokens(request.body)
        return api.too_long(count, self._window) if self._window is not None and count > self._window else None

    def _refuse(self, fail: Fail) -> Fail:
        self.refused.append(fail.message)
        return fail

    def _connection(self) -> type[BaseHTTPRequestHandler]:
        return type("Connection", (_Connection,), {"endpoint": self})

    def parts(self, say: Say, api: Api, events: Iterator[Sent]) -> Iterator[bytes | None]:
        """Yield a stream event by event; None where the connection is cut."""
        pieces = 0
        for sent in events:
            if pieces == say.pause_after and not self._resumed.wait(_PATIENCE_SECONDS):
                yield None
            if sent.piece or pieces:
                if pieces == say.cut_after:
                    yield None
                if pieces == say.fail_after:
                    yield api.failure(Fail(529 if api is messages else 500)).wire
                    return
            yield sent.wire
            pieces += sent.piece
        if api.DONE:
            yield api.DONE


class _Connection(BaseHTTPRequestHandler):
    """One request of a client."""

    endpoint: ModelEndpoint
    protocol_version = "HTTP/1.1"  # for chunks: a stream that is cut must look different from one that ends

    def do_POST(self) -> None:
        self.close_connection = True
        given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path.partition("?")[0], headers, json.loads(given or b"{}"))
        if request.path == messages.COUNT_PATH:
            self.send(200, json.dumps({"input_tokens": messages.tokens(request.body)}).encode())
            return
        if request.path.endswith(":countTokens"):
            self.send(200, json.dumps(generate_content.count(request.body)).encode())
            return
        api = _api_at(request.path) or chat
        number, step = self.endpoint.reply(api, request)
        with suppress(OSError):  # the client may have disconnected
            if isinstance(step, Fail):
                hint = {"retry-after-ms": str(step.retry_after_ms)} if step.status in _RETRIED else {}
                self.send(step.status, json.dumps(api.error(step)).encode(), headers=hint)
            elif request.body.get("stream") or request.path.endswith(":streamGenerateContent"):
                self.stream(self.endpoint.parts(step, api, api.events(step, request.body, number)))
            else:
                body = json.dumps(api.whole(step, request.body, number)).encode()
                self.send(200, body, cut=step.cut_after is not None)

    def do_HEAD(self) -> None:
        self.begin(200, {"Content-Length": "0"})

    def do_GET(self) -> None:
        models = self.path.partition("?")[0] == "/v1/models"
        self.send(200 if models else 404, b'{"object": "list", "data": []}' if models else b"{}")

    def send(self, status: int, body: bytes, *, headers: Mapping[str, str] = {}, cut: bool = False) -> None:
        self.begin(status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers})
        self.wfile.write(body[: len(body) // 2] if cut else body)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def stream(self, parts: Iterator[bytes | None]) -> None:
        self.begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for part in parts:
            if part is None:
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Suppress the log."""


def _check_headers(api: Api, headers: Mapping[str, str]) -> Iterator[str]:
    if not headers.get("content-type", "").startswith("application/json"):
        yield "content-type: must be application/json"
    if api is messages and not headers.get("anthropic-version"):
        yield "anthropic-version: header is required"
    has_key = any(api is owner and headers.get(name) for owner, name in _KEY_HEADERS)
    if not headers.get("authorization", "").startswith("Bearer ") and not has_key:
        yield "You didn't provide an API key."
