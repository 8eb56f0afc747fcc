"""A caller who fills its share does not keep others waiting, and a caller who has gone keeps nothing."""

import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from memory_server import Server, start_server
from tenants_server import Connection

from daypack.memory.tools import open_memory
from daypack.memory.writes.positions import Position

# Searches of ada wait for a file, so that the test says how long they take. Their queries are written to another.
SLOW = """
import os, time, daypack.memory.tools as tools
search = tools.Memories._search_memories
def slow(self, request):
    with open({go!r} + ".begun", "a") as file:
        file.write(request.query + "\\n")
    while self.user == "ada" and not os.path.exists({go!r}):
        time.sleep(0.01)
    return search(self, request)
tools.Memories._search_memories = slow
"""


class Two(NamedTuple):
    server: Server
    ada: str
    eve: str
    memory_id: str
    never: str  # a token of ada for a write that was never made
    go: Path


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("fair")
    home, go = str(folder / "home"), folder / "go"
    with open_memory(home=home) as memories:
        tokens = {name: memories.users.new_token(memories.users.get(name).user_id).secret for name in ("ada", "eve")}
        own = memories.as_user("ada")
        memory_id = own.create_memory("hers").memory_id
        position = Position(memories.backend.store.store_id, memory_id, 1_000_000, 0)
        never = memories.backend.positions.write_token("ada", position)
    with start_server(home, "--require-token", "--user", "eve", before=SLOW.format(go=str(go))) as server:
        yield Two(server, tokens["ada"], tokens["eve"], memory_id, never, go)


def test_others_are_served_while_a_user_has_filled_every_turn_it_can_have(two: Two) -> None:
    lines = [Connection(two.server, two.ada) for _ in range(40)]
    for line in lines:
        line.begin("/api/search_memories", {"memory_id": two.memory_id, "query": "anything"})
    for _ in range(5):
        assert two.server.call("get_user", two.eve).status_code == 200
    two.go.touch()
    for line in lines:
        assert line.answer()[0] == 200
        line.close()
    two.go.unlink()


@pytest.mark.requirement("G13")
@pytest.mark.parametrize("door", ["/api", "/mcp"])
def test_the_wait_of_a_caller_who_disconnects_ends(two: Two, door: str) -> None:
    waiting: dict[str, Any] = {"token": two.never, "timeout_ms": 600_000}
    path, value = "/api/await_consistency", waiting
    if door == "/mcp":
        params = {"name": "await_consistency", "arguments": waiting}
        path, value = "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    lines = [Connection(two.server, two.ada) for _ in range(60)]
    for line in lines:
        line.begin(path, value)
    # Barriers of one user leave room for those of another.
    assert two.server.call("await_consistency", two.eve, timeout_ms=0).json()["status"] == "consistent"
    for line in lines:
        line.close()
    # It would wait for ten minutes if the others still held their places.
    found = two.server.call("await_consistency", two.ada, memory_id=two.memory_id, timeout_ms=20_000)
    assert found.json()["status"] == "consistent"


@pytest.mark.requirement("G13")
def test_the_wait_of_a_caller_who_disconnects_ends_though_another_request_was_sent_ahead(two: Two) -> None:
    waiting = json.dumps({"token": two.never, "timeout_ms": 600_000}).encode()
    barrier = (
        f"POST /api/await_consistency HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {two.ada}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(waiting)}\r\n\r\n"
    ).encode() + waiting
    place = urlsplit(two.server.url)
    lines = [socket.create_connection((place.hostname, place.port), timeout=60) for _ in range(60)]
    for line in lines:
        line.sendall(barrier * 3)
    assert two.server.call("await_consistency", two.eve, timeout_ms=0).json()["status"] == "consistent"
    for line in lines:
        line.close()
    found = two.server.call("await_consistency", two.ada, memory_id=two.memory_id, timeout_ms=20_000)
    assert found.json()["status"] == "consistent"


def metric(two: Two, name: str) -> float:
    with two.server.client(two.eve) as client:
        lines = client.get("/metrics").text.splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def until_metric(two: Two, name: str, wanted: float) -> None:
    assert any(metric(two, name) == wanted for _ in range(5_000)), name


def test_queued_calls_of_a_caller_who_disconnects_are_never_begun(two: Two) -> None:
    def search(query: str) -> Connection:
        line = Connection(two.server, two.ada)
        line.begin("/api/search_memories", {"memory_id": two.memory_id, "query": query})
        return line

    running = [search("running") for _ in range(12)]  # every turn that one user may have
    until_metric(two, "daypack_queued_calls", 0)
    queued = [search("queued") for _ in range(40)]
    until_metric(two, "daypack_queued_calls", 40)
    for line in queued:
        line.close()
    until_metric(two, "daypack_queued_calls", 0)
    two.go.touch()
    assert [line.answer()[0] for line in running] == [200] * 12
    two.go.unlink()
    begun = two.go.with_name(two.go.name + ".begun").read_text().splitlines()
    assert (begun.count("running"), begun.count("queued")) == (12, 0)
    for line in running:
        line.close()


def test_too_many_calls_of_one_user_are_refused_with_the_documented_problem(two: Two) -> None:
    lines = [Connection(two.server, two.ada) for _ in range(120)]
    for line in lines:
        line.begin("/api/search_memories", {"memory_id": two.memory_id, "query": "anything"})
    answered: list[Connection] = []
    while len(answered) < 20:  # those that are refused; the others wait for the file
        answered = select.select(lines, [], [], 60)[0]
    status, body = answered[0].answer()
    assert (status, json.loads(body)["error"]["code"]) == (429, "RateLimited")
    status, body = answered[0].mcp("get_user", {})
    assert (status, json.loads(body)["error"]["data"]["code"]) == (429, "RateLimited")
    refused = two.server.call("get_user", two.ada)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert two.server.call("get_user", two.eve).status_code == 200
    two.go.touch()
    statuses = [line.answer()[0] for line in lines if line is not answered[0]]
    assert (statuses.count(200), statuses.count(429)) == (100, 19)
    for line in lines:
        line.close()
    two.go.unlink()


def test_bad_tokens_are_limited_and_good_ones_at_the_same_address_still_work(two: Two) -> None:
    line = Connection(two.server, "dp_wrong")
    answers = [line.api("get_user", {}) for _ in range(30)]
    line.close()
    assert answers[0][0] == 401
    assert {status for status, _ in answers[20:]} == {429}
    assert json.loads(answers[-1][1])["error"]["code"] == "RateLimited"
    for token in (two.ada, two.eve):
        assert two.server.call("get_user", token).status_code == 200
    with two.server.client() as client:
        missing = client.post("/api/get_user", json={})
        assert missing.status_code == 401  # no token is no guess


def test_the_rate_of_a_user_is_what_the_option_says(tmp_path: Path) -> None:
    with start_server(str(tmp_path / "home"), "--rate", "60") as server:
        line = Connection(server, None)
        answers = [line.api("get_user", {}) for _ in range(60)]
        line.close()
        assert answers[0][0] == 200
        assert answers[-1][0] == 429
        with server.client() as client:
            refused = client.get("/api/memories")
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RateLimited")
            assert int(refused.headers["retry-after"]) >= 1
            assert client.get("/health").status_code == 200
    with start_server(str(tmp_path / "home"), "--rate", "0") as server:
        line = Connection(server, None)
        assert {line.api("get_user", {})[0] for _ in range(60)} == {200}
        line.close()
