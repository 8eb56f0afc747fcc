"""The end of a server: what has begun is answered, and behind a load balancer no request fails."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from memory_server import Server, environment, read_log, start_server
from serve.http.balancer import start_balancer
from tenants_server import Connection

from daypack.memory.tools import open_memory
from daypack.memory.writes.positions import Position

CLIENTS, REPLACEMENTS = 8, 3
# A server whose writes wait for a file, so that a test can stop it while one is in progress.
HELD = """
import os, time
from daypack.memory import tools
call = tools.Memories.call
def held(self, request):
    if request.tool == "add_entry":
        open({began!r}, "w").close()
        while not os.path.exists({release!r}):
            time.sleep(0.02)
    return call(self, request)
tools.Memories.call = held
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stop(server: Server, number: int = signal.SIGTERM) -> None:
    server.process.send_signal(number)


def get(server: Server, path: str) -> httpx.Response:
    with server.client() as client:
        return client.get(path)


def is_refused(server: Server) -> bool:
    try:
        get(server, "/health/live")
    except httpx.TransportError:
        return True
    return False


def ask_a_barrier(server: Server, path: str) -> Connection:
    """Begin a barrier that waits for a write that never comes."""
    memory_id = server.call("create_memory", title="waiting").json()["memory_id"]
    with open_memory(home=server.home) as memories:
        position = Position(memories.backend.store.store_id, memory_id, 1000, 0)
        never = memories.backend.positions.write_token("local", position)
    arguments: dict[str, Any] = {"memory_id": memory_id, "token": never, "timeout_ms": 600_000}
    waiting = Connection(server, None)
    params = {"name": "await_consistency", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    waiting.begin(path, message if path == "/mcp" else arguments)
    wait_until(lambda: "daypack_waiting_barriers 1" in get(server, "/metrics").text)
    return waiting


def test_a_write_in_progress_is_answered_and_stored(tmp_path: Path) -> None:
    home, began, release = str(tmp_path / "home"), tmp_path / "began", tmp_path / "release"
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("held").memory_id
    with start_server(home, before=HELD.format(began=str(began), release=str(release))) as server:
        caller, idle = Connection(server, None), Connection(server, None)
        assert idle.api("get_user", {})[0] == 200
        caller.begin("/api/add_entry", {"memory_id": memory_id, "raw_entry": "written", "summary": "s"})
        wait_until(began.exists)
        stop(server)
        wait_until(lambda: is_refused(server))  # no new connections
        release.touch()
        status, body = caller.answer()
        assert status == 200
        assert server.process.wait(timeout=30) == 0
    with open_memory(home=home) as memories:
        assert [entry.entry_id for entry in memories.list_entries(memory_id).entries] == [json.loads(body)["entry_id"]]
    for connection in (caller, idle):
        connection.close()


def test_a_server_that_drains_accepts_but_is_not_ready_and_ends_its_connections(tmp_path: Path) -> None:
    with start_server(str(tmp_path / "home"), "--drain-seconds", "3600", quiet=False) as server:
        with server.client() as client:
            assert "connection" not in client.post("/api/get_user", json={}).headers
            stop(server)
            wait_until(lambda: get(server, "/health/ready").status_code == 503)
            answer = client.post("/api/get_user", json={})
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert server.call("get_user").status_code == 200  # on a new connection
        barrier = ask_a_barrier(server, "/api/await_consistency")  # and barriers, as long as it accepts
        stop(server, signal.SIGINT)  # a Ctrl-C after the signal ends it at once
        assert server.process.wait(timeout=20) == 0
    barrier.close()


def test_barriers_end_with_an_answer(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    for path in ("/api/await_consistency", "/mcp"):
        with start_server(home) as server:
            barrier = ask_a_barrier(server, path)
            stop(server)
            status, body = barrier.answer()
            assert server.process.wait(timeout=20) == 0
        barrier.close()
        assert b"the server is shutting down" in body
        if path == "/mcp":
            assert (status, json.loads(body)["result"]["isError"]) == (200, True)
        else:
            assert (status, json.loads(body)["error"]["code"]) == (503, "ServerBusy")


def test_a_caller_that_neither_finishes_nor_reads_does_not_delay_the_end_for_long(tmp_path: Path) -> None:
    before = "import daypack.serve.http.running as running; running.WAIT_SECONDS = 0.2"
    with start_server(str(tmp_path / "home"), before=before) as server:
        place = urlsplit(server.url)
        slow, new = (socket.create_connection((place.hostname, place.port), timeout=20) for _ in range(2))
        with slow, new:
            head = "POST /api/get_user HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            slow.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
            assert server.call("get_user").status_code == 200
            stop(server)
            assert server.process.wait(timeout=20) == 0


def test_two_signals_end_a_server_whose_call_never_ends(tmp_path: Path) -> None:
    home, began = str(tmp_path / "home"), tmp_path / "began"
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("held").memory_id
    before = HELD.format(began=str(began), release=str(tmp_path / "never"))
    with start_server(home, before=before, quiet=False) as server:
        caller = Connection(server, None)
        caller.begin("/api/add_entry", {"memory_id": memory_id, "raw_entry": "never", "summary": "s"})
        wait_until(began.exists)
        stop(server, signal.SIGINT)
        wait_until(lambda: is_refused(server))
        stop(server, signal.SIGINT)
        assert server.process.wait(timeout=20) == 0
    caller.close()


def test_the_log_says_that_it_drains(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "daypack", "serve", "--home", str(tmp_path / "home"), "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--drain-seconds", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    assert httpx.get(f"{url}/health/ready", trust_env=False).status_code == 200
    process.terminate()
    events = [line["event"] for line in read_log(process.communicate(timeout=30)[1])]
    assert events == ["server.started", "server.draining", "server.stopped"]
    assert process.returncode == 0


def test_no_request_fails_while_servers_are_replaced_under_load(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with open_memory(home=home) as memories:
        memory_ids = [memories.create_memory(f"of client {at}").memory_id for at in range(CLIENTS)]
    acknowledged: list[dict[str, str]] = [{} for _ in range(CLIENTS)]
    failures: list[str] = []
    done = threading.Event()

    def add_entries(at: int, url: str) -> None:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            while not done.is_set():
                key = f"{at}-{len(acknowledged[at])}"
                entry = {"memory_id": memory_ids[at], "raw_entry": f"entry {key}", "summary": "s", "client_key": key}
                answer = client.post("/api/add_entry", json=entry)
                if answer.status_code != 200:
                    failures.append(answer.text)
                    return
                acknowledged[at][key] = answer.json()["entry_id"]

    with start_balancer() as (balancer, url), ExitStack() as stack:

        def start() -> Server:
            server = stack.enter_context(start_server(home, "--drain-seconds", "1"))
            balancer.add(server.url)
            return server

        servers = [start(), start()]
        clients = [threading.Thread(target=add_entries, args=(at, url)) for at in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            for _ in range(REPLACEMENTS):
                before = sum(map(len, acknowledged))
                wait_until(lambda before=before: sum(map(len, acknowledged)) > before + CLIENTS or bool(failures))
                old = servers.pop(0)
                stop(old)
                assert old.process.wait(timeout=60) == 0
                balancer.remove(old.url)
                servers.append(start())
        finally:
            done.set()
            for client in clients:
                client.join()
    assert failures == []
    with open_memory(home=home) as memories:
        for memory_id, known in zip(memory_ids, acknowledged, strict=True):
            stored: list[str] = []
            page = memories.list_entries(memory_id, limit=100)
            stored += [entry.entry_id for entry in page.entries]
            while page.next_before is not None:
                page = memories.list_entries(memory_id, limit=100, before=page.next_before)
                stored += [entry.entry_id for entry in page.entries]
            assert sorted(stored) == sorted(known.values())  # none missing, none twice
