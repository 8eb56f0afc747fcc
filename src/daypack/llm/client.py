"""One HTTP exchange: proxies, time limits, bounded bodies. Nothing is followed and nothing repeated here."""

import base64
import os
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from urllib.parse import unquote, urlsplit

CONNECT_SECONDS = 10.0
MAX_BODY_BYTES = 16 << 20
# Everything that goes wrong between two machines.
TROUBLE = (OSError, HTTPException, ValueError)  # the last: an address or a number that is none


class Deadline:
    """A point in time after which nobody waits any more."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time is up")
        return left


class Request:
    """What is sent: a method, an address, a body, headers."""

    def __init__(self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> None:
        self.method = method
        self.url = url
        self.body = body
        self.headers = dict(headers)


class Exchange:
    """A request that was sent and the answer as it arrives. `deadline` limits the whole, `idle_seconds` each wait."""

    def __init__(self, request: Request, *, deadline: Deadline, idle_seconds: float | None = None) -> None:
        self._deadline = deadline
        self._idle = idle_seconds
        self._connection, target, extra = _connection(request.url, min(CONNECT_SECONDS, deadline.left()))
        try:
            self._connection.connect()
            # The answer takes this socket over from the connection; its time limit is set here before every wait.
            self._socket = self._connection.sock
            self._wait()
            self._connection.request(request.method, target, request.body, {**request.headers, **extra})
            self._wait()
            self._answer = self._connection.getresponse()
        except BaseException:
            self._connection.close()
            raise
        self.status = self._answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in self._answer.headers.items()}

    def read(self, most: int) -> bytes:
        """Return the next bytes of the body, b"" when no more come: `missing_bytes` tells whether that was all."""
        self._wait()
        return self._answer.read1(most)  # one wait each, so that the deadline holds for a trickle too

    def body(self) -> bytes:
        """Return the whole body; HTTPException when it is too long to be an answer."""
        parts: list[bytes] = []
        size = 0
        while data := self.read(1 << 16):
            parts.append(data)
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise HTTPException(f"the answer has more than {MAX_BODY_BYTES:,} bytes")
        if self.missing_bytes:
            raise HTTPException("the answer was cut off")
        return b"".join(parts)

    @property
    def missing_bytes(self) -> int:
        """How much of the announced body has not come."""
        return self._answer.length or 0

    def close(self) -> None:
        """End it; whoever still works on the answer sees it."""
        self._answer.close()
        self._connection.close()

    def __enter__(self) -> "Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self) -> None:
        left = self._deadline.left()
        self._socket.settimeout(left if self._idle is None else min(left, self._idle))


def origin(url: str) -> tuple[str, str, int | None]:
    """Return what two addresses of the same place share."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def is_loopback(host: str) -> bool:
    """Say whether a name or address is this machine. Only whole addresses count: 127.example.org is elsewhere."""
    if host.lower() == "localhost":
        return True
    from ipaddress import ip_address  # noqa: PLC0415 — few endpoints are named by an address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Say whether nobody on the way can read what is sent."""
    scheme, host, _ = origin(url)
    return scheme == "https" or is_loopback(host)


def reason(error: BaseException) -> str:
    """Say in a few words what went wrong."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, IncompleteRead):
        return "the answer was cut off"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _connection(url: str, seconds: float) -> tuple[HTTPConnection, str, dict[str, str]]:
    """Return the connection for an address, what to ask it for, and headers for a proxy."""
    parts = urlsplit(url)
    scheme, host, port = origin(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kind = HTTPSConnection if scheme == "https" else HTTPConnection
    proxy = _proxy(scheme, host)
    if not proxy:
        return kind(host, port, timeout=seconds), target, {}
    way = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    headers: dict[str, str] = {}
    if way.username is not None:
        login = f"{unquote(way.username)}:{unquote(way.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    connection = kind(way.hostname or "", way.port or 3128, timeout=seconds)
    if scheme == "https":
        connection.set_tunnel(host, port, headers)
        return connection, target, {}
    return connection, f"http://{parts.netloc}{target}", headers


def _proxy(scheme: str, host: str) -> str:
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 — 60 ms, only behind a proxy

    found = getproxies()
    return found.get(scheme) or found.get("all") or "" if not proxy_bypass(host) else ""
