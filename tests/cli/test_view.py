"""`daypack view`, run as a process as a person does."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from memory_server import environment, run_daypack
from serve.page.pages import BROWSER, ask, enter, look, origin_of, start_view

import daypack


def without_browser() -> dict[str, str]:
    """Return an environment in which no browser is found, not even one for the terminal."""
    hidden = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "PATH")
    return {name: value for name, value in environment().items() if name not in hidden} | {"TERM": "xterm"}


def test_a_new_user_gets_the_page_of_an_empty_home(home: str) -> None:
    quiet = ("--slow-ms", "0")  # a busy machine is slow, and says so on standard error
    command = [sys.executable, "-m", "daypack", "view", "--no-open", "--home", home, *quiet]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None
    try:
        printed = [process.stdout.readline() for _ in range(4)]  # all: `communicate` does not return what is buffered
        assert "Ctrl-C" in printed[0]
        url = printed[2].strip()
        client = enter(url)
        assert client.get("/", headers=BROWSER).status_code == 200
        assert ask(client, "sessions")["sessions"] == []
        assert ask(client, "memories")["memories"] == []
        assert look(url).get("/health/ready").json() == {"status": "ok"}
        assert "daypack_requests_total" in look(url).get("/metrics").text
        assert look(url).post("/api/get_user", json={}).status_code == 404  # the tools are those of `daypack serve`
    finally:
        process.send_signal(2)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_session_is_named_as_in_other_commands_and_opened_first(home: str) -> None:
    for agent, name in (("default", "harbour plan"), ("codex", "other")):
        with daypack.open_session(name, agent=agent, home=home, durability="os") as session:
            session.append("user", "hello")
    for given, fragment in (("harb", "#/s/default/harbour%20plan"), ("codex/oth", "#/s/codex/other")):
        with start_view(home, given, "--no-open") as view:
            assert view.url.endswith(fragment)
            assert {row["session"] for row in ask(enter(view.url), "sessions")["sessions"]} == {"harbour plan", "other"}
    refused = run_daypack(home, "view", "nothing", "--no-open")
    assert refused.returncode == 1
    assert "no such session" in refused.stderr


def test_a_port_can_be_chosen_and_one_in_use_is_reported(home: str) -> None:
    with start_view(home, "--no-open") as view:
        port = origin_of(view.url).rpartition(":")[2]
        taken = run_daypack(home, "view", "--no-open", "--port", port)
    assert taken.returncode == 2
    assert "--port" in taken.stderr
    with start_view(home, "--no-open", "--port", port) as again:
        assert origin_of(again.url) == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_the_server_starts_ends_it(home: str, number: int) -> None:
    code = (
        "import os, sys; from uvicorn import Server; run = Server.run\n"
        f"def early(self, sockets=None): os.kill(os.getpid(), {int(number)}); run(self, sockets)\n"
        "Server.run = early\n"
        f"from daypack.cli.main import run as start; sys.exit(start(['view', '--no-open', '--home', {home!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env=environment(), timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_needs_no_mcp_and_does_not_import_it(home: str) -> None:
    code = (
        "import sys, threading, os, signal; from daypack.serve.http import running\n"
        "def run(app, listening, shares): print(sorted(name for name in sys.modules if name.startswith('mcp')))\n"
        "running.run = run\n"
        f"from daypack.cli.main import run; sys.exit(run(['view', '--no-open', '--home', {home!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment())
    assert done.stdout.rstrip().endswith("[]"), done.stderr


def test_without_the_extra_it_says_how_to_get_it(home: str) -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('starlette', 'mcp') else find(name, *a)\n"
        f"from daypack.cli.main import run; sys.exit(run(['view', '--no-open', '--home', {home!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 1
    assert "starlette is not installed" in done.stderr
    assert "pip install 'daypack[serve]'" in done.stderr


def test_the_browser_gets_the_address_and_may_take_its_time(home: str, tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    os.mkfifo(seen)
    browser.write_text(f"#!/bin/sh\necho noise; echo noise >&2\necho \"$1\" > '{seen}'\nexec sleep 60\n")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    with start_view(home, environ=environment() | {"BROWSER": os.fspath(browser)}) as view:
        assert seen.read_text(encoding="utf-8") == f"{view.url}\n"
        assert httpx.get(f"{origin_of(view.url)}/health", trust_env=False).status_code == 200
        code, log = view.stop()
    assert (code, log) == (0, [])


def test_without_a_browser_the_address_is_printed_all_the_same(home: str) -> None:
    with start_view(home, environ=without_browser()) as view:
        assert view.process.stderr is not None
        assert "open the address above yourself" in view.process.stderr.readline()
        assert enter(view.url).get("/page/data/start").status_code == 200


@pytest.mark.parametrize("arguments", [["--port", "x"], ["a", "b"]])
def test_wrong_arguments_are_refused(home: str, arguments: list[str]) -> None:
    assert run_daypack(home, "view", *arguments).returncode == 2
