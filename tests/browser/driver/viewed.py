"""A running `daypack view` for tests, and pages that have entered it."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

from browser.driver.page import Page

SAMPLE = ("default", "sample")
PRINT_JOB = ("default", "sample-print-job")
RECORDED = ("claude-code", "sample-claude-code")


class Viewed:
    """A server that shows a home."""

    def __init__(self, home: str, address: str) -> None:
        self.home = home
        self.address = address  # with its one-time token
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(address))
        self._cookies: list[dict[str, Any]] = []

    def open(self, page: Page, *segments: object) -> None:
        """Open a view of the page: the token is used once, later pages get the cookie that it was exchanged for."""
        if not self._cookies:
            page.goto(self.address)
            page.see("header.topbar")
            self._cookies = page.ask("Network.getCookies", urls=[f"{self.origin}/page/"])["cookies"]
            assert self._cookies, "the token was not exchanged for a cookie"
        for cookie in self._cookies:
            kept = {name: cookie[name] for name in ("name", "value", "path", "httpOnly", "sameSite") if name in cookie}
            page.ask("Network.setCookie", url=f"{self.origin}/page/", **kept)
        page.goto(f"{self.origin}/#/" + "/".join(quote(str(segment), safe="") for segment in segments))
        page.wait_for("document.querySelector('header.topbar, main.enter, [role=alert]')")

    def session(self, page: Page, name: tuple[str, str] = SAMPLE, *segments: object) -> None:
        """Open a session of the home, or a part of it."""
        self.open(page, "s", *name, *segments)
        page.see("nav.sections, [role=alert]")

    def daypack(self, *arguments: str) -> Any:
        """Run a command on the home and return its JSON."""
        done = run_daypack(self.home, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Return the environment without daypack settings and without a local model."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("DAYPACK_")}
    return outside | {"DAYPACK_EMBEDDING_MODEL": "none", "DAYPACK_COMPACTION_MODEL": "none"}


def run_daypack(home: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    command = [sys.executable, "-m", "daypack", *arguments, "--home", home]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


@contextmanager
def start_view(home: str, options: Sequence[str] = ()) -> Generator[Viewed]:
    """Start the server of the page, and stop it at the end; its log must have no errors."""
    command = [sys.executable, "-m", "daypack", "view", "--no-open", "--json", "--home", home, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield Viewed(home, json.loads(line)["url"])
    finally:
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line for line in lines if line["level"] == "error"] == [], log
