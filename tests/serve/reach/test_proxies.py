"""Headers that name the address of a caller: they count only from a trusted proxy."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from memory_server import Server, run_daypack, start_server
from serve.page.pages import BROWSER

from daypack.errors import BadInput
from daypack.serve.reach.proxies import Proxies

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"  # addresses that clients of this machine may use


def client_of(server: Server, source: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, transport=httpx.HTTPTransport(local_address=source), trust_env=False)


def guess(client: httpx.Client, forwarded: str) -> int:
    headers = {"Authorization": "Bearer wrong", "X-Forwarded-For": forwarded}
    return client.post("/api/get_user", json={}, headers=headers).status_code


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = str(tmp_path_factory.mktemp("proxied") / "home")
    with start_server(home, "--trust-proxy", PROXY, "--bad-tokens", "6") as server:
        yield server


def test_without_the_option_the_header_means_nothing(tmp_path: Path) -> None:
    with start_server(str(tmp_path / "home"), "--bad-tokens", "6") as server, client_of(server, PROXY) as client:
        assert [guess(client, f"203.0.113.{at}") for at in range(4)] == [401, 429, 429, 429]
        proto = {"X-Forwarded-Proto": "https"}
        described = client.get("/.well-known/oauth-protected-resource", headers=proto).json()
        assert described["resource"].startswith("http://127.0.0.1:")


def test_the_limit_counts_the_callers_of_a_trusted_proxy_one_by_one(server: Server) -> None:
    with client_of(server, PROXY) as proxy:
        assert [guess(proxy, f"203.0.113.{at}") for at in range(4)] == [401] * 4
        assert guess(proxy, "203.0.113.0") == 429
        # What a caller has written itself comes before its address.
        assert [guess(proxy, f"198.51.100.{at}, 203.0.113.77") for at in range(3)] == [401, 429, 429]


def test_only_the_trusted_peer_is_believed(server: Server) -> None:
    with client_of(server, STRANGER) as stranger:
        assert [guess(stranger, f"198.51.100.{at}") for at in range(3)] == [401, 429, 429]
        assert guess(stranger, f"198.51.100.9, {PROXY}") == 429


def test_the_scheme_of_a_trusted_proxy_makes_cookies_secure(server: Server) -> None:
    proto = {"X-Forwarded-Proto": "https", **BROWSER}
    with client_of(server, STRANGER) as stranger, client_of(server, PROXY) as proxy:
        described = [
            client.get("/.well-known/oauth-protected-resource", headers=proto).json()["resource"].partition(":")[0]
            for client in (stranger, proxy)
        ]
        assert described == ["http", "https"]
        assert "; Secure" in proxy.get(server.told["page"], headers=proto).headers["set-cookie"]


def scope(client: str, *forwarded: str, proto: str | None = None) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    headers += [(b"X-Forwarded-Proto", proto.encode())] if proto is not None else []
    return {"client": (client, 5000), "scheme": "http", "headers": headers}


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("10.0.0.7", ("203.0.113.1",), "203.0.113.1"),
        ("10.0.0.7", ("1.1.1.1, 203.0.113.1",), "203.0.113.1"),
        ("10.0.0.7", ("1.1.1.1", "203.0.113.1"), "203.0.113.1"),  # in two lines
        ("10.0.0.7", ("203.0.113.1, 10.1.2.3, 10.0.0.7",), "203.0.113.1"),  # through two proxies of ours
        ("10.0.0.7", ("10.1.2.3, 10.1.2.4",), "10.1.2.3"),  # all trusted: the first
        ("::ffff:10.0.0.7", ("203.0.113.1:4711",), "203.0.113.1"),
        ("10.0.0.7", ("[2001:db8::1]:4711",), "2001:db8::1"),
        ("10.0.0.7", ("203.0.113.1, unknown",), "10.0.0.7"),
        ("10.0.0.7", ("203.0.113.1, <script>, 10.1.2.3",), "10.1.2.3"),
        ("10.0.0.7", ("",), "10.0.0.7"),
        ("10.0.0.7", (), "10.0.0.7"),
        ("10.0.0.8", ("203.0.113.1",), "10.0.0.8"),
        ("", ("203.0.113.1",), ""),
    ],
)
def test_the_caller_is_the_last_address_that_is_no_trusted_proxy(
    peer: str, forwarded: tuple[str, ...], caller: str
) -> None:
    asked = scope(peer, *forwarded)
    Proxies(["10.0.0.7", "10.1.0.0/16"]).apply(asked)
    assert asked["client"][0] == caller


@pytest.mark.parametrize(("proto", "scheme"), [("https", "https"), ("HTTPS", "https"), ("http, https", "https")])
def test_the_scheme_is_that_of_the_nearest_proxy(proto: str, scheme: str) -> None:
    asked = scope("10.0.0.7", proto=proto)
    Proxies(["10.0.0.7"]).apply(asked)
    assert asked["scheme"] == scheme


@pytest.mark.parametrize("proto", ["", "javascript", "https://x", "https, "])
def test_another_scheme_is_not_taken_over(proto: str) -> None:
    asked = scope("10.0.0.7", proto=proto)
    Proxies(["10.0.0.7"]).apply(asked)
    assert asked["scheme"] == ("https" if proto == "https, " else "http")


def test_a_proxy_is_named_by_an_address(tmp_path: Path) -> None:
    for wrong in ("proxy.example", "10.0.0.0/40", "*"):
        with pytest.raises(BadInput, match="is no address"):
            Proxies([wrong])
    done = run_daypack(str(tmp_path / "home"), "serve", "--port", "0", "--trust-proxy", "*")
    assert done.returncode == 2
    assert "--trust-proxy takes the address" in done.stderr
