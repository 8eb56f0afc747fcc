"""Two real servers on one database: one limit, one audit log, one set of metrics."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import postgres_server
import psycopg
from memory_server import Server, environment, run_daypack, start_server
from serve.page.pages import BROWSER

from daypack.memory.tools import open_memory
from daypack.serve.page.access import cookie_name

pytestmark = postgres_server.needs_postgres


@contextmanager
def servers(home: Path, url: str, *options: str, quiet: bool = True) -> Generator[list[Server]]:
    """Two servers with homes of their own; `url` is the database, empty: they share files."""
    with ExitStack() as stack:
        homes = [home / "one", home / "two"] if url else [home, home]
        options = (*options, "--store", url) if url else options
        yield [stack.enter_context(start_server(str(at), *options, quiet=quiet)) for at in homes]


def hammer(servers: list[Server], ask: Callable[[httpx.Client], httpx.Response], seconds: float) -> tuple[float, float]:
    """Send requests to all servers for some time; return how many were not refused for their rate, and the time."""
    started = time.monotonic()

    def send(server: Server) -> int:
        passed = 0
        with server.client() as client:
            while time.monotonic() - started < seconds:
                answer = ask(client)
                assert answer.status_code in (200, 401, 429), answer.text
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) >= 1
                passed += answer.status_code != 429
        return passed

    with ThreadPoolExecutor(8) as pool:
        passed = sum(pool.map(send, servers * 4))
    return passed, time.monotonic() - started


def get_user(client: httpx.Client) -> httpx.Response:
    return client.post("/api/get_user", json={})


def guess(client: httpx.Client) -> httpx.Response:
    return client.post("/api/get_user", json={}, headers={"Authorization": "Bearer dp_wrong"})


def test_one_user_at_two_servers_has_one_limit(tmp_path: Path, database_url: str) -> None:
    with servers(tmp_path, database_url, "--rate", "120") as both:
        passed, seconds = hammer(both, get_user, 3)
    assert 20 <= passed <= 20 + 2 * seconds + 2  # the burst, the rate, and one for each server


def test_servers_on_files_have_a_limit_each(tmp_path: Path) -> None:
    with servers(tmp_path / "home", "", "--rate", "120") as both:
        passed, seconds = hammer(both, get_user, 2)
    assert 40 <= passed <= 2 * (20 + 2 * seconds)


def test_who_guesses_tokens_at_one_server_is_refused_at_the_other(tmp_path: Path, database_url: str) -> None:
    with servers(tmp_path, database_url, "--bad-tokens", "6") as (one, other):
        with one.client() as client:
            assert [guess(client).status_code for _ in range(3)] == [401, 429, 429]
        with other.client() as client:
            answers = [guess(client).status_code for _ in range(3)]
            assert answers[1:] == [429, 429]
            assert get_user(client).status_code == 200


def test_the_audit_log_of_both_is_one_and_the_command_reads_it(tmp_path: Path, database_url: str) -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        url = database_url.replace("//postgres@", "//postgres:s3cret@")
        return run_daypack(str(tmp_path / "third"), "audit-log", *arguments, "--store", url)

    assert "there is no audit log" in run("verify").stderr
    with servers(tmp_path, database_url) as (one, other):
        memory = one.call("create_memory", title="shared").json()["memory_id"]
        assert other.call("add_entry", memory_id=memory, raw_entry="The crane is number 7.").status_code == 200
        assert other.call("search_memories", memory_id=memory, query="crane").status_code == 200
        assert one.call("search_memories", memory_id="0" * 32, query="crane").status_code == 404
    assert not list(tmp_path.rglob("audit.jsonl"))
    told = [json.loads(line) for line in run("--json").stdout.splitlines()]
    assert [(line["seq"], line["tool"], line["result"]) for line in told] == [
        (1, "create_memory", "ok"), (2, "add_entry", "ok"), (3, "search_memories", "ok"),
        (4, "search_memories", "MemoryMissing"),
    ]  # fmt: skip
    assert {line["memory"] for line in told[:3]} == {memory}
    assert [json.loads(line)["seq"] for line in run("--json", "--memory", memory[:8]).stdout.splitlines()] == [1, 2, 3]
    assert len(run("--json", "--owner", "local").stdout.splitlines()) == 3
    assert "4 lines are as they were written" in run("verify").stderr
    cut = run("cut", "--before", told[2]["time"], "--to", str(tmp_path / "older.jsonl"), "--apply")
    assert "2 lines" in cut.stderr
    assert len((tmp_path / "older.jsonl").read_text().splitlines()) == 2
    assert [json.loads(line)["seq"] for line in run("--json").stdout.splitlines()] == [3, 4, 5]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("DELETE FROM daypack.audit WHERE seq = 4")
    damaged = run("verify")
    assert damaged.returncode != 0
    assert "number 5, expected 4" in damaged.stdout
    assert "s3cret" not in damaged.stderr + damaged.stdout


def test_a_write_is_refused_while_the_audit_log_cannot_be_written(tmp_path: Path, database_url: str) -> None:
    with servers(tmp_path, database_url, quiet=False) as (one, _), psycopg.connect(database_url) as connection:
        connection.autocommit = True
        memory = one.call("create_memory", title="kept").json()["memory_id"]
        connection.execute("REVOKE INSERT ON daypack.audit FROM daypack_app")
        assert one.call("get_user").status_code == 200  # its line waits
        assert one.call("add_entry", memory_id=memory, raw_entry="x").status_code == 507
        with one.client() as client:
            assert client.get("/health/ready").status_code == 503
        connection.execute("GRANT INSERT ON daypack.audit TO daypack_app")
        answers = [one.call("add_entry", memory_id=memory, raw_entry="x", client_key="y") for _ in range(3)]
        # On a busy machine a server may find no connection in time, and says when to try again.
        assert {answer.status_code for answer in answers} <= {200, 503}, [answer.text for answer in answers]
        assert answers[-1].status_code == 200, answers[-1].text


def read_metrics(server: Server) -> dict[str, float]:
    """Return the samples by name and labels, as the official parser reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    with server.client() as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    families: list[Any] = list(text_string_to_metric_families(answer.text))
    samples = [sample for family in families for sample in family.samples]
    return {f"{sample.name} {' '.join(sample.labels.values())}".strip(): sample.value for sample in samples}


