"""A memory server as a subprocess on a free port, and clients that call it."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx


class Server(NamedTuple):
    """A running server; `told` is the JSON it printed at the start."""

    process: "subprocess.Popen[str]"
    told: dict[str, Any]
    home: str

    @property
    def url(self) -> str:
        return self.told["url"]

    def client(self, token: str | None = None) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=False)

    def call(self, tool: str, token: str | None = None, /, **arguments: Any) -> httpx.Response:
        with self.client(token) as client:
            return client.post(f"/api/{tool}", json=arguments)


def run_daypack(home: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    command = [sys.executable, "-m", "daypack", *args, "--home", home]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


@contextmanager
def start_server(home: str, *options: str, before: str = "", quiet: bool = True) -> Generator[Server]:
    """Start `daypack serve`, stop it at the end; `before` is Python to run first, `quiet`: its log has no errors."""
    code = f"{before}\nimport sys; from daypack.cli.main import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "serve", "--home", home, "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield Server(process, json.loads(line), home)
    finally:
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert not quiet or find_errors(log) == []


def read_log(log: str) -> list[dict[str, Any]]:
    """Return the lines of a server's log; fails at a line that is not JSON, such as a traceback."""
    return [json.loads(line) for line in log.splitlines()]


def find_errors(log: str) -> list[dict[str, Any]]:
    """Return the lines of a log that report an error."""
    return [line for line in read_log(log) if line["level"] == "error"]


def environment() -> dict[str, str]:
    """Return the environment without daypack settings and without a local model."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
    return outside | {"DAYPACK_EMBEDDING_MODEL": "none"}


def make_token(home: str, user: str, *options: str) -> str:
    """Make a token with the command and return its secret."""
    done = run_daypack(home, "token", "new", user, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
