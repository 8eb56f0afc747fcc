"""A server with TLS: which files it takes, and real clients that verify its certificate."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from memory_server import Server, environment, make_token, read_log, run_daypack, start_server
from serve.page.pages import BROWSER
from serve.reach.certificates import Certificate, make_certificate, openssl

from daypack.errors import BadInput, ServerUnreachable
from daypack.memory.tools import open_memory
from daypack.serve.reach.tls import open_tls


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls") / "own")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Server]:
    home = str(tmp_path_factory.mktemp("home") / "home")
    before = "import daypack.serve.http.connections as served; served.HEADER_SECONDS = 1.0"
    options = (*certificate.options, "--user", "ada", "--connections", "20")
    with start_server(home, *options, before=before) as server:
        yield server


def trusting(certificate: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate.certificate)


def test_clients_that_trust_the_certificate_are_served_and_others_are_not(
    server: Server, certificate: Certificate
) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    assert {str(server.told[name]).partition(":")[0] for name in ("url", "mcp", "page")} == {"https"}
    with httpx.Client(base_url=server.url, verify=trusting(certificate), trust_env=False) as client:
        for _ in range(3):  # on one connection
            assert client.post("/api/get_user", json={}).json()["user_id"] == "ada"
        text = "x" * 200_000
        assert len(client.post("/api/get_user", json={"x": text}).text) < 10_000  # read although it is refused
    with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as stranger:
        stranger.get(f"{server.url}/health")


def test_the_official_mcp_client_is_served(server: Server, certificate: Certificate) -> None:
    async def list_tools() -> list[str]:
        async with httpx2.AsyncClient(verify=trusting(certificate), trust_env=False, timeout=30) as http:
            transport = streamable_http_client(server.told["mcp"], http_client=http)
            async with Client(transport) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    assert "add_entry" in anyio.run(list_tools)


def test_our_own_client_trusts_what_the_system_trusts(
    server: Server, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(url=server.url) as memories, pytest.raises(ServerUnreachable, match=r"(?i)certificate"):
        memories.get_user()
    monkeypatch.setenv("SSL_CERT_FILE", certificate.certificate)
    with open_memory(url=server.url) as memories:
        memory_id = memories.create_memory("over TLS").memory_id
        added = memories.add_entry(memory_id, "it is encrypted", "a summary", client_key="k")
        assert memories.list_entries(memory_id).entries[0].entry_id == added.entry_id
    monkeypatch.setenv("DAYPACK_TOKEN", make_token(server.home, "bob"))
    with open_memory(url=server.url) as memories:
        assert memories.get_user().user_id == "bob"


def test_the_cookie_of_the_page_is_secure(server: Server, certificate: Certificate) -> None:
    with httpx.Client(verify=trusting(certificate), trust_env=False) as client:
        answer = client.get(server.told["page"], headers=BROWSER)
        cookie = SimpleCookie(answer.headers["set-cookie"])
        assert [morsel["secure"] for morsel in cookie.values()] == [True]
        assert client.get(f"{server.url}/page/data/start").status_code == 200


def test_plain_http_and_old_versions_of_tls_get_no_answer(server: Server, certificate: Certificate) -> None:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP" not in plain.recv(1000)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = trusting(certificate)
        context.minimum_version = context.maximum_version = version
        with httpx.Client(verify=context, trust_env=False) as client:
            assert client.get(f"{server.url}/health").status_code == 200
    old = trusting(certificate)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.deprecated_call():
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(httpx.ConnectError), httpx.Client(verify=old, trust_env=False) as client:
        client.get(f"{server.url}/health")


def test_callers_that_never_shake_hands_do_not_lock_out_others(server: Server, certificate: Certificate) -> None:
    place = urlsplit(server.url)
    silent = [socket.create_connection((place.hostname, place.port), timeout=20) for _ in range(60)]
    try:
        with httpx.Client(base_url=server.url, verify=trusting(certificate), trust_env=False) as client:
            assert client.get("/health").status_code == 200
            assert [caller.recv(10) for caller in silent] == [b""] * 60  # replaced, or late
            closed = client.get("/metrics").text
    finally:
        for caller in silent:
            caller.close()
    assert 'daypack_closed_connections_total{reason="too many"}' in closed


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--tls-cert", "{certificate}"], "--tls-cert needs --tls-key"),
        (["--tls-key", "{key}"], "--tls-key needs --tls-cert"),
        (["--tls-cert", "{folder}/none", "--tls-key", "{key}"], "no such file or directory [{folder}/none]"),
        (["--tls-cert", "{folder}", "--tls-key", "{key}"], "is a directory"),
        (["--tls-cert", "{folder}/pipe", "--tls-key", "{key}"], "not a plain file"),
        (
            ["--tls-cert", "{certificate}", "--tls-key", "{folder}/text"],
            "this is no private key in PEM form [{folder}/text]",
        ),
        (["--tls-cert", "{key}", "--tls-key", "{key}"], "this is no certificate in PEM form [{key}]"),
        (["--tls-cert", "{certificate}", "--tls-key", "{folder}/torn"], "the files cannot be used"),
        (["--tls-cert", "{certificate}", "--tls-key", "{folder}/other/key.pem"], "does not match the certificate"),
        (["--tls-cert", "{certificate}", "--tls-key", "{folder}/locked"], "the private key is encrypted"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    tmp_path: Path, certificate: Certificate, options: list[str], problem: str
) -> None:
    (tmp_path / "text").write_text("no key")
    (tmp_path / "torn").write_text("-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n")
    os.mkfifo(tmp_path / "pipe")
    if "other" in options[-1]:
        make_certificate(tmp_path / "other")
    openssl("pkey", "-in", certificate.key, "-aes256", "-passout", "pass:x", "-out", str(tmp_path / "locked"))
    named = [text.format(folder=tmp_path, **certificate._asdict()) for text in options]
    done = run_daypack(str(tmp_path / "home"), "serve", "--port", "0", *named)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem.format(folder=tmp_path, **certificate._asdict()) in done.stderr
    assert "→" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_a_key_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    made = make_certificate(tmp_path / "own")
    Path(made.key).chmod(0)
    with pytest.raises(BadInput, match="permission denied"):
        open_tls(made.certificate, made.key)


def test_doubtful_files_are_served_with_a_warning(tmp_path: Path) -> None:
    made = make_certificate(tmp_path / "old", days=-2)
    Path(made.key).chmod(0o644)
    command = [sys.executable, "-m", "daypack", "serve", "--home", str(tmp_path / "home"), "--port", "0", *made.options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    url = process.stdout.readline().partition(" at ")[2].partition(" ")[0]
    assert url.startswith("https://127.0.0.1:")
    assert httpx.get(f"{url}/health", verify=False, trust_env=False).status_code == 200
    process.terminate()
    warned = [line for line in read_log(process.communicate(timeout=30)[1]) if line["event"] == "server.tls"]
    assert [(line["level"], line["place"]) for line in warned] == [("warning", made.certificate), ("warning", made.key)]
    assert "expired" in warned[0]["problem"]
    assert "can read" in warned[1]["problem"]
    [soon] = open_tls(*make_certificate(tmp_path / "soon", days=5)).warnings
    assert "expires in" in soon.problem
    assert open_tls(*make_certificate(tmp_path / "fine")).warnings == ()
