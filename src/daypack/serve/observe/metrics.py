"""Counters, gauges and histograms of a server, in the Prometheus text format.

Written here because it is small, and because labels must be bounded: a label takes one of the values its metric knows,
and anything else counts as "other". No label names a user, a memory or anything that a caller can choose.
"""

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from daypack.serve.observe.log import log

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATM = "/proc/self/statm"

Labels = tuple[str, ...]
Kind = Literal["counter", "gauge", "histogram"]
Together = Literal["sum", "max", "min"]


class Exposed(Struct, frozen=True):
    """A metric as it is read: its samples by name and labels. `together`: how several processes make one gauge."""

    name: str
    about: str
    kind: Kind
    samples: dict[str, int | float]
    together: Together = "sum"


class Family:
    """The name, help and labels of a metric; `known` lists the values a label may have."""

    def __init__(self, name: str, about: str, **known: Iterable[str]) -> None:
        self.name = name
        self.about = about
        self.labels = tuple(known)
        self._known = tuple(frozenset(values) for values in known.values())
        self._lock = threading.Lock()

    def bound(self, values: Sequence[str]) -> Labels:
        """Return label values, with "other" for those that are not known."""
        return tuple(value if value in known else OTHER for value, known in zip(values, self._known, strict=True))

    def _sample(self, suffix: str, values: Sequence[str], **more: str) -> str:
        pairs = [*zip(self.labels, values, strict=True), *more.items()]
        labels = "{" + ",".join(f'{name}="{value}"' for name, value in pairs) + "}" if pairs else ""
        return f"{self.name}{suffix}{labels}"


class Counter(Family):
    """Counts events; `read` is for a count that something else keeps, or for counts by the value of the one label."""

    def __init__(
        self,
        name: str,
        about: str,
        read: Callable[[], float | Mapping[str, int]] | None = None,
        **known: Iterable[str],
    ) -> None:
        super().__init__(name, about, **known)
        self.read = read
        self._counts: dict[Labels, int] = {} if known else {(): 0}

    def add(self, *values: str, count: int = 1) -> None:
        """Count one event, or several."""
        labels = self.bound(values)
        with self._lock:
            self._counts[labels] = self._counts.get(labels, 0) + count

    def expose(self) -> Exposed:
        """Return the counts of now."""
        counts: dict[Labels, float] = {}
        if self.read is None:
            with self._lock:
                counts.update(self._counts)
        elif isinstance(found := self.read(), Mapping):
            for value, count in dict(found).items():
                labels = self.bound((value,))
                counts[labels] = counts.get(labels, 0) + count
        else:
            counts[()] = found
        samples = {self._sample("", labels): count for labels, count in sorted(counts.items())}
        return Exposed(self.name, self.about, "counter", samples)


class Gauge(Family):
    """A number that is read when the metrics are; one that cannot be read is left out."""

    def __init__(
        self, name: str, about: str, read: Callable[[], float] | None = None, *, together: Together = "sum"
    ) -> None:
        super().__init__(name, about)
        self.read = read
        self._together: Together = together

    def expose(self) -> Exposed | None:
        """Return the number of now; None if there is none to read."""
        if self.read is None:
            return None
        return Exposed(self.name, self.about, "gauge", {self._sample("", ()): self.read()}, self._together)


class Histogram(Family):
    """Durations in seconds, counted by their size."""

    def __init__(self, name: str, about: str, **known: Iterable[str]) -> None:
        super().__init__(name, about, **known)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, *values: str) -> None:
        """Count one duration."""
        labels = self.bound(values)
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(SECONDS) + 1))
            counts[bisect_left(SECONDS, seconds)] += 1
            self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def expose(self) -> Exposed:
        """Return the counts of now."""
        with self._lock:
            counts = {labels: tuple(found) for labels, found in sorted(self._counts.items())}
            sums = dict(self._sums)
        samples: dict[str, int | float] = {}
        for labels, found in counts.items():
            total = 0
            for limit, count in zip((*map(repr, SECONDS), "+Inf"), found, strict=True):
                total += count
                samples[self._sample("_bucket", labels, le=limit)] = total
            samples[self._sample("_sum", labels)] = sums[labels]
            samples[self._sample("_count", labels)] = total
        return Exposed(self.name, self.about, "histogram", samples)


