"""A server whose database does not answer: it says so soon, in its own words, and serves again when it is back."""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import postgres_server
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from memory_server import Server, environment, read_log, run_daypack
from tenants_server import TOOL_NAMES, text_of

from daypack.errors import AccessDenied, StorageFailed
from daypack.postgres.address import shown
from daypack.postgres.database import Database
from daypack.upkeep.store_doctor.database import examine_database
from tools import postgres

pytestmark = postgres_server.needs_postgres
NOWHERE = "postgresql://ada:secret@/memories?host=/nowhere"
_IMPATIENT = "import daypack.cli.serve as serve; serve.DATABASE_SECONDS = 1.0"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[postgres.Server]:
    """A server of its own, to stop and start."""
    with postgres.Server.start(tmp_path / "postgres", {"fsync": "off"}) as server:
        yield server


@contextmanager
def serving(home: Path, url: str, log: Path) -> Generator[Server]:
    code = f"{_IMPATIENT}\nimport sys; from daypack.cli.main import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "serve", "--home", str(home), "--port", "0", "--json", "--store", url]
    with log.open("w") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment())
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Server(process, json.loads(line), str(home))
    finally:
        process.terminate()
        process.communicate(timeout=40)


def refused(answer: httpx.Response) -> Any:
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["retry-after"]) > 0
    return answer.json()


def test_calls_are_refused_until_the_database_is_back(tmp_path: Path, database: postgres.Server) -> None:
    url, home, log = database.url(), tmp_path / "home", tmp_path / "log"
    token = run_daypack(str(home), "token", "new", "ada", "--store", url).stdout.strip()
    with serving(home, url, log) as server, server.client() as client, server.client(token) as ada:
        assert server.told["store"] == shown(url)
        assert ada.post("/api/get_user", json={}).status_code == 200
        database.down()
        said = [refused(ada.post("/api/get_user", json={})), refused(client.post("/api/get_user", json={}))]
        assert [each["error"]["code"] for each in said] == ["StorageFailed", "StorageFailed"]
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert refused(ada.post("/mcp", json=rpc))["error"]["data"]["code"] == "StorageFailed"
        assert refused(client.get("/metrics"))["error"]["code"] in ("StorageFailed", "NotReady")
        for _ in range(2):
            assert client.get("/health/ready").status_code == 503
            time.sleep(1.1)  # the second one examines the store again
        assert client.get("/health/live").status_code == 200
        database.up()
        until = time.monotonic() + 60
        while client.get("/health/ready").status_code != 200 and time.monotonic() < until:
            time.sleep(0.2)
        assert ada.post("/api/get_user", json={}).status_code == 200
    lines = read_log(log.read_text())
    events = [line["event"] for line in lines]
    assert (events.count("store.unreachable"), events.count("store.reachable")) == (1, 1)
    assert not [line for line in lines if str(line.get("library", "")).startswith("psycopg")]
    assert next(line for line in lines if line["event"] == "server.started")["store"] == shown(url)


@pytest.mark.parametrize("progress", [False, True])
def test_a_client_of_mcp_gets_a_tool_error_while_the_database_is_away(
    tmp_path: Path, database: postgres.Server, *, progress: bool
) -> None:
    """Calls without a token pass the gate: only the tool finds out."""
    memory_id, arguments = "0" * 32, {"add_entry": {"raw_entry": "The ferry leaves at nine."}}
    arguments |= {"put_context": {"content": "# Harbour"}, "search_memories": {"query": "ferry"}}

    async def call_all(url: str) -> list[CallToolResult]:
        async with (
            httpx2.AsyncClient(timeout=60, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.call_tool("get_user", {})
            database.down()
            return [await _call(client, tool, arguments.get(tool, {})) for tool in TOOL_NAMES]

    async def _call(client: Client, tool: str, given: dict[str, Any]) -> CallToolResult:
        about = {"create_memory": {"title": "Harbour"}, "get_user": {}}.get(tool, {"memory_id": memory_id})
        return await client.call_tool(tool, about | given, progress_callback=_ignore if progress else None)

    with serving(tmp_path / "home", database.url(), tmp_path / "log") as server:
        answers = anyio.run(call_all, server.told["mcp"])
    assert {answer.is_error for answer in answers} == {True}
    assert {text_of(answer).partition(";")[0] for answer in answers} == {"the server cannot use its database now"}
    assert all("GET /health/ready" in text_of(answer) for answer in answers)


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Progress of a call, which is of no interest."""


@pytest.mark.parametrize("problem", ["nobody listens", "unknown account"])
def test_a_server_does_not_start_without_its_database(tmp_path: Path, problem: str) -> None:
    url = NOWHERE if problem == "nobody listens" else postgres_server.running_server().url(user="unknown")
    done = run_daypack(str(tmp_path), "serve", "--port", "0", "--store", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert shown(url) in done.stderr
    assert "secret" not in done.stderr


def test_a_database_that_does_not_answer_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="No such file or directory"):
        examine_database(Database(NOWHERE, patience=0))
    unknown = postgres_server.running_server().url(user="unknown")
    with pytest.raises((AccessDenied, StorageFailed), match="unknown"):
        examine_database(Database(unknown))
    done = run_daypack(str(tmp_path), "doctor", "--store", unknown)
    assert (done.returncode, "damage" in done.stdout + done.stderr) == (1, False)
