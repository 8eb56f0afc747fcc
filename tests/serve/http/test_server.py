"""The server as a process: how it starts, what it says, how it ends."""

import resource
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from memory_server import environment, make_token, read_log, run_daypack, start_server
from tenants_server import Connection

from daypack.memory.tools import open_memory
from daypack.memory.writes.positions import Position
from daypack.serve.http.address import listen
from daypack.serve.reach.open_files import allow_connections


def test_it_does_not_let_others_in_without_a_token(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    for options in (["--host", "0.0.0.0"], ["--require-token"], ["--allow-host", "memory.example"]):
        done = run_daypack(home, "serve", "--port", "0", *options)
        assert done.returncode == 1
        assert "daypack token new" in done.stderr


def test_small_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # without, asyncio lets each wait for the caller's late receipt


def test_an_address_that_cannot_be_had_and_a_missing_session_are_said(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_daypack(home, "serve", "--port", port)
    assert done.returncode == 2
    assert f"[127.0.0.1:{port}]" in done.stderr
    assert "--port" in done.stderr
    elsewhere = run_daypack(home, "serve", "--host", "203.0.113.9", "--port", "0", "--require-token")
    assert "daypack token new" in elsewhere.stderr
    make_token(home, "ada")
    elsewhere = run_daypack(home, "serve", "--host", "203.0.113.9", "--port", "0")
    assert elsewhere.returncode == 2
    assert "address of this machine" in elsewhere.stderr
    done = run_daypack(home, "serve", "--port", "0", "--session", "nothing")
    assert done.returncode == 1
    assert "no such session" in done.stderr


def test_it_ends_when_told_to_though_somebody_waits_and_others_are_slow(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    before = "import daypack.serve.http.connections as served; served.HEADER_SECONDS = 0.3"
    with start_server(home, before=before, quiet=False) as server:
        place = urlsplit(server.url)
        with socket.create_connection((place.hostname, place.port), timeout=20) as slow, suppress(ConnectionError):
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            while not select.select([slow], [], [], 0.05)[0]:
                slow.sendall(b"A: b\r\n")  # something comes, but never the end
            assert slow.recv(100) == b""
        memory_id = server.call("create_memory", title="waiting").json()["memory_id"]
        with open_memory(home=home) as memories:
            position = Position(memories.backend.store.store_id, memory_id, 1000, 0)
            never = memories.backend.positions.write_token("local", position)
        waiting = Connection(server, None)
        waiting.begin("/api/await_consistency", {"memory_id": memory_id, "token": never, "timeout_ms": 600_000})
        assert server.call("get_user").status_code == 200
    waiting.close()


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'uvicorn' else find(name, *a)\n"
        "from daypack.cli.main import run; sys.exit(run(['serve', '--port', '0']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    assert "uvicorn is not installed" in done.stderr
    assert "pip install 'daypack[serve]'" in done.stderr


def test_what_it_prints_can_be_pasted_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    make_token(home, "ada", "--scope", "read")
    command = [sys.executable, "-m", "daypack", "serve", "--home", home, "--port", "0", "--sample", "--require-token"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or "daypack search sample" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], process.communicate()[1]
    said = "".join(lines)
    url = said.split(" at ")[1].split(" ")[0]
    assert httpx.get(f"{url}/health", trust_env=False).json() == {"status": "ok"}
    assert f"claude mcp add --transport http daypack {url}/mcp" in said
    assert f'[mcp_servers.daypack]\n  url = "{url}/mcp"\n  bearer_token_env_var = "DAYPACK_TOKEN"' in said
    assert f'"httpUrl": "{url}/mcp"' in said
    assert '"Authorization": "Bearer ${DAYPACK_TOKEN}"' in said
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert [line["event"] for line in read_log(err)] == ["server.started", "server.stopped"]
    again = run_daypack(home, "memory", "search", "Harbour festival (sample)", "爵士乐队")
    assert "上海的爵士乐队" in again.stdout
    assert "Build 1191 has the permit line" in run_daypack(home, "log", "sample").stdout


@pytest.mark.parametrize(
    ("soft", "hard", "granted", "allowed", "limit"),
    [
        (256, resource.RLIM_INFINITY, 10_240, 5_000, 5_512),
        (256, resource.RLIM_INFINITY, 10_240, 9_728, 10_240),  # macOS: no limit is shown, and this is the largest
        (20_000, resource.RLIM_INFINITY, 0, 19_488, 20_000),  # more than that stays as it is
        (256, resource.RLIM_INFINITY, 0, 20, 256),  # nothing is granted
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_grants(
    soft: int, hard: int, granted: int, allowed: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = [soft]

    def change(_: int, both: tuple[int, int]) -> None:
        if both[0] > granted:
            raise ValueError("current limit exceeds maximum limit")
        limits.append(both[0])

    def read(_: int) -> tuple[int, int]:
        return soft, hard

    monkeypatch.setattr(resource, "getrlimit", read)
    monkeypatch.setattr(resource, "setrlimit", change)
    assert allow_connections(5_000 if allowed == 5_000 else 100_000) == allowed
    assert limits[-1] == limit
