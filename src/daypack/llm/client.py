"""The HTTP client for model endpoints, memory servers and downloads: limits, proxies, keys, redirects, retries."""

import base64
import os
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, IncompleteRead
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from daypack.forks import ThreadLock
from daypack.llm.addresses import is_loopback, is_private, origin
from daypack.llm.connection import Connection, TlsConnection
from daypack.types.deadline import NO_DEADLINE, Deadline

MAX_BODY_BYTES = 16 << 20
# Everything a request can fail with; ValueError is for a malformed address or number.
NETWORK_ERRORS = (OSError, HTTPException, ValueError)
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)

_Result = TypeVar("_Result")


class Retry(NamedTuple):
    """When a failed request is sent again. Pauses double; a server's Retry-After replaces them."""

    attempts: int = 5  # in a row without progress
    pause_seconds: float = 0.5  # before the second attempt
    max_pause_seconds: float = 30.0  # a longer Retry-After is cut to this
    busy_statuses: tuple[int, ...] = (429, 503)  # the server did not carry out the request
    if_refused: bool = True  # no process listens at the address: the server may be starting
    if_broken: bool = False  # the request may have been carried out: only for requests that are safe to repeat

    def allows(self, error: BaseException) -> bool:
        """Return True if a request that failed this way may be sent again."""
        if isinstance(error, BusyServer):
            return True
        if isinstance(error, RedirectRefused):
            return False
        return self.if_refused if isinstance(error, ConnectionRefusedError) else self.if_broken

    def pause_after(self, error: BaseException, pause: float) -> float:
        """Return how long to wait: what the server asks for, else `pause`."""
        asked = error.response.headers.get("retry-after", "") if isinstance(error, BusyServer) else ""
        return min(float(asked), self.max_pause_seconds) if asked.isdecimal() and asked.isascii() else pause


MODEL_RETRY = Retry()
NO_RETRY = Retry(attempts=1)


class Redirects(NamedTuple):
    """Which redirects are followed. Following one never leads from https to http."""

    limit: int
    same_origin: bool  # and only those that keep method and body: a key and a prompt are for this server alone


NO_REDIRECTS = Redirects(0, same_origin=True)
SAME_ORIGIN = Redirects(3, same_origin=True)
ANY_ORIGIN = Redirects(5, same_origin=False)  # only for requests without a key


class Request(NamedTuple):
    """A method, an address, a body and headers."""

    method: str
    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class Response(NamedTuple):
    """A response with its whole body, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Hop(NamedTuple):
    """An address that answered with a redirect, and its headers."""

    url: str
    headers: Mapping[str, str]


class RedirectRefused(HTTPException):
    """A redirect that is not followed; `target` is empty if there were too many."""

    def __init__(self, problem: str, target: str = "") -> None:
        super().__init__(problem)
        self.target = target


class BusyServer(HTTPException):
    """The server asks to try later."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}")
        self.response = response


def send_with_retries(
    send: Callable[[], _Result],
    retry: Retry,
    *,
    deadline: Deadline = NO_DEADLINE,
    progress: Callable[[], int] = lambda: 0,
) -> _Result:
    """Call `send` until it succeeds, as `retry` allows; raise its last error. `progress` counts the bytes received."""
    failures, pause = 0, retry.pause_seconds
    while True:
        before = progress()
        try:
            return send()
        except NETWORK_ERRORS as error:
            failures, pause = (0, retry.pause_seconds) if progress() > before else (failures + 1, pause)
            wait = retry.pause_after(error, pause)
            if failures >= retry.attempts or not retry.allows(error) or deadline.remaining() <= wait:
                raise
        time.sleep(wait)
        pause *= 2


class Client:
    """Requests to one server, with its key. Threads may share it; `keep_alive` keeps connections between requests."""

    def __init__(
        self, url: str, *, key: str = "", redirects: Redirects = NO_REDIRECTS, keep_alive: bool = False
    ) -> None:
        if key and not is_private(url):  # callers report it with a hint; here it holds for all of them
            raise ValueError("a key is not sent over a network without encryption")
        self._url = url
        self._key = key
        self._redirects = redirects
        self._pool = _Pool() if keep_alive else None

    def send(self, method: str, path: str, body: bytes | None, *, retry: Retry, deadline: Deadline) -> Response:
        """Send a request with a JSON body and return the response, or raise one of NETWORK_ERRORS."""
        headers = {"Accept": "application/json", "User-Agent": "daypack"}
        if self._pool is None:
            headers["Connection"] = "close"
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = Request(method, urljoin(self._url, path), body, headers)

        def exchange() -> Response:
            with open_exchange(request, deadline=deadline, redirects=self._redirects, pool=self._pool) as exchange:
                response = Response(exchange.status, exchange.headers, exchange.body())
            if response.status in retry.busy_statuses:
                raise BusyServer(response)
            return response

        try:
            return send_with_retries(exchange, retry, deadline=deadline)
        except BusyServer as error:
            return error.response

    def close(self) -> None:
        """Close the idle connections; the next request opens a new one."""
        if self._pool is not None:
            self._pool.close()


