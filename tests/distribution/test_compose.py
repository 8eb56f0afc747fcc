"""The compose file: checked against the specification of compose files, and its commands against those of daypack."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from docs.example_runs import ROOT
from memory_server import run_daypack
from ruamel.yaml import YAML

from daypack.cli import serve
from daypack.cli.parser import Parser
from tools.postgres import Server

FILE = ROOT / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    read: Any = YAML(typ="safe")
    return read.load(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return compose["services"]


def test_it_follows_the_specification() -> None:
    program = Path(sys.executable).parent / "check-jsonschema"
    command = [program, "--builtin-schema", "vendor.compose-spec", FILE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_servers_are_started_with_options_that_daypack_has(services: dict[str, Any]) -> None:
    servers = [service for name, service in services.items() if name.startswith("server-")]
    assert len(servers) == 2
    for server in servers:
        name, *options = server["command"]
        parser = Parser(prog="daypack serve")
        serve.configure(parser)
        parsed = parser.parse(options)
        assert (name, parsed.host) == ("serve", "0.0.0.0")
        assert parsed.trust_proxy == [services["proxy"]["networks"]["inside"]["ipv4_address"]]
        assert server["environment"]["DAYPACK_STORE_URL"] == "postgresql://daypack@database/daypack"


@postgres_server.needs_postgres
def test_the_account_of_the_servers_is_no_superuser_and_has_all_rights_that_daypack_needs(
    compose: dict[str, Any], home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (script,) = compose["services"]["database"]["configs"]
    assert script["target"].startswith("/docker-entrypoint-initdb.d/")
    monkeypatch.setenv("DATABASE_PASSWORD", "'s3cret'")
    with Server.start(tmp_path / "server") as server:
        (server.folder / "account.sql").write_text(compose["configs"][script["source"]]["content"], encoding="utf-8")
        server.run("psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", "account.sql")
        url = server.url("daypack", "daypack")
        assert run_daypack(home, "memory", "new", "Harbour", "--store", url).returncode == 0
        assert run_daypack(home, "append", "talk", "hello", "--store", url).returncode == 0
        checked = run_daypack(home, "serve", "--check", "--port", "0", "--store", url)
        assert (checked.returncode, "superuser" in checked.stdout) == (0, False)
        checked = run_daypack(home, "serve", "--check", "--port", "0", "--store", server.url("daypack"))
        assert "warning: database account: postgres is a superuser" in checked.stdout


def test_only_the_proxy_is_reachable_and_only_from_this_machine(services: dict[str, Any]) -> None:
    assert {name: service.get("ports") for name, service in services.items() if service.get("ports")} == {
        "proxy": ["127.0.0.1:8420:8420"]
    }


def test_no_image_floats(services: dict[str, Any]) -> None:
    images = [service["image"] for service in services.values() if "build" not in service]
    assert images
    assert all(image.rpartition(":")[2][:1].isdigit() for image in images)
