"""Drives Chromium over its debugging pipe: JSON messages with a NUL after each, no port and no library."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from tools.browser import Browser as Program

Parameters = Mapping[str, Any]
Listener = Callable[[str, dict[str, Any]], None]

ANSWER_SECONDS = 60.0
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--mute-audio",
)
# The pipe is at the descriptors 3 and 4 of the browser: another process moves it there, as fork in threads may hang.
_MOVE = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.closerange(5, 256)
os.execv(sys.argv[3], sys.argv[3:])
"""


class ProtocolError(Exception):
    """Chromium refused a command."""


class Chromium:
    """A running browser."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process = process
        self._write, self._read = write, read
        self._number = 0
        self._buffer = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}
        self._listeners: dict[str, Listener] = {}

    def listen(self, session: str, listener: Listener) -> None:
        """Call back with the method and parameters of the events of one page."""
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        self._listeners.pop(session, None)

    def send(self, method: str, parameters: Parameters | None = None, session: str = "") -> int:
        """Send a command without waiting for its answer, and return its number."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": dict(parameters or {})}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        return self._number

    def ask(
        self, method: str, parameters: Parameters | None = None, session: str = "", seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        """Send a command and return its result; events are passed on meanwhile."""
        number = self.send(method, parameters, session)
        deadline = time.monotonic() + seconds
        while number not in self._answers:
            if not self.receive(deadline - time.monotonic()):
                raise TimeoutError(f"no answer to {method}")
        answer = self._answers.pop(number)
        if error := answer.get("error"):
            raise ProtocolError(f"{method}: {error.get('message')} {error.get('data', '')}".strip())
        return answer["result"]

    def receive(self, seconds: float) -> bool:
        """Handle what arrives first within the time; return False if nothing did."""
        if not self._handle_buffered():
            ready = select.select([self._read], [], [], max(0.0, seconds))[0]
            if not ready:
                return False
            data = os.read(self._read, 1 << 20)
            if not data:
                raise ConnectionError("the browser ended")
            self._buffer += data
            self._handle_buffered()
        return True

    def _handle_buffered(self) -> bool:
        *whole, rest = self._buffer.split(b"\0")
        self._buffer = rest
        for data in whole:
            message = json.loads(data)
            if "id" in message:
                self._answers[message["id"]] = message
            elif listener := self._listeners.get(message.get("sessionId", "")):
                listener(message["method"], message.get("params", {}))
        return bool(whole)

    def close(self) -> None:
        """End the browser, and its processes if they do not end with it."""
        with contextlib.suppress(OSError):
            self.send("Browser.close")
        for end in (self._write, self._read):
            os.close(end)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def start_chromium(program: Program) -> Generator[Chromium]:
    """Run a browser with an empty profile."""
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        commands, answers = os.pipe(), os.pipe()
        flags = [*_FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        moved = [sys.executable, "-S", "-c", _MOVE, str(commands[0]), str(answers[1])]
        process = subprocess.Popen(
            [*moved, program.program, *flags, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile, **program.variables},
            pass_fds=(commands[0], answers[1]),
            start_new_session=True,
        )
        os.close(commands[0])
        os.close(answers[1])
        chromium = Chromium(process, commands[1], answers[0])
        try:
            chromium.ask("Browser.getVersion")
            yield chromium
        finally:
            chromium.close()