class Exchange:
    """A request that was sent and its response as it arrives; `deadline` limits all of it, `idle_seconds` each wait."""

    def __init__(
        self,
        request: Request,
        *,
        deadline: Deadline,
        idle_seconds: float | None = None,
        pool: "_Pool | None" = None,
        history: tuple[Hop, ...] = (),
    ) -> None:
        self._pool = pool
        self.url = request.url
        self.history = history
        self._route = (pool and pool.take()) or _Route(request.url)
        connection = self._route.connection
        connection.deadline, connection.idle_seconds = deadline, idle_seconds
        try:
            if connection.sock is None:
                connection.connect()
            headers = {**request.headers, **self._route.headers}
            connection.request(request.method, self._route.target(request.url), request.body, headers)
            self._response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        self.status = self._response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in self._response.headers.items()}

    def read(self, max_bytes: int) -> bytes:
        """Return the next bytes of the body, b"" at its end; then `missing_bytes` is 0 if it is complete."""
        return self._response.read1(max_bytes)

    def body(self) -> bytes:
        """Return the whole body; raise HTTPException if it is incomplete or longer than MAX_BODY_BYTES."""
        parts: list[bytes] = []
        size = 0
        while data := self.read(1 << 16):
            parts.append(data)
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise HTTPException(f"the response has more than {MAX_BODY_BYTES:,} bytes")
        if self.missing_bytes:
            raise HTTPException("the response was cut off")
        return b"".join(parts)

    @property
    def missing_bytes(self) -> int:
        """How many bytes of the announced body have not arrived."""
        return self._response.length or 0

    def close(self) -> None:
        """Release the connection: back to the pool if the response was read to its end, else close it."""
        reusable = self._response.isclosed() and not self._response.will_close
        self._response.close()
        if self._pool is not None and reusable:
            self._pool.put(self._route)
        else:
            self._route.connection.close()

    def __enter__(self) -> "Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_exchange(
    request: Request,
    *,
    deadline: Deadline,
    redirects: Redirects,
    idle_seconds: float | None = None,
    pool: "_Pool | None" = None,
) -> Exchange:
    """Send a request and follow redirects; the exchange's `history` lists the addresses that redirected."""
    history: tuple[Hop, ...] = ()
    while True:
        exchange = Exchange(request, deadline=deadline, idle_seconds=idle_seconds, pool=pool, history=history)
        if exchange.status not in _REDIRECT_STATUSES or not redirects.limit:
            return exchange
        exchange.close()
        if len(history) == redirects.limit:
            raise RedirectRefused(f"more than {redirects.limit} redirects")
        history += (Hop(request.url, exchange.headers),)
        target = urljoin(request.url, exchange.headers.get("location", ""))
        if redirects.same_origin and (origin(target) != origin(request.url) or exchange.status not in (307, 308)):
            raise RedirectRefused(f"the server redirects to {target}", target)
        if request.url.startswith("https:") and not target.startswith("https:"):
            raise RedirectRefused("the server redirects to an unencrypted address", target)
        request = request._replace(url=target)


def describe_error(error: BaseException) -> str:
    """Return a network error in a few words."""
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, IncompleteRead):
        return "the response was cut off"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class _Route:
    """A connection to a server, direct or through the proxy the environment names."""

    def __init__(self, url: str) -> None:
        scheme, host, port = origin(url)
        self.headers: dict[str, str] = {}
        self._absolute = False
        self.pid = os.getpid()
        proxy = _find_proxy(scheme, host)
        if not proxy:
            self.connection = _connection(scheme, host, port, host)
            return
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        headers: dict[str, str] = {}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self.connection = _connection(scheme, parts.hostname or "", parts.port or 3128, host)
        if scheme == "https":
            self.connection.set_tunnel(host, port, headers)
        else:
            self.headers, self._absolute = headers, True

    def target(self, url: str) -> str:
        """Return what the request line names: a path, for a plain proxy the whole address."""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return f"http://{parts.netloc}{path}" if self._absolute else path

    def is_usable(self) -> bool:
        """Return True if the next request can use it: open, of this process, and not closed by the server."""
        import select  # noqa: PLC0415 — only with connections that are kept

        sock = self.connection.sock
        if self.pid != os.getpid() or sock is None:
            return False
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return not poll.poll(0)


def _connection(scheme: str, host: str, port: int | None, name: str) -> Connection:
    return TlsConnection(host, port, name) if scheme == "https" else Connection(host, port)


class _Pool:
    """Idle connections to one server."""

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._idle: list[_Route] = []

    def take(self) -> _Route | None:
        """Return a usable connection, which the caller then has for itself; None if there is none."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                route = self._idle.pop()
            if route.is_usable():
                return route
            route.connection.close()

    def put(self, route: _Route) -> None:
        with self._lock:
            self._idle.append(route)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for route in idle:
            route.connection.close()


def _find_proxy(scheme: str, host: str) -> str:
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 — 60 ms, only where there is a proxy

    proxies = getproxies()
    return proxies.get(scheme) or proxies.get("all") or "" if not proxy_bypass(host) else ""