def render(families: Iterable[Exposed]) -> str:
    """Return metrics in the text format."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{sample} {number!r}" for sample, number in family.samples.items()]
    return "\n".join(lines) + "\n"


ROUTES = (
    "/mcp", "/api", "/api/memories", "/openapi.json", "/health", "/health/live", "/health/ready", "/metrics", "stdio",
    "/", "/page/assets", "/page/data", "/page/do", "/page/enter", "/page/live",
)  # fmt: skip
STATUSES = ("2xx", "3xx", "4xx", "5xx", "none")  # none: the caller was gone before there was a response
QUEUES = ("work", "wait", "token")
METHODS = (
    "initialize", "ping", "server/discover", "tools/list", "prompts/list", "prompts/get", "resources/list",
    "resources/templates/list", "resources/read", "list_memories", "notifications/initialized",
    "notifications/cancelled", "none",
)  # fmt: skip


class Metrics:
    """All metrics of one server. `tools` are the names a tool label may have, `reasons` those of errors.

    `limits` and `closed` are the reasons for refused requests and closed connections.
    """

    def __init__(
        self,
        tools: Iterable[str] = (),
        reasons: Iterable[str] = (),
        limits: Iterable[str] = (),
        closed: Iterable[str] = (),
    ) -> None:
        tools = (*tools, *METHODS)
        self.shared: Callable[[], list[Exposed]] | None = None  # reads those of all servers of a database
        self.requests = Counter(
            "daypack_requests_total", "Requests by route, tool, class of the status, and whether the tool failed.",
            route=ROUTES, tool=tools, status=STATUSES, result=("ok", "failed"),
        )  # fmt: skip
        self.seconds = Histogram(
            "daypack_request_seconds", "Time from the headers of a request to the end of its response.",
            route=ROUTES, tool=tools,
        )  # fmt: skip
        self.queued = Histogram("daypack_queue_seconds", "Time a call waited for a worker thread.", queue=QUEUES)
        self.refusals = Counter("daypack_refusals_total", "Refused requests by error.", reason=reasons)
        self.limited = Counter("daypack_limited_requests_total", "Requests refused by a limit.", limit=limits)
        self.closed = Counter("daypack_closed_connections_total", "Connections the server closed.", reason=closed)
        self.failed_logins = Counter("daypack_failed_authentications_total", "Requests without a valid token.")
        self.damage = Counter("daypack_damage_total", "Errors that found stored bytes damaged.")
        self.slow = Counter("daypack_slow_requests_total", "Requests slower than the threshold for slow calls.")
        self.connections = Gauge("daypack_open_connections", "Open connections.")
        self.barriers = Gauge("daypack_waiting_barriers", "Calls of await_consistency that wait or are queued.")
        self.waiting = Gauge("daypack_queued_calls", "Calls that wait for a worker thread.")
        about = "Stored entries that open search indexes do not have yet."
        self.lag = Gauge("daypack_index_lag_entries", about, together="max")  # servers may share an index
        self.dropped = Counter(
            "daypack_log_lines_dropped_total", "Log lines that could not be written.", lambda: log.dropped
        )
        self.unaudited = Gauge("daypack_audit_lines_pending", "Audit lines that could not be written yet.")
        started = time.time()
        self._process = (
            Gauge("process_resident_memory_bytes", "Resident memory.", _resident_bytes),
            Gauge("process_open_fds", "Open file descriptors.", lambda: len(os.listdir("/dev/fd"))),
            Gauge("process_start_time_seconds", "Start of the process since 1970.", lambda: started, together="min"),
            Counter("process_cpu_seconds_total", "CPU time of the process.", _cpu_seconds),
        )

    def text(self) -> str:
        """Return all metrics in the text format: those of all servers together if there are several."""
        return render(self.families() if self.shared is None else self.shared())

    def families(self) -> list[Exposed]:
        """Return all metrics of this process; a gauge that cannot be read is left out."""
        found: list[Exposed] = []
        for family in (*vars(self).values(), *self._process):
            if isinstance(family, Counter | Gauge | Histogram):
                try:
                    exposed = family.expose()
                except Exception:  # noqa: S112 — one number less, and the others are shown
                    continue
                if exposed is not None:
                    found.append(exposed)
        return found


def _resident_bytes() -> float:
    """Return the memory of the process; macOS has no such file, and the gauge is left out there."""
    with open(_STATM, "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
