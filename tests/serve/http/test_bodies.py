"""Hostile bodies, headers and callers against a server that runs: refused with the right status, and it runs on."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from memory_server import Server


@pytest.mark.parametrize("path", ["/api/get_user", "/mcp"])
def test_twenty_megabytes_are_refused_with_or_without_their_length(server: Server, path: str) -> None:
    kind = {"Content-Type": "application/json"}
    big = b'{"a":"' + b"x" * (20 << 20) + b'"}'

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(big), 1 << 20):
            yield big[at : at + (1 << 20)]

    with server.client() as client:
        assert client.post(path, content=big, headers=kind).status_code == 413
        assert client.post(path, content=pieces(), headers=kind).status_code == 413
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("path", ["/api/get_user", "/mcp"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"memory_id":NaN}',
        b'{"memory_id":Infinity}',
        b'{"limit":1e999}',
        b'{"memory_id":"a","memory_id":"b"}',
        b'{"memory_id":"\\ud800"}',
        b"{",
        b"",
        b"\xff\xfe{}",
    ],
    ids=lambda body: repr(body[:14]),
)
def test_hostile_json_is_refused_at_both_doors(server: Server, path: str, body: bytes) -> None:
    with server.client() as client:
        answered = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answered.status_code == 400
    assert "Traceback" not in answered.text


def say(server: Server, *lines: bytes) -> bytes:
    """Send bytes as they are and return all that comes back."""
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as line, suppress(ConnectionError):
        with suppress(OSError):  # it may be refused before all of it was sent
            line.sendall(b"\r\n".join(lines))
            line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65536), b""))
    return b""


@pytest.mark.parametrize(
    "lines",
    [
        [b"GET /health HTTP/1.1", b"", b""],
        [b"GET /health HTTP/1.1", b"Host: localhost", b"Host: evil.example", b"", b""],
        [b"GET /health HTTP/1.1", b"Host : localhost", b"", b""],
        [b"GET /health HTTP/1.1", b"Host: evil.example", b"X-Forwarded-Host: localhost", b"", b""],
        [b"GET http://localhost/health HTTP/1.1", b"Host: evil.example", b"", b""],
        [b"POST /api/get_user HTTP/1.1", b"Host: localhost", b"Content-Length: 2", b"Content-Length: 3", b"", b"{}"],
        [b"POST /api/get_user HTTP/1.1", b"Host: localhost", b"Content-Length: -1", b"", b""],
        [b"POST /api/get_user HTTP/1.1", b"Host: localhost", b"Content-Length: 0x2", b"", b"{}"],
        [b"POST /api/get_user HTTP/1.1", b"Host: localhost", b"Transfer-Encoding: gzip, chunked", b"", b"0", b"", b""],
        [b"GET /health HTTP/1.1", b"Host: localhost", b"A: " + b"x" * 100_000, b"", b""],
        [b"GET /health HTTP/1.1", b"Host: localhost", *[b"A%d: x" % at for at in range(20_000)], b"", b""],
        [b"GET /health HTTP/1.1", b"Host: localhost", b"A: b\x00c", b"", b""],
        [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"", b""],
        [b"PRI * HTTP/2.0", b"", b"SM", b"", b""],
    ],
    ids=lambda lines: repr(lines[1][:24]),
)
def test_headers_that_two_readers_may_read_differently_are_refused(server: Server, lines: list[bytes]) -> None:
    answered = say(server, *lines)
    # A refusal, or a connection that ended before all was sent.
    assert answered == b"" or answered.split(b" ", 2)[1] in (b"400", b"421", b"431")
    assert (answered == b"") <= (sum(map(len, lines)) > 64 << 10)


def test_a_request_hidden_behind_another_is_not_answered_for_it(server: Server) -> None:
    """A body that was announced twice, in two ways, would be one request for us and two for a proxy."""
    hidden = b"GET /api/memories HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answered = say(
        server,
        b"POST /api/get_user HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: %d" % (len(hidden) + 5),
        b"Transfer-Encoding: chunked",
        b"",
        b"0",
        b"",
        hidden,
    )
    assert answered.count(b"HTTP/1.1 ") == 1 or b"memory_id" not in answered


def test_a_request_from_a_page_elsewhere_is_forbidden_at_both_doors(server: Server) -> None:
    with server.client() as client:
        for path in ("/api/get_user", "/mcp"):
            assert client.post(path, json={}, headers={"Origin": "https://evil.example"}).status_code == 403
            assert client.post(path, json={}, headers={"Host": "evil.example"}).status_code == 421
            assert client.post(path, content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
            packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            assert client.post(path, content=b"{}", headers=packed).status_code == 415
            assert client.post(path, json={}, headers={"Authorization": "Bearer dp_wrong"}).status_code == 401


def test_slow_callers_keep_nobody_waiting(server: Server) -> None:
    place = urlsplit(server.url)
    slow = [socket.create_connection((place.hostname, place.port), timeout=20) for _ in range(40)]
    try:
        for at, line in enumerate(slow):
            if at % 2:
                line.sendall(b"POST /api/get_user HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
                line.sendall(b"Content-Length: 100\r\n\r\n{")
            else:
                line.sendall(b"POST /mcp HTT")
        assert server.call("get_user").status_code == 200
    finally:
        for line in slow:
            line.close()


def test_the_store_is_readable_by_its_owner_alone(server: Server) -> None:
    files = [path for path in Path(server.home).rglob("*") if path.is_file()]
    assert files
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in files if path.stat().st_mode & 0o077} == {}


def test_the_server_is_still_there(server: Server) -> None:
    assert server.call("get_user").status_code == 200
    assert server.process.poll() is None
