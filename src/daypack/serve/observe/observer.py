"""Turns finished requests and errors into log lines and metrics, the same for HTTP and stdio."""

import os
import time
from typing import TYPE_CHECKING

from daypack import errors
from daypack.serve.observe.log import Level, log
from daypack.serve.observe.request_facts import RequestFacts, current

if TYPE_CHECKING:
    from daypack.serve.observe.log import Value
    from daypack.serve.observe.metrics import Metrics

SLOW_MS = 1_000
_SEVERE = frozenset({401, 403, 421, 429, 503})  # someone is trying, or the server refuses work
_WAITS = "await_consistency"  # slow by design: the caller names how long it waits
_STREAMS = "/page/live"  # open as long as the page is
_MAX_FRAMES = 6
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Observer:
    """Reports the requests of one server. Safe for threads; it never raises."""

    def __init__(self, metrics: "Metrics | None" = None, slow_ms: int = SLOW_MS, user: str = "") -> None:
        """`slow_ms`: calls that take longer are reported; 0 reports none. `user`: of requests over stdio."""
        self.metrics = metrics
        self.user = user
        self._slow_ms = slow_ms

    def finished(self, facts: RequestFacts, status: int, started: float) -> None:
        """Report a request that has been answered; status 0: the caller was gone. `started` is monotonic."""
        seconds = time.monotonic() - started
        slow = 0 < self._slow_ms < seconds * 1000 and facts.tool != _WAITS and facts.route != _STREAMS
        refused = 400 <= status < 500 or status == 503
        if self.metrics is not None:
            self._count(facts, status, seconds, refused=refused, slow=slow)
        event, level = _classify(facts, status, slow=slow)
        if not log.writes(level):
            return
        fields: dict[str, Value] = {**_describe(facts), "status": status, "ms": seconds * 1000}
        if event == "request":
            log.line(level, event, **fields)
        else:
            log.limited(facts.error or str(status), level, event, **fields)

    def _count(self, facts: RequestFacts, status: int, seconds: float, *, refused: bool, slow: bool) -> None:
        assert self.metrics is not None
        tool = facts.tool or "none"
        outcome = f"{status // 100}xx" if status else "none"
        self.metrics.requests.add(facts.route, tool, outcome, "failed" if facts.error else "ok")
        if facts.route != _STREAMS:
            self.metrics.seconds.observe(seconds, facts.route, tool)
        if refused:
            self.metrics.refusals.add(facts.error or "other")
        if status == 401:
            self.metrics.failed_logins.add()
        if slow:
            self.metrics.slow.add()
        if facts.damaged:
            self.metrics.damage.add()


def report_error(operation: str, error: BaseException) -> None:
    """Log an error by its class and place, without its text, which may quote contents. Never raises."""
    damaged = isinstance(error, errors.Damaged)
    facts = current.get()
    fields: dict[str, Value] = {"operation": operation, "error": type(error).__name__}
    if isinstance(error, errors.StorageFailed | errors.Damaged):
        fields["place"] = error.place
    cause = error.__cause__
    if cause is not None:
        fields["cause"] = getattr(cause, "sqlite_errorname", "") or _errno_name(cause) or type(cause).__name__
    fields["at"] = _frames(error)
    if facts is not None:
        facts.damaged = facts.damaged or damaged
    log.limited(type(error).__name__, "error", "damage" if damaged else "error", **_describe(facts) | fields)


def report_unaudited(operation: str) -> None:
    """Log that a line of the audit log has to wait; readiness fails until it is written."""
    log.limited("audit", "error", "audit.failed", operation=operation, **_describe(current.get()))


def _classify(facts: RequestFacts, status: int, *, slow: bool) -> tuple[str, Level]:
    if status == 401:
        return "authentication.failed", "warning"
    if status >= 500 and status != 503:
        return "failed", "error"
    if status >= 400:
        return "refused", "warning" if status in _SEVERE else "info"
    if slow:
        return "slow", "warning"
    if facts.error:  # a tool error within a successful response of MCP
        return "refused", "info"
    return "request", "debug"


def _describe(facts: RequestFacts | None) -> "dict[str, Value]":
    if facts is None:
        return {}
    return {
        "request": facts.request_id,
        "rpc": facts.rpc_id,
        "door": facts.door,
        "client": facts.client,
        "route": facts.route,
        "user": facts.user,
        "tool": facts.tool,
        "error": facts.error,
    }


def _frames(error: BaseException) -> list[str]:
    """Return where an error was raised, innermost first: file, line and function, no values."""
    frames: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename
        inside = name.startswith(_PACKAGE)
        shown = os.path.relpath(name, _PACKAGE) if inside else os.path.basename(name)
        frames.append(f"{shown}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[: -_MAX_FRAMES - 1 : -1]


def _errno_name(error: BaseException) -> str:
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    import errno  # noqa: PLC0415 — only for errors

    return errno.errorcode.get(error.errno, "")
