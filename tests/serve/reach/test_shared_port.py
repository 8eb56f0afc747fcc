"""Several processes at one address."""

import socket
import sys
from pathlib import Path

import httpx
import pytest
from memory_server import Server, run_daypack, start_server

from daypack.errors import BadInput
from daypack.serve.http.address import listen

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is not shared")


def ask_who(server: Server) -> str:
    """Return the start time of the process that a new connection reaches."""
    text = httpx.get(f"{server.url}/metrics", trust_env=False).text
    return next(line for line in text.splitlines() if line.startswith("process_start_time_seconds "))


def test_connections_are_shared_and_the_others_go_on_when_one_ends(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with start_server(home, "--share-port") as first:
        port = str(first.told["port"])
        with start_server(home, "--share-port", "--port", port) as second:
            assert first.url == second.url
            assert len({ask_who(first) for _ in range(60)}) == 2
            refused = run_daypack(home, "serve", "--port", port)
            assert refused.returncode == 2
            assert "cannot listen" in refused.stderr
        assert len({ask_who(first) for _ in range(10)}) == 1
    with socket.create_server(("127.0.0.1", 0)) as alone:
        taken = run_daypack(home, "serve", "--share-port", "--port", str(alone.getsockname()[1]))
    assert taken.returncode == 2
    assert "started without --share-port" in taken.stderr


def test_a_system_that_cannot_share_a_port_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    with pytest.raises(BadInput, match="cannot share a port"):
        listen("127.0.0.1", 0, shared=True)
    listen("127.0.0.1", 0).close()
