"""Connections that are held open, slow, half closed or malformed, and a fair client meanwhile."""

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from campaigns import Campaign
from memory_server import Server, start_server
from tenants_server import Connection

from daypack.serve.http.connections import find_fault

# Writes the counts at the end of the server; a file limit as most systems have it.
COUNTED = """
import atexit, json, resource
import daypack.serve.http.limits as limits
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
usages, init = [], limits.Usage.__init__
limits.Usage.__init__ = lambda self: (init(self), usages.append(self))[0]
def write():
    with open({path!r}, "w") as file:
        json.dump([usages[-1].refused, usages[-1].closed], file)
atexit.register(write)
"""
HEAD = b"POST /api/get_user HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BEGINNINGS = {
    "idle": b"",
    "slow headers": HEAD,
    "slow body": HEAD + b"Content-Length: 100\r\n\r\n{",
    "slow chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "half closed": HEAD,
    "answered": HEAD + b"Content-Length: 2\r\n\r\n{}",
}


@contextmanager
def counted(folder: Path, *options: str, before: str = "") -> Generator[tuple[Server, dict[str, dict[str, int]]]]:
    """Start a server; its counts are filled in at the end."""
    path, counts = folder / "counts.json", dict[str, dict[str, int]]()
    with start_server(str(folder / "home"), *options, before=COUNTED.format(path=str(path)) + before) as server:
        yield server, counts
    counts["refused"], counts["closed"] = json.loads(path.read_text())


def dial(server: Server, source: str = "127.0.0.1") -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=60, source_address=(source, 0))


def begin(server: Server, kind: str) -> socket.socket:
    held = dial(server)
    held.sendall(BEGINNINGS[kind])
    if kind == "half closed":
        held.shutdown(socket.SHUT_WR)
    return held


def ask_anew(server: Server) -> int:
    line = Connection(server, None)
    status = line.api("get_user", {})[0]
    line.close()
    return status


@pytest.mark.requirement("S2-T0")
def test_a_fair_client_is_served_beside_a_thousand_that_only_hold_connections(
    tmp_path: Path, campaign: Campaign
) -> None:
    size = campaign.size("held connections", 1000, least=100)
    room = max(20, size // 2)
    kinds, held, served = list(BEGINNINGS), list[socket.socket](), 0
    with counted(tmp_path, "--connections", str(room)) as (server, counts):
        keeping = Connection(server, None)
        for number in range(size):
            held.append(begin(server, kinds[number % len(kinds)]))
            if number % 5 == 0:
                assert ask_anew(server) == 200
                assert keeping.api("get_user", {})[0] == 200
                served += 2
        for number in range(0, size, 3):  # one more byte does not make a connection young
            with suppress(OSError):
                held[number].sendall(b"x")
            if number % 15 == 0:
                assert ask_anew(server) == 200
                served += 1
        assert keeping.api("get_user", {})[0] == 200
        keeping.close()
        for connection in held:
            connection.close()
    assert served >= size * 2 // 5
    half_closed = size // len(kinds) + 1
    assert counts["closed"]["too many"] >= size - room - half_closed
    assert counts["refused"] == {}


def test_what_was_not_sent_in_time_is_closed_and_counted(tmp_path: Path) -> None:
    soon = "import daypack.serve.http.connections as c; c.HEADER_SECONDS = 0.2\n"
    soon += "import daypack.serve.http.server as s; s.KEEP_ALIVE_SECONDS = 0.2\n"
    with counted(tmp_path, before=soon) as (server, counts):
        for kind in ("idle", "slow headers", "half closed"):
            with begin(server, kind) as held:
                assert held.recv(100) == b""
        with begin(server, "answered") as held:
            answer = b""
            while part := held.recv(10_000):
                answer += part
            assert answer.startswith(b"HTTP/1.1 200 ")
    assert counts["closed"] == {"slow headers": 2, "idle": 1}


def test_an_address_or_user_has_at_most_half_of_the_connections(tmp_path: Path) -> None:
    with counted(tmp_path, "--connections", "20") as (server, counts):
        other = dial(server, "127.0.0.2")  # the oldest of all, and of another address
        held = [dial(server) for _ in range(19)]
        assert ask_anew(server) == 200
        other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert other.recv(100).startswith(b"HTTP/1.1 200 ")
        for connection in (other, *held):
            connection.close()
    assert counts["closed"] == {"too many": 10}


def exchange(server: Server, request: bytes) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Send bytes; return the status, the JSON and the headers of the first answer, and read to the end."""
    with dial(server) as line:
        line.sendall(request)
        answer = b""
        with suppress(ConnectionResetError):
            while part := line.recv(10_000):
                answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in lines)}
    assert int(headers["content-length"]) == len(body)  # and no second answer
    return int(first.split(" ")[1]), json.loads(body), headers


@pytest.mark.parametrize(
    ("framing", "problem"),
    [
        (b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "both Content-Length"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", "both Content-Length"),
        (b"transfer-encoding: CHUNKED\r\ncontent-LENGTH: 0\r\n\r\n0\r\n\r\n", "both Content-Length"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "more than one Content-Length"),
        (b"Content-Length: 2, 2\r\n\r\n{}", "more than one Content-Length"),
        (b"Content-Length: 2\r\nX-Long: one\r\n  two\r\n\r\n{}", "continues on the next line"),
        (b"Content-Length:\r\n 2\r\n\r\n{}", "continues on the next line"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"Content-Length : 2\r\n\r\n{}", "malformed"),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "malformed"),
    ],
)
def test_ambiguous_framing_is_refused_with_json_and_closed(server: Server, framing: bytes, problem: str) -> None:
    following = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    status, body, headers = exchange(server, HEAD + framing + following)
    assert (status, headers["connection"], headers["content-type"]) == (400, "close", "application/json")
    assert body["error"]["code"] == "BadInput"
    assert problem in body["error"]["message"]


def test_framing_is_also_checked_in_a_pipelined_request(server: Server) -> None:
    first = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with dial(server) as line:
        line.sendall(first + HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
        answer = b""
        while part := line.recv(10_000):
            answer += part
    assert answer.count(b"HTTP/1.1 200 ") == 1
    assert answer.count(b"HTTP/1.1 400 ") == 1


def test_long_headers_and_http_1_0_with_chunks_are_refused_as_documented(server: Server) -> None:
    status, body, _ = exchange(server, HEAD.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert (status, body["error"]["code"]) == (400, "BadInput")
    status, body, _ = exchange(server, HEAD + b"A: " + b"x" * 66_000)
    assert (status, body["error"]["code"]) == (431, "TooLong")


def test_headers_that_are_incomplete_have_no_fault_yet() -> None:
    assert find_fault(HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n") == ""
    assert find_fault(HEAD + b"Content-Length: 2\r\n\r\nContent-Length: 2\r\n\r\n") == ""


def test_a_disconnect_is_noticed_though_another_request_was_sent_ahead(server: Server) -> None:
    place = urlsplit(server.url)
    line = HTTPConnection(place.hostname or "", place.port, timeout=60)
    line.request("GET", "/health")
    assert line.getresponse().read()
    with dial(server) as other:
        other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        answers = b""
        while answers.count(b"HTTP/1.1 200 ") < 50:
            part = other.recv(10_000)
            assert part
            answers += part
    line.close()
