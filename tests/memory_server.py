"""A memory server in a process of its own, on a free port, and clients that call it."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx


class Server(NamedTuple):
    """One that runs. `told` is what it said when it started."""

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
    """Start `daypack serve` and end it again. `before` is Python that is run first; `quiet`: it logs nothing."""
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
    assert not quiet or log == ""  # nothing was worth a line: no traceback, no complaint


def environment() -> dict[str, str]:
    """The environment without settings, and without a model that happens to be here."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
    return outside | {"DAYPACK_EMBEDDING_MODEL": "none"}


def make_token(home: str, user: str, *options: str) -> str:
    """Make a token with the command and return its secret."""
    done = run_daypack(home, "token", "new", user, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
