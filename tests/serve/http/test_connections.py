"""Connections that are held open, slow, half closed or malformed, and a fair client meanwhile."""

import json
import select
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest
from campaigns import Campaign
from memory_server import Server, make_token, read_log, start_server
from tenants_server import Connection

from daypack.memory.tools import open_memory
from daypack.serve.http.wire.framing import check_head

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
CLOSING = HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"


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


# A process of its own, so that it never waits for the fair client. It holds what the server lets it hold.
FLOOD = """
import random, select, socket, sys
from collections import deque
host, port, size, *kinds = sys.argv[1:]
beginnings = [bytes.fromhex(kind) for kind in kinds]
held, opened = deque(), 0
while not select.select([sys.stdin], [], [], 0)[0]:
    line = socket.create_connection((host, int(port)), timeout=60)
    held.append(line)
    try:
        line.sendall(beginnings[opened % len(beginnings)])
        if opened % 7 == 0:
            line.shutdown(socket.SHUT_WR)
        random.choice(held).sendall(b"x")  # one more byte does not make a connection young
    except OSError:
        pass
    if len(held) > 400:
        held.popleft().close()
    opened += 1
    if opened == int(size):
        print("opened", flush=True)
"""


@contextmanager
def flooding(server: Server, size: int) -> Generator[IO[str]]:
    """Open connections until the end; what is returned can be read once there were `size`."""
    place = urlsplit(server.url)
    kinds = [beginning.hex() for beginning in BEGINNINGS.values()]
    command = [sys.executable, "-c", FLOOD, str(place.hostname), str(place.port), str(size), *kinds]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout
    finally:
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_every_request_of_a_fair_client_is_served_while_others_flood_the_server(
    tmp_path: Path, campaign: Campaign
) -> None:
    size = campaign.size("held connections", 4000, least=400)
    served = 0
    token = make_token(str(tmp_path / "home"), "ada")
    anew = CLOSING.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)
    with counted(tmp_path, "--connections", "100", "--require-token") as (server, counts):
        keeping = Connection(server, token)
        with flooding(server, size // 2) as one, flooding(server, size // 2) as other:
            while served < size // 10 or len(select.select([one, other], [], [], 0)[0]) < 2:
                assert keeping.api("get_user", {})[0] == 200
                status, _, _ = exchange(server, anew, "127.0.0.2")  # the flood is at another address
                assert status == 200
                served += 2
        keeping.close()
    assert counts["closed"]["too many"] >= size // 4
    assert counts["refused"].keys() <= {"malformed"}  # the bytes that were sent too many


def test_what_was_not_sent_in_time_is_closed_and_counted(tmp_path: Path) -> None:
    soon = "import daypack.serve.http.connections as c; c.HEADER_SECONDS = 0.2\n"
    soon += "import daypack.serve.http.running as s; s.KEEP_ALIVE_SECONDS = 0.2\n"
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


def exchange(server: Server, request: bytes, source: str = "127.0.0.1") -> tuple[int, dict[str, Any], dict[str, str]]:
    """Send bytes; return the status, the JSON and the headers of the first answer, and read to the end."""
    with dial(server, source) as line:
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
        (b"Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding"),
        (b"X: y\nContent-Length: 2\r\n\r\n{}", "LF alone"),
        (b"Content-Length: 2\n\r\n{}", "LF alone"),
        (b"Content-Length: 2\r\n\n{}", "LF alone"),
        (b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", "malformed"),
    ],
)
def test_ambiguous_framing_is_refused_with_json_and_closed(server: Server, framing: bytes, problem: str) -> None:
    following = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    status, body, headers = exchange(server, HEAD + framing + following)
    assert (status, headers["connection"], headers["content-type"]) == (400, "close", "application/json")
    assert body["error"]["code"] == "BadInput"
    assert problem in body["error"]["message"]
    assert "one Content-Length" in body["error"]["hint"]
    assert len(headers["x-request-id"]) == 16


