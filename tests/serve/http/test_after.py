"""The header Daypack-After: a call reads at least as far as the write of a token."""

import msgspec
import pytest
from memory_server import Server

from daypack.types.memory import Added


@pytest.fixture
def added(server: Server) -> Added:
    memory_id = server.call("create_memory", title="after").json()["memory_id"]
    return msgspec.convert(server.call("add_entry", memory_id=memory_id, raw_entry="one").json(), Added)


def test_a_call_with_the_token_of_a_write_is_answered(server: Server, added: Added) -> None:
    with server.client() as client:
        client.headers["Daypack-After"] = added.token
        answered = client.post("/api/list_entries", json={"memory_id": added.memory_id})
        assert (answered.status_code, answered.json()["count"]) == (200, 1)
        assert client.get("/api/memories").status_code == 200


@pytest.mark.parametrize("token", ["x", "AAAA" * 20])
def test_a_token_that_the_caller_did_not_get_is_refused(server: Server, added: Added, token: str) -> None:
    with server.client() as client:
        client.headers["Daypack-After"] = token
        for answered in (
            client.post("/api/list_entries", json={"memory_id": added.memory_id}),
            client.get("/api/memories"),
        ):
            assert answered.status_code == 400
            assert "Daypack-After" in answered.text
            assert "consistency token" in answered.text


def test_mcp_takes_the_header_too(server: Server, added: Added) -> None:
    params = {"name": "list_entries", "arguments": {"memory_id": added.memory_id}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with server.client() as client:
        client.headers["Accept"] = "application/json, text/event-stream"
        client.headers["MCP-Protocol-Version"] = "2025-06-18"
        results = list[dict[str, object]]()
        for token in (added.token, "x"):
            client.headers["Daypack-After"] = token
            answered = client.post("/mcp", json=request)
            assert answered.status_code == 200, answered.text
            results.append(answered.json()["result"])
    assert not results[0].get("isError")
    assert results[1].get("isError")
    assert "consistency token" in str(results[1]["content"])
