"""A load balancer on the loopback address: each request goes to a server whose /health/ready is 200."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import urlsplit

_LOOK_SECONDS = 0.05


class Balancer:
    """Forwards requests, and retries nothing: what a server does not answer is a failure of the caller's request."""

    def __init__(self) -> None:
        self.ready: list[str] = []  # host:port
        self._servers: list[str] = []
        self._turn = count()
        self._changed = threading.Condition()
        self._stopped = False

    def add(self, url: str) -> None:
        """Take a server in, and wait until it is ready."""
        place = urlsplit(url).netloc
        with self._changed:
            self._servers.append(place)
            assert self._changed.wait_for(lambda: place in self.ready, timeout=20)

    def remove(self, url: str) -> None:
        with self._changed:
            self._servers.remove(urlsplit(url).netloc)

    def pick(self) -> str:
        """Return the next server in turn that was ready when it was asked last."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ready, timeout=20)
            return self.ready[next(self._turn) % len(self.ready)]

    def look(self) -> None:
        """Ask all servers whether they are ready, until the end."""
        while not self._stopped:
            with self._changed:
                servers = list(self._servers)
            ready = [place for place in servers if _is_ready(place)]
            with self._changed:
                self.ready = ready
                self._changed.notify_all()
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        self._stopped = True


@contextmanager
def start_balancer() -> Generator[tuple[Balancer, str]]:
    """Run a balancer; yields it and its address."""
    balancer = Balancer()

    class Forward(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connections: dict[str, HTTPConnection] = {}  # kept, as the connection of the client is

        def finish(self) -> None:
            super().finish()
            for connection in self.connections.values():
                connection.close()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            place = balancer.pick()
            connection = self.connections.setdefault(place, HTTPConnection(place, timeout=60))
            try:
                connection.request("POST", self.path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                status, answered = answer.status, answer.read()
            except OSError as error:
                status, answered = 502, repr(error).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answered)))
            self.end_headers()
            self.wfile.write(answered)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — the library's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as listening:
        threads = [threading.Thread(target=work) for work in (balancer.look, listening.serve_forever)]
        for thread in threads:
            thread.start()
        try:
            yield balancer, f"http://127.0.0.1:{listening.server_port}"
        finally:
            balancer.stop()
            listening.shutdown()
            for thread in threads:
                thread.join()


def _is_ready(place: str) -> bool:
    connection = HTTPConnection(place, timeout=5)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
