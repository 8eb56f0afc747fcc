"""A proxy in front of a PostgreSQL server: it counts round trips, and cuts a connection around a COMMIT."""

import shutil
import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

Cut = Literal["before", "after", "meanwhile"]  # the commit never arrives; its answer does not; nobody knows
_SOCKET = ".s.PGSQL.5432"
_CHUNK = 1 << 16


class Proxy:
    """Forwards connections to the server of an address. What is armed happens at the next COMMIT."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = parse_qs(parts.query)["host"][0] + "/" + _SOCKET
        self._folder = tempfile.mkdtemp(prefix="dp-proxy-")
        self.url = urlunsplit(parts._replace(query=f"host={self._folder}&port=5432"))
        self.trips = 0  # how often a client waited for an answer
        self.cuts = 0
        self._armed: Cut | None = None
        self._word = b"COMMIT"
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/{_SOCKET}")
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, cut: Cut, word: bytes = b"COMMIT") -> None:
        """Cut the connection that sends the next COMMIT, or another word; the next of all for an empty one."""
        self._word = word
        self._armed = cut

    def stop_accepting(self) -> None:
        """Refuse new connections; those that are open stay."""
        self._listener.close()
        Path(self._folder, _SOCKET).unlink()

    def close(self) -> None:
        """End all connections."""
        self._listener.close()
        for one in self._open:
            one.close()
        shutil.rmtree(Path(self._folder))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                _Link(self, client, server).start()

    def take(self, data: bytes) -> Cut | None:
        """Return what is to be done when this is sent; only once."""
        if self._word not in data:
            return None
        armed, self._armed = self._armed, None
        self.cuts += armed is not None
        return armed


class _Link:
    """One connection."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._muted = False
        self._asked = False

    def start(self) -> None:
        for pump in (self._to_server, self._to_client):
            threading.Thread(target=pump, daemon=True).start()

    def _to_server(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(_CHUNK):
                self._asked = True
                cut = self._proxy.take(data)
                if cut == "before":
                    break
                self._muted = self._muted or cut == "after"
                self._server.sendall(data)
                if cut == "meanwhile":
                    break
        self._end()

    def _to_client(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(_CHUNK):
                if self._muted:
                    break  # it answers: the commit is done
                self._proxy.trips += self._asked
                self._asked = False
                self._client.sendall(data)
        self._end()

    def _end(self) -> None:
        for one in (self._client, self._server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(url: str) -> Generator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
