"""Running calls: each is answered once, can be cancelled, and reports progress."""

import time
from collections.abc import Callable
from threading import Condition, Lock, Thread

from daypack.serve.mcp import jsonrpc
from daypack.serve.mcp.jsonrpc import INTERNAL_ERROR, Id, Params, RpcError
from daypack.serve.observe.request_facts import RequestFacts, current
from daypack.serve.problems import report

PROGRESS_SECONDS = 1.0

Reply = Callable[["bytes | None"], None]  # None: no response is sent


class Call:
    """One request that is being answered."""

    def __init__(self, request_id: Id, work: Callable[[], object], reply: Reply, facts: RequestFacts) -> None:
        self.id = request_id
        self.facts = facts
        self.token: Id | None = None  # for progress
        self.started: float | None = None
        self._work = work
        self._reply = reply
        self._lock = Lock()
        self._cancelled = False
        self._settled = False

    def run(self) -> None:
        """Do the work and reply, unless the call was cancelled."""
        if self._cancelled:  # cancelled before it started: do nothing at all
            self._settle(None)
            return
        self.started = time.monotonic()
        current.set(self.facts)
        try:
            line = jsonrpc.write_result(self.id, self._work())
        except RpcError as error:
            self.facts.error, self.facts.status = "RpcError", 400
            line = jsonrpc.write_error(self.id, error)
        except Exception as error:  # a failing call must not end the server
            problem = report(self.facts.tool, error)
            line = jsonrpc.write_error(self.id, RpcError(INTERNAL_ERROR, "Internal error", problem.message))
        self._settle(line)

    def cancel(self) -> None:
        """Suppress the reply."""
        with self._lock:
            self._cancelled = True

    def report_progress(self, send: Callable[[bytes], None]) -> None:
        """Send the elapsed time if the call is still running."""
        with self._lock:
            if self.started is None or self._settled or self._cancelled:
                return
            elapsed = time.monotonic() - self.started
            params: Params = {"progressToken": self.token, "progress": elapsed, "message": f"{elapsed:.0f} s elapsed"}
            send(jsonrpc.write_notification("notifications/progress", params))

    def _settle(self, line: bytes | None) -> None:
        with self._lock:
            self._settled = True
            self._reply(None if self._cancelled else line)


class Calls:
    """The calls that are not answered yet."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._changed = Condition()
        self._open: list[Call] = []
        self._reporter: Thread | None = None

    def add(self, call: Call) -> None:
        """Track a call until it is removed."""
        with self._changed:
            self._open.append(call)
            self._changed.notify_all()
        if call.token is not None and self._reporter is None:
            self._reporter = Thread(target=self._report_progress, daemon=True)
            self._reporter.start()

    def remove(self, call: Call) -> None:
        """Stop tracking a call."""
        with self._changed:
            self._open.remove(call)

    def cancel(self, request_id: object) -> None:
        """Cancel the call with this id. Some clients send a numeric id as a string when they cancel."""
        if isinstance(request_id, (int, str)):
            with self._changed:
                matching = [call for call in self._open if str(call.id) == str(request_id)]
            for call in matching:
                call.cancel()

    def _report_progress(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._with_token)
            time.sleep(PROGRESS_SECONDS)
            with self._changed:
                calls = self._with_token()
            for call in calls:
                call.report_progress(self._send)

    def _with_token(self) -> list[Call]:
        return [call for call in self._open if call.token is not None]


class Batch:
    """The replies to an array of messages, sent together when the last one is complete."""

    def __init__(self, size: int, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._missing = size
        self._lines: list[bytes] = []
        self._lock = Lock()

    def reply(self, line: bytes | None) -> None:
        """Add the reply to one message."""
        with self._lock:
            if line is not None:
                self._lines.append(line)
            self._missing -= 1
            complete = not self._missing and bool(self._lines)
        if complete:
            self._send(b"[" + b",".join(self._lines) + b"]")
