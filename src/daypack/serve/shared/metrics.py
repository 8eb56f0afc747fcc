"""The metrics of all servers on one database: each publishes its own, and whichever is asked answers with the sums.

An answer contains only published values, its own too, and a process publishes values that never fall. So counters grow
from answer to answer, whichever process gives it. A process that has ended, or was not seen for a minute, is folded
into one row with the counts of all former ones, once: its row is removed in the same transaction. One that was only
suspended finds its row gone; it begins a new one and publishes what it counted since. Gauges are those of living
processes. If the database does not answer there is no answer: the counts of one process would look like a restart.
"""

import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from daypack import __version__
from daypack.errors import DaypackError
from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope, Transaction
from daypack.serve.observe.metrics import Exposed, Metrics
from daypack.serve.observe.observer import report_error

PUBLISH_SECONDS = 5.0
LIVING_SECONDS = 60.0
_ENDED = uuid.UUID(int=0)
_OPERATION = "metrics"
_SCOPE = Scope()
_END_SECONDS = 3.0  # how long a server that ends waits for the database
_PUBLISH = "UPDATE processes SET metrics = %s, seen = clock_timestamp() WHERE id = %s RETURNING id"
_JOIN = "INSERT INTO processes(id, about, metrics) VALUES (%s, %s, %s)"
_READ = "SELECT id, clock_timestamp() - seen < make_interval(secs => %s), metrics FROM processes"
_LOCK = "SELECT metrics FROM processes WHERE id = %s FOR UPDATE"
_REMOVE = (
    "DELETE FROM processes WHERE id <> %s AND (id = %s OR clock_timestamp() - seen >= make_interval(secs => %s))"
    " RETURNING metrics"
)
_KEEP = (
    "INSERT INTO processes(id, about, metrics) VALUES (%s, 'ended', %s)"
    " ON CONFLICT (id) DO UPDATE SET metrics = excluded.metrics"
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Exposed]).decode


class SharedMetrics:
    """Publishes the metrics of this process, in a thread of its own, and reads those of all."""

    def __init__(
        self, database: Database, metrics: Metrics, common: Callable[[], Iterable[Exposed]] = tuple,
        seconds: float = PUBLISH_SECONDS,
    ) -> None:  # fmt: skip
        """`common`: what is measured in the database, and not by each process."""
        self._database = database
        self._metrics = metrics
        self._common = common
        self._seconds = seconds
        self._lock = threading.Lock()
        self._id = uuid.uuid4()
        self._published: list[Exposed] | None = None
        self._folded: list[Exposed] = []  # what was counted under a former id
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="daypack-metrics", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Publish for the last time and leave; a database that does not answer is not waited for."""
        self._stopping.set()
        self._thread.join(_END_SECONDS)

    def families(self) -> list[Exposed]:
        """Return the metrics of all servers, those of this one as they are now."""
        rows = self._publish()
        living = [metrics for id_, alive, metrics in rows if alive and id_ != _ENDED]
        gauges = [family for metrics in living for family in metrics if family.kind == "gauge"]
        counts = [family for _, _, metrics in rows for family in metrics if family.kind != "gauge"]
        count = Exposed("daypack_processes", "Servers on the database.", "gauge", {"daypack_processes": len(living)})
        return [*merge([*counts, *gauges]), count, *self._common()]

    def _run(self) -> None:
        while True:
            last = self._stopping.is_set()
            try:
                rows = self._publish()
                if last or any(not alive for id_, alive, _ in rows if id_ != _ENDED):
                    self._database.resolve(_OPERATION, partial(self._fold, mine=last), _SCOPE)
            except DaypackError as error:
                report_error(_OPERATION, error)
            if last:
                return
            self._stopping.wait(self._seconds)

    def _publish(self) -> "list[_Row]":
        """Publish what was counted until now; return what all have published."""
        with self._lock:  # values are published in the order in which they are read
            families = self._metrics.families()
            rows = self._store(families)
            if rows is None:  # others took this process for dead, and have counted what it had published
                self._folded, self._published, self._id = self._published or [], None, uuid.uuid4()
                rows = self._store(families)
            self._published = families
            return rows or []

    def _store(self, families: list[Exposed]) -> "list[_Row] | None":
        data = _encode(_subtract(families, self._folded))

        def work(transaction: Transaction) -> list[_Row] | None:
            transaction.execute("SET LOCAL synchronous_commit = off")
            if transaction.row(_PUBLISH, (data, self._id)) is None:
                if self._published is not None:
                    return None
                transaction.execute(_JOIN, (self._id, _describe(), data))
            return [(id_, alive, _decode(found)) for id_, alive, found in transaction.rows(_READ, (LIVING_SECONDS,))]

        return self._database.resolve(_OPERATION, work, _SCOPE)

    def _fold(self, transaction: Transaction, *, mine: bool) -> None:
        """Add the counts of processes that ended to those of all former ones; `mine`: this one ends too."""
        former = transaction.row(_LOCK, (_ENDED,))
        leaving = transaction.rows(_REMOVE, (_ENDED, self._id if mine else _ENDED, LIVING_SECONDS))
        if leaving:
            every = [family for (data,) in (former or (b"[]",), *leaving) for family in _decode(data)]
            transaction.execute(_KEEP, (_ENDED, _encode(merge(family for family in every if family.kind != "gauge"))))


_Row = tuple[uuid.UUID, bool, list[Exposed]]


def merge(families: Iterable[Exposed]) -> list[Exposed]:
    """Return each metric once: counts are added, gauges too unless they say otherwise."""
    merged: dict[str, Exposed] = {}
    for family in families:
        known = merged.get(family.name)
        if known is None:
            merged[family.name] = msgspec.structs.replace(family, samples=dict(family.samples))
            continue
        choose = {"sum": None, "max": max, "min": min}[family.together]
        for sample, number in family.samples.items():
            before = known.samples.get(sample)
            if before is None:
                known.samples[sample] = number
            else:
                known.samples[sample] = before + number if choose is None else choose(before, number)
    return list(merged.values())


def _subtract(families: Sequence[Exposed], counted: Sequence[Exposed]) -> list[Exposed]:
    """Return counts without those that were counted before; gauges as they are."""
    if not counted:
        return list(families)
    before = {
        sample: number for family in counted if family.kind != "gauge" for sample, number in family.samples.items()
    }
    rest: list[Exposed] = []
    for family in families:
        samples = {sample: number - before.get(sample, 0) for sample, number in family.samples.items()}
        rest.append(family if family.kind == "gauge" else msgspec.structs.replace(family, samples=samples))
    return rest


def _describe() -> bytes:
    return f"daypack {__version__} on {socket.gethostname()}, process {os.getpid()}".encode()