def test_what_is_not_http_1_is_refused_logged_and_never_quoted(tmp_path: Path) -> None:
    secret = "dp_NeverQuoted4711"
    with start_server(str(tmp_path / "home")) as server:
        requests = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /health HTTP/1.2\r\nHost: localhost\r\n\r\n",
            b"GET /health\r\n\r\n",
            b"\x16\x03\x01\x00\xc8\x01\x00\x00" + secret.encode(),  # TLS
            HEAD + b"Authorization: Bearer " + secret.encode() + b"\x00\r\nContent-Length: 2\r\n\r\n{}",
        ]
        ids: dict[str, int] = {}
        for request in requests:
            status, body, headers = exchange(server, request)
            assert (status, body["error"]["code"]) == (400, "BadInput")
            assert secret not in str(body)
            ids[headers["x-request-id"]] = status
        with server.client() as client:
            metrics = client.get("/metrics").text
        server.process.terminate()
        log = server.process.stderr.read() if server.process.stderr else ""
    assert 'daypack_limited_requests_total{limit="malformed"} 5' in metrics
    assert {line["request"]: line["status"] for line in read_log(log) if line["event"] == "refused"} == ids
    assert secret not in log


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
    check_head(HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n")
    check_head(HEAD + b"Content-Length: 2\r\n\r\nContent-Length: 2\r\n\r\n")


def test_requests_sent_ahead_are_answered(server: Server) -> None:
    with dial(server) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        answers = b""
        while answers.count(b"HTTP/1.1 200 ") < 50:
            part = line.recv(10_000)
            assert part
            answers += part


def ask_and_never_read(server: Server, memory_id: str) -> socket.socket:
    """Ask for more than the buffers of a connection take."""
    place = urlsplit(server.url)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect((place.hostname, place.port))
    body = json.dumps({"memory_id": memory_id, "limit": 50}).encode()
    request = HEAD.replace(b"get_user", b"list_entries") + b"Content-Length: %d\r\n\r\n" % len(body) + body
    line.sendall(request * 40)
    return line


@pytest.fixture
def large_memory(tmp_path: Path) -> str:
    """The id of a memory whose newest entries are 400 KB."""
    with open_memory(home=str(tmp_path / "home")) as memories:
        memory_id = memories.create_memory("large").memory_id
        for number in range(50):
            memories.add_entry(memory_id, f"{number} " + "word " * 1600, "long")
    return memory_id


def test_a_caller_that_does_not_read_its_answers_is_closed(tmp_path: Path, large_memory: str) -> None:
    soon = "import daypack.serve.http.connections as c; c.UNREAD_SECONDS = 0.5\n"
    with counted(tmp_path, before=soon) as (server, counts):
        lines = [ask_and_never_read(server, large_memory) for _ in range(20)]
        with server.client() as client:
            for _ in range(10_000):
                if 'closed_connections_total{reason="unread"} 20' in client.get("/metrics").text:
                    break
        for line in lines:
            line.close()
    assert counts["closed"] == {"unread": 20}


def test_a_connection_that_is_not_read_is_replaced_by_a_new_one(tmp_path: Path, large_memory: str) -> None:
    with counted(tmp_path, "--connections", "20") as (server, counts):
        lines = [ask_and_never_read(server, large_memory) for _ in range(20)]
        for _ in range(20):
            assert exchange(server, CLOSING, "127.0.0.2")[0] == 200
        for line in lines:
            line.close()
    assert counts["closed"]["too many"] >= 10


def test_connections_beyond_the_limit_of_open_files_are_said_at_the_start(tmp_path: Path) -> None:
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (900, 900))\n"
    with start_server(str(tmp_path / "home"), "--connections", "5000", before=few) as server:
        assert ask_anew(server) == 200
        server.process.terminate()
        log = server.process.stderr.read() if server.process.stderr else ""
    (line,) = [line for line in read_log(log) if line["event"] == "server.connections"]
    assert (line["level"], line["asked"], line["allowed"], line["files"]) == ("warning", 5000, 388, 900)
    assert "5,512 open files" in line["hint"]
