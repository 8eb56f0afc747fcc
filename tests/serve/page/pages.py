"""Servers with a page, and browsers that look at it, as httpx clients with cookies."""

import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from memory_server import environment

BROWSER = {
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-Mode": "navigate",
}
OWN = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def look(url: str, **headers: str) -> httpx.Client:
    """Return a browser that has opened no page yet."""
    closing = httpx.Limits(max_keepalive_connections=0)  # every answer ends its connection, so nothing stays open
    return httpx.Client(base_url=origin_of(url), headers=OWN | headers, timeout=30, trust_env=False, limits=closing)


def enter(url: str) -> httpx.Client:
    """Return a browser that has opened an address with a one-time token."""
    client = look(url)
    answer = client.get(url.partition("#")[0], headers=BROWSER)
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/"
    assert client.cookies
    return client


def ask(client: httpx.Client, view: str, **arguments: object) -> Any:
    answer = client.get(f"/page/data/{view}", params={name: str(value) for name, value in arguments.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


class View(NamedTuple):
    """`daypack view` as a process; `url` has the one-time token."""

    process: "subprocess.Popen[str]"
    url: str

    def stop(self) -> tuple[int, list[dict[str, Any]]]:
        """End it as Ctrl-C does; return its exit code and its log."""
        self.process.send_signal(2)
        _, log = self.process.communicate(timeout=30)
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


@contextmanager
def start_view(home: str, *arguments: str, environ: Mapping[str, str] | None = None) -> Generator[View]:
    command = [sys.executable, "-m", "daypack", "view", *arguments, "--home", home, "--json", "--slow-ms", "0"]
    own = environ if environ is not None else environment()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield View(process, json.loads(line)["url"])
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=30)
