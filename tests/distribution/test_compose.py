"""The compose file: checked against the specification of compose files, and its commands against those of daypack."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.example_runs import ROOT
from ruamel.yaml import YAML

from daypack.cli import serve
from daypack.cli.parser import Parser

FILE = ROOT / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    read: Any = YAML(typ="safe")
    return read.load(FILE.read_text(encoding="utf-8"))["services"]


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
        assert server["environment"]["DAYPACK_STORE_URL"].startswith("postgresql://postgres@database/")


def test_only_the_proxy_is_reachable_and_only_from_this_machine(services: dict[str, Any]) -> None:
    assert {name: service.get("ports") for name, service in services.items() if service.get("ports")} == {
        "proxy": ["127.0.0.1:8420:8420"]
    }


def test_no_image_floats(services: dict[str, Any]) -> None:
    images = [service["image"] for service in services.values() if "build" not in service]
    assert images
    assert all(image.rpartition(":")[2][:1].isdigit() for image in images)
