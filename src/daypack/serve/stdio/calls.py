"""Calls that are being answered: cancelled, settled once, and told about while they last."""

import time
from collections.abc import Callable, Mapping
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

from daypack.serve.http.errors import describe
from daypack.serve.server_log import note
from daypack.serve.stdio import jsonrpc
from daypack.serve.stdio.jsonrpc import INTERNAL_ERROR, Fault, Id, Params

PULSE_SECONDS = 1.0

Reply = Callable[["bytes | None"], None]  # None: there is no answer


class Job(NamedTuple):
    """What is to be done for a request; whether it writes, or is so little that it is done at once."""

    work: Callable[[], Mapping[str, Any]]
    writes: bool = False
    at_once: bool = False


class Call:
    """One request on its way to its answer."""

    def __init__(self, request_id: Id, work: Callable[[], object], reply: Reply, token: Id | None) -> None:
        self.id = request_id
        self.token = token
        self.started: float | None = None
        self._work = work
        self._reply = reply
        self._lock = Lock()
        self._cancelled = False
        self._settled = False

    def run(self) -> None:
        """Do the work and answer, unless the client no longer wants it."""
        if self._cancelled:  # before it was begun: nothing is done at all
            self._settle(None)
            return
        self.started = time.monotonic()
        try:
            line = jsonrpc.write_result(self.id, self._work())
        except Fault as fault:
            line = jsonrpc.write_fault(self.id, fault)
        except Exception as error:  # the loop goes on whatever one call does
            note(f"request {self.id}", error)
            line = jsonrpc.write_fault(self.id, Fault(INTERNAL_ERROR, "Internal error", describe(error).message))
        self._settle(line)

    def cancel(self) -> None:
        """Have it answered by nothing."""
        with self._lock:
            self._cancelled = True

    def tell(self, send: Callable[[bytes], None]) -> None:
        """Send how long it has been going on, as long as it does."""
        with self._lock:
            if self.started is None or self._settled or self._cancelled:
                return
            passed = time.monotonic() - self.started
            params: Params = {"progressToken": self.token, "progress": passed, "message": f"{passed:.0f} s so far"}
            send(jsonrpc.write_notification("notifications/progress", params))

    def _settle(self, line: bytes | None) -> None:
        with self._lock:
            self._settled = True
            self._reply(None if self._cancelled else line)


class Calls:
    """All calls that are not answered yet."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._changed = Condition()
        self._open: list[Call] = []
        self._pulse: Thread | None = None

    def add(self, call: Call) -> None:
        """Keep a call until it is removed."""
        with self._changed:
            self._open.append(call)
            self._changed.notify_all()
        if call.token is not None and self._pulse is None:
            self._pulse = Thread(target=self._beat, daemon=True)
            self._pulse.start()

    def remove(self, call: Call) -> None:
        """Forget a call."""
        with self._changed:
            self._open.remove(call)

    def cancel(self, request_id: object) -> None:
        """Cancel what has this id. Some clients write a number as text when they cancel."""
        if isinstance(request_id, (int, str)):
            with self._changed:
                found = [call for call in self._open if str(call.id) == str(request_id)]
            for call in found:
                call.cancel()

    def _beat(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._told)
            time.sleep(PULSE_SECONDS)
            with self._changed:
                told = self._told()
            for call in told:
                call.tell(self._send)

    def _told(self) -> list[Call]:
        return [call for call in self._open if call.token is not None]


class Batch:
    """The answers to an array of messages: they go out together, when the last is there."""

    def __init__(self, size: int, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._missing = size
        self._lines: list[bytes] = []
        self._lock = Lock()

    def reply(self, line: bytes | None) -> None:
        """Take one answer."""
        with self._lock:
            if line is not None:
                self._lines.append(line)
            self._missing -= 1
            whole = not self._missing and bool(self._lines)
        if whole:
            self._send(b"[" + b",".join(self._lines) + b"]")
