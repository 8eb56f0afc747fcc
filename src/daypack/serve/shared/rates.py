"""Rate limits that hold for all servers on one database together.

The table `rates` has a bucket for each key, with the arithmetic of serve/http/limits.py. A request is counted here at
once, and reported to the database by a thread soon after; the answer says how much all servers have counted. So a
request waits for the database only if too much is unreported: `ahead` requests of its key, a fiftieth of the burst and
at least one.

Bound: each server lets at most `ahead` requests through that it would have refused had it known the counts of the
others. So N servers accept at most burst + rate × seconds + N × ahead requests of a key, whatever their callers do.

A bucket that is fuller than fifty such servers can fill it was filled with a higher limit, of other servers or before a
restart, or in an outage. A server that reports to it forgets what is above, or it would have to be drained for hours.

If the database has not answered for a second, each server applies the limit alone until it answers again.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

import anyio

from daypack.errors import DaypackError
from daypack.postgres.transaction import Scope
from daypack.serve.http.limits import MOST_KEYS, Rates
from daypack.serve.observe.observer import report_error

if TYPE_CHECKING:
    from daypack.postgres.database import Database
    from daypack.postgres.transaction import Transaction

Kind = Literal["requests", "bad tokens"]
_OPERATION = "rate limits"
_SCOPE = Scope()
_PATIENCE_SECONDS = 1.0
_ROUND_SECONDS = 0.05  # between two reports that no request waits for
_AHEAD = 50  # a server is ahead of the database by this part of the burst
_MOST_SERVERS = 50  # that the bound holds for
_MOST_REPORTED = 1_000  # keys in one statement
_FORGET_SECONDS = 600.0  # a bucket is empty long before
_REPORT = """
INSERT INTO rates AS known (kind, key, spent, at)
SELECT %(kind)s, key, spent, clock_timestamp() FROM unnest(%(keys)s::bytea[], %(spent)s::float8[]) AS new(key, spent)
ORDER BY key
ON CONFLICT (kind, key) DO UPDATE SET at = greatest(known.at, clock_timestamp()), spent = excluded.spent + least(
    %(most)s, greatest(0, known.spent - %(per_second)s * greatest(0, extract(epoch FROM clock_timestamp() - known.at))))
RETURNING key, spent
"""
_FORGET = "DELETE FROM rates WHERE at < clock_timestamp() - make_interval(secs => %s)"


class SharedRates(Rates):
    """How often each key did something, on all servers: at most `per_minute`, and a sixth of that at once."""

    def __init__(self, database: "Database", kind: Kind, per_minute: int, most_keys: int = MOST_KEYS) -> None:
        super().__init__(per_minute, most_keys)
        self.ahead = max(1, int(self._burst / _AHEAD))
        self._most = self._burst + _MOST_SERVERS * self.ahead
        self._database = database
        self._kind = kind
        self._unreported: OrderedDict[str, int] = OrderedDict()
        self._in_report: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._answered = True  # the database, the last time
        self._changed = threading.Condition()
        self._stopping = False
        self._forgotten_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"daypack-rates-{kind}", daemon=True)

    def start(self) -> None:
        """Begin to report."""
        if self._per_second:
            self._thread.start()

    def stop(self) -> None:
        """Report what is left; a database that does not answer is not waited for."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)

    async def ready(self, key: str) -> None:
        """Return when few enough requests of the key are unreported, or if the database does not answer."""
        while self._per_second and self._answered and self._ahead_of(key) >= self.ahead:
            reported: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            with self._changed:
                self._waiting.append(reported)
                self._changed.notify()
            with anyio.move_on_after(_PATIENCE_SECONDS):
                await reported
                continue
            self._answered = False

    def wait_seconds(self, key: str) -> float:
        """Return after how many seconds the key may do it again, as far as this server knows; 0: now."""
        with self._changed:
            return super().wait_seconds(key)

    def count(self, key: str) -> None:
        """Count that the key did it."""
        if not self._per_second:
            return
        with self._changed:
            super().count(key)
            if key in self._unreported or len(self._unreported) < self._most_keys:
                self._unreported[key] = self._unreported.get(key, 0) + 1
            self._changed.notify()

    def _ahead_of(self, key: str) -> int:
        with self._changed:
            return self._unreported.get(key, 0) + self._in_report.get(key, 0)

    # The thread that reports

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unreported or self._waiting or self._stopping)
                if self._stopping and not self._unreported:
                    return
                if not self._waiting and not self._stopping:
                    self._changed.wait_for(lambda: self._waiting or self._stopping, _ROUND_SECONDS)
                waiting, self._waiting = self._waiting, []
                self._take()
            self._report()
            for reported in waiting:
                _wake(reported)

    def _take(self) -> None:
        """Choose what to report; requests that the bucket has forgotten by now are not reported any more."""
        while self._unreported and len(self._in_report) < _MOST_REPORTED:
            key, count = self._unreported.popitem(last=False)
            self._in_report[key] = min(count, int(self._spent_by(key) + 0.999))

    def _report(self) -> None:
        if not self._in_report:
            return
        keys = {key.encode("utf-8", "surrogatepass"): key for key in self._in_report}
        values: dict[str, object] = {
            "kind": self._kind,
            "keys": list(keys),
            "spent": [float(self._in_report[key]) for key in keys.values()],
            "per_second": self._per_second,
            "most": self._most,
        }
        try:
            rows = self._database.run(_OPERATION, lambda transaction: _send(transaction, values), _SCOPE)
        except DaypackError as error:
            report_error(_OPERATION, error)
            rows = None
        with self._changed:
            self._in_report = {}
            self._answered = rows is not None
            now = time.monotonic()
            for key, spent in rows or ():
                name = keys[bytes(key)]
                if name in self._spent:
                    self._spent[name] = spent + self._unreported.get(name, 0), now
        if time.monotonic() - self._forgotten_at > _FORGET_SECONDS:
            self._forget()

    def _forget(self) -> None:
        """Remove the buckets that are empty."""
        self._forgotten_at = time.monotonic()
        try:
            self._database.run(_OPERATION, lambda transaction: transaction.execute(_FORGET, (_FORGET_SECONDS,)), _SCOPE)
        except DaypackError as error:
            report_error(_OPERATION, error)


def _send(transaction: "Transaction", values: dict[str, object]) -> list[tuple[bytes, float]]:
    transaction.execute("SET LOCAL synchronous_commit = off")
    return transaction.rows(_REPORT, values)  # pyright: ignore[reportReturnType] — as the statement says


def _wake(reported: "asyncio.Future[None]") -> None:
    """Continue the request, in the loop that waits; the loop may have ended."""

    def settle() -> None:
        if not reported.done():
            reported.set_result(None)

    loop = reported.get_loop()
    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        return
