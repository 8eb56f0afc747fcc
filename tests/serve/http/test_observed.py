"""What a server says about its requests: ids, log lines, audit lines, metrics; and never contents."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from memory_server import Server, make_token, read_log, run_daypack, start_server
from serve.observe.test_metrics import parse, value

MCP = {"Accept": "application/json, text/event-stream"}


def stop(server: Server) -> list[dict[str, Any]]:
    """End a server and return its log."""
    server.process.terminate()
    _, err = server.process.communicate(timeout=30)
    return read_log(err)


def audit(home: str, *options: str) -> list[dict[str, Any]]:
    done = run_daypack(home, "audit-log", "--json", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def get_metrics(server: Server, token: str | None = None) -> httpx.Response:
    with server.client(token) as client:
        return client.get("/metrics")


def rpc(name: str, number: object = 7, /, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_a_request_id_joins_response_log_and_audit_over_both_doors(home: str) -> None:
    with start_server(home, "--user", "ada", "--log-level", "debug", quiet=False) as server, server.client() as client:
        made = client.post("/api/create_memory", json={"title": "x"}, headers={"X-Request-Id": "api-1"})
        memory_id = made.json()["memory_id"]
        assert made.headers["x-request-id"] == "api-1"
        called = client.post(
            "/mcp", json=rpc("get_memory", memory_id=memory_id), headers=MCP | {"X-Request-Id": "mcp:1"}
        )
        assert called.headers["x-request-id"] == "mcp:1"
        for bad in ("dp_secret", "a b", "x" * 65, '"', "é"):
            answer = client.get("/health", headers=[(b"x-request-id", bad.encode())])
            assert len(bytes.fromhex(answer.headers["x-request-id"])) == 8
        lines = {line.get("request"): line for line in stop(server)}
    told = lines["api-1"]
    assert told.pop("time")
    assert told.pop("ms") >= 0
    assert told == {
        "level": "debug", "event": "request", "request": "api-1", "door": "http", "client": "127.0.0.1",
        "route": "/api", "user": "ada", "tool": "create_memory", "status": 200,
    }  # fmt: skip
    assert (lines["mcp:1"]["rpc"], lines["mcp:1"]["tool"], lines["mcp:1"]["route"]) == ("7", "get_memory", "/mcp")
    [written] = audit(home, "--request", "api-1")
    assert (written["action"], written["memory"], written["user"], written["door"]) == (
        "write",
        memory_id,
        "ada",
        "http",
    )
    [read] = audit(home, "--request", "mcp:1")
    assert (read["action"], read["tool"], read["memory"]) == ("read", "get_memory", memory_id)


def test_who_read_and_wrote_which_entries_is_audited_with_the_token_and_refusals(home: str) -> None:
    ada, bob = make_token(home, "ada"), make_token(home, "bob")
    ids = {
        token["user"]: token["token_id"] for token in json.loads(run_daypack(home, "token", "list", "--json").stdout)
    }
    with start_server(home, "--require-token") as server:
        memory_id = server.call("create_memory", ada, title="x").json()["memory_id"]
        entry = server.call("add_entry", ada, memory_id=memory_id, raw_entry="tea at five").json()["entry_id"]
        server.call("put_context", ada, memory_id=memory_id, content="# Tea")
        assert server.call("list_entries", ada, memory_id=memory_id).status_code == 200
        assert server.call("search_memories", ada, memory_id=memory_id, query="tea").json()["count"] == 1
        assert server.call("get_context", bob, memory_id=memory_id).status_code == 404
        with server.client(bob) as client:
            client.post("/mcp", json=rpc("add_entry", memory_id=memory_id, raw_entry="x"), headers=MCP)
            client.get("/api/memories")
    told = audit(home, "--memory", memory_id)
    assert [(line["user"], line["action"], line["tool"], line["result"]) for line in told] == [
        ("ada", "write", "create_memory", "ok"),
        ("ada", "write", "add_entry", "ok"),
        ("ada", "write", "put_context", "ok"),
        ("ada", "read", "list_entries", "ok"),
        ("ada", "read", "search_memories", "ok"),
        ("bob", "read", "get_context", "MemoryMissing"),
        ("bob", "write", "add_entry", "MemoryMissing"),
    ]
    assert [line.get("entries") for line in told] == [None, [entry], None, [entry], [entry], None, None]
    assert told[2]["version"] == 2
    assert {line["user"]: line["token"] for line in told} == ids
    tokens = [line for line in audit(home, "--action", "token.new") if line["result"] == "ok"]
    assert {line["user"]: line["target"] for line in tokens} == ids
    assert {line["door"] for line in tokens} == {"cli"}


def test_attempts_that_are_refused_before_a_tool_runs_are_audited_and_bounded(home: str) -> None:
    ada, reader = make_token(home, "ada"), make_token(home, "ada", "--scope", "read")
    with start_server(home, "--require-token", "--rate", "600") as server:
        memory_id = server.call("create_memory", ada, title="x").json()["memory_id"]
        asked = {"memory_id": memory_id, "raw_entry": "x"}
        assert server.call("add_entry", reader, **asked).status_code == 403
        assert server.call("add_entry", ada, **asked, nonsense=1).status_code == 400
        with server.client(reader) as client:
            client.post("/mcp", json=rpc("add_entry", **asked), headers=MCP)
        with server.client(ada) as client:
            client.post("/mcp", json=rpc("get_context", memory_id=memory_id, nonsense=1), headers=MCP)
            answers = [client.post("/api/get_user", json={}).status_code for _ in range(300)]
        assert answers.count(429) > 100
    lines = [line for line in audit(home, "--user", "ada") if line["result"] not in ("ok", "started")]
    told = [(line["action"], line["tool"], line["result"], line.get("memory")) for line in lines]
    assert told[:4] == [
        ("write", "add_entry", "AccessDenied", memory_id),
        ("write", "add_entry", "BadInput", memory_id),
        ("write", "add_entry", "AccessDenied", memory_id),
        ("read", "get_context", "BadInput", memory_id),
    ]
    assert told[4:] == [("read", "get_user", "RateLimited", None)] * 60
    assert all(line["token"] and line["request"] for line in lines)


CANARIES = ("canary-title", "canary-entry", "canary-query", "canary-document", "canary-author", "canary-tool")


def test_no_line_and_no_metric_has_contents_queries_titles_or_tokens(home: str) -> None:
    token = make_token(home, "ada", "--name", "canary-title")
    with start_server(home, "--require-token", "--user", "ada", "--log-level", "debug", quiet=False) as server:
        with server.client(token) as client:
            memory_id = client.post("/api/create_memory", json={"title": "canary-title"}).json()["memory_id"]
            more = {"memory_id": memory_id, "author": "canary-author", "client_key": "canary-title"}
            client.post("/api/add_entry", json={"raw_entry": "canary-entry", **more})
            client.post("/api/add_entry", json={"raw_entry": "other", **more})  # KeyConflict
            client.post("/api/put_context", json={"memory_id": memory_id, "content": "canary-document"})
            client.post("/api/search_memories", json={"memory_id": memory_id, "query": "canary-query"})
            client.post("/api/search_memories", json={"memory_id": "canary-title", "query": "canary-query"})
            client.post("/api/canary-tool", json={})
            client.post("/mcp", json=rpc("canary-tool"), headers=MCP)
            client.post("/mcp", json=rpc("get_memory", memory_id="canary-title"), headers=MCP)
            client.post("/mcp", json=rpc("get_memory", "canary title", memory_id=memory_id), headers=MCP)
            client.get("/canary-title", params={"q": "canary-query"})
            client.post("/api/get_user", content=b'{"canary-entry": ')
            metrics = client.get("/metrics").text
        with server.client("dp_canary-title") as client:
            assert client.get("/api/memories").status_code == 401
        told = json.dumps(stop(server))
    written = "".join(path.read_text() for path in Path(home).glob("home/*/audit/*"))
    for text in (told, metrics, written):
        assert len(text) > 500
        assert [canary for canary in (*CANARIES, token, token[3:20]) if canary in text] == []


def test_failed_authentication_is_logged_counted_and_does_not_flood(home: str) -> None:
    token = make_token(home, "ada")
    with start_server(home, "--require-token", "--user", "ada", quiet=False) as server:
        for number in range(40):
            with server.client(f"dp_{number}") as client:
                assert client.get("/api/memories").status_code in (401, 429)
        with server.client(token) as client:
            families = parse(client.get("/metrics").text)
        lines = [line for line in stop(server) if line["event"] in ("authentication.failed", "refused")]
    assert value(families, "daypack_failed_authentications_total") >= 5
    assert 5 <= len(lines) < 40
    assert {line["level"] for line in lines} == {"warning"}
    assert lines[0]["client"] == "127.0.0.1"
    assert sum(line.get("suppressed", 1) for line in lines) == 40


def test_a_slow_call_and_a_damaged_store_are_said(home: str) -> None:
    before = (
        "import time; from daypack.memory import tools; get = tools.Memories._get_user\n"
        "tools.Memories._get_user = lambda self, request: (time.sleep(0.05), get(self, request))[1]"
    )
    with start_server(home, "--slow-ms", "20", before=before, quiet=False) as server, server.client() as client:
        assert client.post("/api/get_user", json={}).status_code == 200
        store = next(Path(home).glob("home/*/memory/store.sqlite"))
        store.rename(store.with_suffix(".away"))
        store.write_bytes(b"not a database" * 1000)
        for companion in ("-wal", "-shm"):
            Path(f"{store}{companion}").unlink(missing_ok=True)
        assert client.post("/api/get_user", json={}).status_code == 500
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert ready.json() == {"error": {"code": "NotReady", "message": "the store cannot be read and written"}}
        assert client.get("/health/live").json() == {"status": "ok"}
        families = parse(client.get("/metrics").text)
        lines = stop(server)
    assert value(families, "daypack_damage_total") >= 1
    assert value(families, "daypack_slow_requests_total") >= 1
    slow = next(line for line in lines if line["event"] == "slow")
    assert (slow["tool"], slow["level"]) == ("get_user", "warning")
    assert slow["ms"] > 20
    damage = next(line for line in lines if line["event"] == "damage")
    assert (damage["error"], damage["operation"], damage["level"]) == ("Damaged", "get_user", "error")
    assert damage["place"].endswith("store.sqlite")
    assert damage["at"][0].startswith("files/database.py:")


def test_metrics_are_for_the_owner_of_a_server_that_others_reach(home: str) -> None:
    ada, bob = make_token(home, "ada", "--scope", "read"), make_token(home, "bob")
    with start_server(home, "--require-token", "--user", "ada") as server:
        assert [get_metrics(server, token).status_code for token in (None, bob, ada)] == [401, 403, 200]
        with server.client() as client:
            assert client.get("/health/ready").json() == {"status": "ok"}
            assert client.get("/health/live").json() == {"status": "ok"}


def test_the_log_is_text_when_asked_and_closing_it_harms_no_request(home: str) -> None:
    with start_server(home, "--log-format", "text", "--log-level", "debug", quiet=False) as server:
        assert server.process.stderr is not None
        assert " INFO server.started address=127.0.0.1:" in server.process.stderr.readline()
        server.process.stderr.close()
        for _ in range(20):
            assert server.call("get_user").status_code == 200
        server.process.stderr = None


def test_a_caller_that_hangs_up_is_reported_and_forgotten(home: str) -> None:
    with start_server(home, "--log-level", "debug", quiet=False) as server:
        place = urlsplit(server.url)
        with socket.create_connection((place.hostname, place.port), timeout=20) as gone:
            gone.sendall(b"POST /api/get_user HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
            gone.sendall(b"X-Request-Id: gone\r\nContent-Length: 10\r\n\r\n{")
        for _ in range(200):
            if server.call("get_user").status_code == 200:
                families = parse(get_metrics(server).text)
                if any(sample.labels["status"] == "none" for sample in families["daypack_requests"].samples):
                    break
        lines = stop(server)
    assert [line["status"] for line in lines if line.get("request") == "gone"] == [0]


@pytest.mark.parametrize("level", ["verbose", ""])
def test_a_level_that_does_not_exist_is_refused(home: str, level: str) -> None:
    done = run_daypack(home, "serve", "--log-level", level)
    assert done.returncode == 2
    assert "--log-level" in done.stderr
