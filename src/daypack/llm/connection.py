"""HTTP connections on which every wait counts against the deadline of the request, down to the single byte.

The standard library's timeout begins anew with every byte that arrives: a server that sends one byte a second could
hold a caller for hours.
"""

import select
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from io import BufferedReader, RawIOBase
from socket import socket
from typing import TYPE_CHECKING, Any, cast

from daypack.types.deadline import NO_DEADLINE, Deadline

if TYPE_CHECKING:
    from ssl import SSLSocket

    from _typeshed import ReadableBuffer, WriteableBuffer

CONNECT_SECONDS = 10.0


class Connection(HTTPConnection):
    """A connection for one exchange after the other; each sets its deadline and its limit for a single wait."""

    def __init__(self, host: str, port: int | None) -> None:
        super().__init__(host, port)
        self.deadline: Deadline = NO_DEADLINE
        self.idle_seconds: float | None = None
        self.response_class = cast("type[HTTPResponse]", partial(_Response, self))

    def wait_seconds(self) -> float | None:
        """Return how long the next wait may take, None for as long as it takes; raise TimeoutError if it is over."""
        seconds = self.deadline.require()
        if self.idle_seconds is not None:
            return min(seconds, self.idle_seconds)
        return None if seconds == float("inf") else seconds

    def connect(self) -> None:
        """Connect, through the proxy's tunnel if one is set."""
        self.timeout = min(CONNECT_SECONDS, self.deadline.require())
        super().connect()

    def send(self, data: "ReadableBuffer | Any") -> None:  # noqa: ANN401 — as the library declares it
        """Send bytes within the deadline."""
        if self.sock is not None:
            cast("socket", self.sock).settimeout(self.wait_seconds())
        super().send(data)


class TlsConnection(Connection):
    """The same, encrypted; `name` is the server the certificate has to be for."""

    default_port = 443

    def __init__(self, host: str, port: int | None, name: str) -> None:
        super().__init__(host, port)
        self._name = name

    def connect(self) -> None:
        """Connect and shake hands."""
        import ssl  # noqa: PLC0415 — only where it is used

        super().connect()
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        wrapped = context.wrap_socket(
            cast("socket", self.sock), server_hostname=self._name, do_handshake_on_connect=False
        )
        self.sock = wrapped
        self._shake_hands(wrapped)

    def _shake_hands(self, wrapped: "SSLSocket") -> None:
        from ssl import SSLWantReadError, SSLWantWriteError  # noqa: PLC0415

        limit = self.deadline.within(CONNECT_SECONDS)
        wrapped.settimeout(0)
        while True:
            try:
                wrapped.do_handshake()
                break
            except SSLWantReadError:
                _wait(wrapped, select.POLLIN, limit)
            except SSLWantWriteError:
                _wait(wrapped, select.POLLOUT, limit)
        wrapped.settimeout(self.wait_seconds())


def _wait(sock: socket, event: int, deadline: Deadline) -> None:
    waiting = select.poll()
    waiting.register(sock, event)
    waiting.poll(deadline.require() * 1000)


class _Response(HTTPResponse):
    """A response whose status line, headers, chunk sizes and body are all read within the deadline."""

    def __init__(self, connection: Connection, sock: socket, debuglevel: int = 0, method: str | None = None) -> None:
        super().__init__(sock, debuglevel, method)
        self.fp = BufferedReader(_TimedReader(connection, sock, self.fp.detach()))


class _TimedReader(RawIOBase):
    """Sets the timeout of a socket before every read."""

    def __init__(self, connection: Connection, sock: socket, raw: Any) -> None:  # noqa: ANN401 — untyped in the library
        self._connection = connection
        self._socket = sock
        self._raw = raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        self._socket.settimeout(self._connection.wait_seconds())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
