"""`daypack serve --check`: what serving needs, examined without serving."""

import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from memory_server import make_token, run_daypack
from serve.reach.certificates import make_certificate

from daypack.errors import DaypackError
from daypack.history.home import find_home
from daypack.memory.tools import open_memory
from daypack.postgres.migrations import UPGRADE_LOCK
from daypack.serve.checks import (
    CHECKS,
    Finding,
    Plan,
    check_audit_log,
    check_database,
    check_embedding_model,
    check_open_files,
    check_store,
    check_tokens,
    run_checks,
)
from daypack.serve.http.address import Policy

NAMES = [check.__name__.removeprefix("check_").replace("_", " ") for check in CHECKS]


def check(home: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the findings by check: the last of each."""
    done = run_daypack(str(home), "serve", "--check", "--json", "--port", "0", *options)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["ready"] == (done.returncode == 0)
    return done.returncode, {finding["check"]: finding for finding in told["findings"]}


def test_a_home_that_can_be_served_has_no_problem_and_stays_as_it_is(tmp_path: Path) -> None:
    code, found = check(tmp_path / "new")
    assert (code, list(found)) == (0, NAMES)
    assert {finding["state"] for finding in found.values()} == {"ok"}
    assert not (tmp_path / "new").exists()
    home = tmp_path / "home"
    token = make_token(str(home), "ada")
    before = sorted(str(path) for path in home.rglob("*"))
    code, found = check(home, "--require-token")
    assert (code, {finding["state"] for finding in found.values()}) == (0, {"ok"})
    assert found["tokens"]["text"] == "1 valid"
    assert token not in str(found)
    assert sorted(str(path) for path in home.rglob("*") if not path.name.endswith(("-wal", "-shm"))) == before


def test_each_problem_is_named_with_what_to_do(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_token(str(home), "ada", "--days", "1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, found = check(home, "--port", port, "--tls-cert", str(tmp_path / "none"), "--tls-key", "none")
    assert code == 1
    wrong = {name: finding for name, finding in found.items() if finding["state"] == "problem"}
    assert list(wrong) == ["address", "tls"]
    assert port in wrong["address"]["text"]
    assert str(tmp_path / "none") in wrong["tls"]["text"]
    assert all(finding["hint"] for finding in wrong.values())


def test_settings_and_memories_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    home = tmp_path / "home"
    place = find_home(str(home), None)
    Path(place.folder).mkdir(parents=True)
    Path(place.config).write_text("[memory\n")
    code, found = check(home)
    assert (code, found["settings"]["state"]) == (1, "problem")
    assert place.config in found["settings"]["text"]
    Path(place.config).unlink()
    Path(place.memory).mkdir()
    Path(place.store).write_bytes(b"not a database" * 1000)
    code, found = check(home)
    assert (code, found["store"]["state"]) == (1, "problem")
    assert (tmp_path / "home").exists()


def test_a_missing_token_memory_session_or_model_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    assert check(home, "--require-token")[1]["tokens"]["state"] == "problem"
    with open_memory(home=str(home)) as memories:
        memories.create_memory("plans")
    assert check(home, "--memory", "plans")[0] == 0
    code, found = check(home, "--memory", "others", "--session", "none")
    assert (code, found["store"]["state"], found["session"]["state"]) == (1, "problem", "problem")
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "openai:http://127.0.0.1:9/v1#x")
    plan = Plan(find_home(str(home), None), lambda: open_memory(home=str(home)), Policy(), "127.0.0.1", 0)
    [model] = run_checks(plan, [check_embedding_model])
    assert (model.check, model.state) == ("embedding model", "problem")


def test_warnings_do_not_fail(tmp_path: Path) -> None:
    made = make_certificate(tmp_path / "old", days=-2)
    code, found = check(tmp_path / "home", *made.options)
    assert (code, found["tls"]["state"]) == (0, "warning")
    assert "expired" in found["tls"]["text"]


def test_too_few_open_files_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: int) -> tuple[int, int]:
        return 256, 600

    monkeypatch.setattr(resource, "getrlimit", read)
    home = str(tmp_path / "home")
    plan = Plan(find_home(home, None), lambda: open_memory(home=home), Policy(), "127.0.0.1", 0)
    [found] = run_checks(plan, [check_open_files])
    assert (found.state, found.text) == ("warning", "at most 600: room for 88 of 500 connections")


def test_a_check_of_another_part_is_a_function_that_yields_or_raises(tmp_path: Path) -> None:
    def check_replica(plan: Plan) -> Iterator[Finding]:
        yield Finding("replica", "warning", f"{plan.host} is late", "wait")
        raise DaypackError("it does not answer", place="db.example", hint="start it")

    home = str(tmp_path / "home")
    plan = Plan(find_home(home, None), lambda: open_memory(home=home), Policy(), "127.0.0.1", 0)
    late, failed = run_checks(plan, [check_replica])
    assert late == Finding("replica", "warning", "127.0.0.1 is late", "wait")
    assert failed == Finding("replica", "problem", "db.example: it does not answer", "start it")


def test_the_text_has_one_line_for_each_finding_and_a_sum(tmp_path: Path) -> None:
    done = run_daypack(str(tmp_path / "home"), "serve", "--check", "--port", "0", "--require-token")
    lines = done.stdout.splitlines()
    assert lines[0] == "ok: packages: mcp, starlette, uvicorn are installed"
    at = lines.index("problem: tokens: callers need a token, and none exists")
    assert lines[at + 1] == "  → create one with `daypack token new USER`"
    assert (lines[-1], done.returncode) == ("1 problem", 1)


def _examine_store(tmp_path: Path) -> list[Finding]:
    home = str(tmp_path / "home")
    plan = Plan(find_home(home, None), lambda: open_memory(home=home), Policy(), "127.0.0.1", 0)
    return list(run_checks(plan, [check_store, check_database, check_audit_log, check_tokens]))


def test_a_database_that_does_not_answer_is_named_once_and_the_check_does_not_point_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", "postgresql://ada@127.0.0.1:1/memories")
    [found] = _examine_store(tmp_path)
    assert (found.check, found.state) == ("store", "problem")
    assert "Connection refused" in found.text
    assert found.hint == "check that the server runs and that the address is right"


def test_a_schema_that_another_process_upgrades_is_named_as_such(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (UPGRADE_LOCK,))
        [found] = _examine_store(tmp_path)
    assert found.text.endswith("another process is upgrading the schema")
    assert "problem" not in {finding.state for finding in _examine_store(tmp_path)}