def count_calls(found: dict[str, float]) -> float:
    return sum(value for name, value in found.items() if name.startswith("daypack_requests_total /api get_user"))


@contextmanager
def killed_server(home: Path, url: str) -> Generator[Server]:
    """A server that ends by SIGKILL at the end."""
    command = [sys.executable, "-m", "daypack", "serve", "--home", str(home), "--port", "0", "--json", "--store", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            yield Server(process, json.loads(process.stdout.readline()), str(home))
        finally:
            os.kill(process.pid, signal.SIGKILL)


def test_each_server_answers_with_the_metrics_of_all_and_a_kill_loses_none(tmp_path: Path, database_url: str) -> None:
    with start_server(str(tmp_path / "one"), "--store", database_url) as one:
        with killed_server(tmp_path / "two", database_url) as two:
            for _ in range(3):
                one.call("get_user")
            for _ in range(4):
                two.call("get_user")
            assert count_calls(read_metrics(two)) >= 4
            found = read_metrics(one)
            assert count_calls(found) == 7
            assert found["daypack_processes"] == 2
            assert [found[f"daypack_jobs {state}"] for state in ("due", "leased", "retrying", "dead")] == [0, 0, 0, 0]
        assert count_calls(read_metrics(one)) == 7
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("UPDATE daypack.processes SET seen = now() - interval '2 minutes'")
        assert count_calls(read_metrics(one)) == 7
        assert read_metrics(one)["daypack_processes"] == 1
        one.call("get_user")
    with start_server(str(tmp_path / "three"), "--store", database_url) as three:
        assert count_calls(read_metrics(three)) == 8
        assert read_metrics(three)["daypack_processes"] == 1


def test_a_server_on_files_has_metrics_of_its_own(tmp_path: Path) -> None:
    with servers(tmp_path / "home", "") as (one, other):
        one.call("get_user")
        assert count_calls(read_metrics(one)) == 1
        found = read_metrics(other)
        assert count_calls(found) == 0
        assert not [name for name in found if name.startswith(("daypack_processes", "daypack_jobs"))]


def test_a_home_with_files_never_loads_the_database_driver(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom daypack.memory.tools import open_memory\nfrom daypack.serve.shared.sharing import share\n"
        "from daypack.serve.http.limits import Shares\nfrom daypack.serve.observe.metrics import Metrics\n"
        "with open_memory(home=sys.argv[1]) as memories, share(memories.backend, Shares(), Metrics()):\n"
        "    memories.create_memory('x')\n"
        "print([name for name in sys.modules if name.startswith('psycopg')])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "[]\n"
    with open_memory(home=str(tmp_path)) as memories:
        assert memories.backend.server is None


def test_a_browser_that_entered_at_one_server_is_known_to_the_other(tmp_path: Path, database_url: str) -> None:
    with servers(tmp_path, database_url) as (one, other), one.client() as client, other.client() as elsewhere:
        token = str(one.told["page"]).partition("token=")[2]
        answer = client.post("/page/enter", json={"token": token}, headers=BROWSER)
        assert answer.status_code == 200, answer.text
        value = answer.headers["set-cookie"].partition(";")[0].partition("=")[2]
        name = cookie_name(int(str(other.told["port"])))
        start = elsewhere.get("/page/data/start", headers={**BROWSER, "Cookie": f"{name}={value}"})
        assert start.status_code == 200, start.text
