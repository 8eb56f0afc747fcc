"""The server as an OAuth resource, read with the functions of the official MCP client."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    handle_protected_resource_response,
)
from mcp.shared.auth import ProtectedResourceMetadata
from memory_server import Server, make_token, run_daypack, start_server

LOGIN = "https://login.example/tenant"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = str(tmp_path_factory.mktemp("oauth") / "home")
    make_token(home, "ada", "--scope", "read")
    with start_server(home, "--require-token", "--authorization-server", LOGIN) as server:
        yield server


def ask(url: str, token: str = "", **headers: str) -> httpx2.Response:
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(trust_env=False, headers=headers) as client:
        return client.get(url) if "well-known" in url else client.post(url, json={})


def read_metadata(response: httpx2.Response) -> ProtectedResourceMetadata | None:
    async def read() -> ProtectedResourceMetadata | None:
        return await handle_protected_resource_response(response)

    return anyio.run(read)


def test_the_official_client_finds_the_metadata_from_a_refusal(server: Server) -> None:
    refused = ask(server.told["mcp"])
    assert refused.status_code == 401
    named = extract_resource_metadata_from_www_auth(refused)
    addresses = build_protected_resource_metadata_discovery_urls(named, server.told["mcp"])
    assert addresses[0] == addresses[1]  # the one that the refusal names is the one that the RFC derives
    for address in addresses:  # without a token
        metadata = read_metadata(ask(address))
        assert metadata is not None
        assert str(metadata.resource) == server.told["mcp"]
        assert [str(issuer) for issuer in metadata.authorization_servers] == [LOGIN]
        assert metadata.scopes_supported == ["read", "write"]
        assert metadata.bearer_methods_supported == ["header"]
        assert metadata.resource_name == "daypack"


def test_a_refusal_says_what_is_wrong_with_the_token(server: Server) -> None:
    assert extract_field_from_www_auth(ask(server.told["mcp"]), "error") is None
    for path in ("mcp", "api/get_user", "api/memories"):
        refused = ask(f"{server.url}/{path}", "dp_wrong")
        assert (refused.status_code, extract_field_from_www_auth(refused, "error")) == (401, "invalid_token")


def test_a_read_only_token_learns_which_scope_a_write_needs(server: Server) -> None:
    reader = make_token(server.home, "ada", "--scope", "read")
    refused = ask(f"{server.url}/api/create_memory", reader)
    assert refused.status_code == 403
    assert extract_field_from_www_auth(refused, "error") == "insufficient_scope"
    assert extract_scope_from_www_auth(refused) == "write"
    assert extract_resource_metadata_from_www_auth(refused)
    assert "www-authenticate" not in ask(f"{server.url}/api/get_user", reader).headers


def test_the_public_address_replaces_that_of_the_request(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    refused = run_daypack(home, "serve", "--port", "0", "--public-url", "https://memory.example/")
    assert "no token exists" in refused.stderr  # others can reach it
    make_token(home, "ada")
    with start_server(home, "--public-url", "https://memory.example/") as server:
        assert server.told["public_url"] == "https://memory.example"
        described = ask(f"{server.url}/.well-known/oauth-protected-resource/mcp", host="memory.example").json()
        assert described["resource"] == "https://memory.example/mcp"
        assert "authorization_servers" not in described
        challenge = ask(server.told["mcp"]).headers["www-authenticate"]
        well_known = "https://memory.example/.well-known/oauth-protected-resource/mcp"
        assert challenge == f'Bearer resource_metadata="{well_known}"'
        assert ask(f"{server.url}/.well-known/oauth-protected-resource", host="evil.example").status_code == 421


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--public-url", "memory.example"),
        ("--public-url", "https://memory.example/path"),
        ("--public-url", "http://memory.example"),
        ("--public-url", 'https://memory.example"'),
        ("--public-url", "ftp://127.0.0.1"),
        ("--public-url", "https://[::1"),
        ("--authorization-server", "http://login.example"),
        ("--authorization-server", "https://ada:secret@login.example"),
        ("--authorization-server", "https://login.example?x"),
        ("--authorization-server", ""),
    ],
)
def test_an_address_that_clients_could_not_use_is_refused(tmp_path: Path, option: str, value: str) -> None:
    done = run_daypack(str(tmp_path / "home"), "serve", "--port", "0", option, value)
    assert done.returncode == 2
    assert option in done.stderr
