"""Fifty thousand mixed requests of several users: right and wrong ones, and callers that hang up; memory stays flat."""

import random
import socket
import threading
from urllib.parse import urlsplit

from campaigns import Campaign
from memory_server import Server, make_token, start_server
from tenants_server import Connection

USERS = 4
MOST_GROWTH = 1.25  # of resident memory, from the first fifth to the end
ENTRIES = 200  # of a user: the caches of a growing store are no leak


def resident_bytes(server: Server) -> int:
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


class Caller:
    """One user who works and makes mistakes on a connection that lasts, until it is broken."""

    def __init__(self, server: Server, token: str, seed: int) -> None:
        self._server = server
        self._token = token
        self._random = random.Random(seed)
        self._connection = Connection(server, token)
        self._stored = 0
        status, body = self._connection.api("create_memory", {"title": f"soak {seed}"})
        assert status == 200
        self._memory = body.decode().split('"memory_id":"')[1][:32]
        self.counts: dict[int, int] = {}

    def step(self) -> None:
        """Send one request."""
        kind, tools = self._random.random(), self._connection.routes[self._random.random() < 0.25]
        mine = {"memory_id": self._memory}
        if kind < 0.3:
            key = f"k{self._stored % ENTRIES}"
            self._stored += 1
            sent = {**mine, "raw_entry": f"note {key}", "summary": key, "client_key": key}
            self._note(*tools("add_entry", sent))
        elif kind < 0.5:
            self._note(*tools("search_memories", {**mine, "query": f"note {self._random.randrange(ENTRIES)}"}))
        elif kind < 0.65:
            self._note(*tools("list_entries", mine))
        elif kind < 0.75:
            self._note(*tools("get_context", mine))
        elif kind < 0.8:
            self._note(*tools("await_consistency", {**mine, "timeout_ms": 100, "level": "durable"}))
        elif kind < 0.9:
            self._note(*tools("get_memory", {"memory_id": self._random.randbytes(16).hex()}))
        elif kind < 0.95:
            self._note(*tools("add_entry", {**mine, "raw_entry": "x" * 10_000}))
        elif kind < 0.97:
            self._note(*self._connection.post(f"/nothing/{self._random.random()}", {}))
        elif kind < 0.98:
            self._anonymous()
        else:
            self._hang_up()

    def close(self) -> None:
        self._connection.close()

    def _note(self, status: int, _: bytes) -> None:
        self.counts[status] = self.counts.get(status, 0) + 1

    def _anonymous(self) -> None:
        unknown = Connection(self._server, None)
        self._note(*unknown.api("get_user", {}))
        unknown.close()

    def _hang_up(self) -> None:
        """Close a connection in the middle of a request, or before its response."""
        place = urlsplit(self._server.url)
        with socket.create_connection((place.hostname, place.port), timeout=20) as gone:
            body = b'{"memory_id": "' + self._memory.encode() + b'"}'
            head = f"POST /api/list_entries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n"
            gone.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            gone.sendall(body[: self._random.choice((1, len(body)))])


def test_memory_stays_flat_over_many_requests(home: str, campaign: Campaign) -> None:
    total = campaign.size("soak requests", 50_000)
    tokens = [make_token(home, f"user{at}") for at in range(USERS)]
    options = ("--require-token", "--user", "user0", "--log-level", "warning")
    with start_server(home, *options, quiet=False) as server:
        assert server.process.stderr is not None
        reading = threading.Thread(target=server.process.stderr.read)
        reading.start()
        callers = [Caller(server, token, campaign.seed + at) for at, token in enumerate(tokens)]
        failed: list[BaseException] = []

        def work(caller: Caller, requests: int) -> None:
            try:
                for _ in range(requests):
                    caller.step()
            except BaseException as error:
                failed.append(error)

        sizes: list[int] = []
        for _ in range(5):
            threads = [threading.Thread(target=work, args=(caller, total // 5 // USERS)) for caller in callers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            sizes.append(resident_bytes(server))
        assert failed == []
        for caller in callers:
            caller.close()
        statuses = {status for caller in callers for status in caller.counts}
        assert {200, 400, 401, 404} <= statuses
        assert not {status for status in statuses if status >= 500}
        with server.client(tokens[0]) as client:
            assert client.get("/health/ready").status_code == 200
        print(f"resident MB: {[round(size / 1e6, 1) for size in sizes]}")
        assert max(sizes[2:]) < sizes[0] * MOST_GROWTH, sizes
        server.process.terminate()
        server.process.wait(30)
        reading.join()
        server.process.stderr.close()
        server.process.stderr = None
