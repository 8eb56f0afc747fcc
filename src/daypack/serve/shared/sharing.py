"""Has the servers on one database share their limits and metrics; a server with a store in files has its own."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from daypack.errors import DaypackError
from daypack.serve.observe.metrics import Exposed

if TYPE_CHECKING:
    from collections.abc import Callable

    from daypack.memory.backend import Backend, Server
    from daypack.serve.http.limits import Shares
    from daypack.serve.observe.metrics import Metrics

_CLAIM = "INSERT INTO used_tokens(nonce) VALUES (%s) ON CONFLICT DO NOTHING RETURNING nonce"
_FORGET = "DELETE FROM used_tokens WHERE at < clock_timestamp() - make_interval(secs => %s)"


@contextmanager
def share(backend: "Backend", shares: "Shares", metrics: "Metrics | None") -> Generator[None]:
    """Meanwhile, share the rates and the metrics of this process with the other servers of its database, if it has one.

    What is left is reported at the end, so end it before the backend is closed.
    """
    server = backend.server
    if server is None:
        yield
        return
    from daypack.serve.shared.metrics import SharedMetrics  # noqa: PLC0415 — only with a database
    from daypack.serve.shared.rates import SharedRates  # noqa: PLC0415

    with ExitStack() as stack:
        rates = SharedRates(server.database, "requests", shares.limits.rate)
        bad_tokens = SharedRates(server.database, "bad tokens", shares.limits.bad_tokens)
        shares.rates, shares.bad_tokens = rates, bad_tokens
        for each in (rates, bad_tokens):
            each.start()
            stack.callback(each.stop)
        if metrics is not None:
            published = SharedMetrics(server.database, metrics, lambda: measure(server))
            metrics.shared = published.families
            published.start()
            stack.callback(published.stop)
        yield


def page_key(backend: "Backend") -> bytes | None:
    """Return the key that signs cookies of the page, so that each server on one database accepts them; None: files."""
    if backend.server is None:
        return None
    from hmac import digest  # noqa: PLC0415 — only with a database

    from daypack.memory.store.postgres.store import PostgresStore  # noqa: PLC0415

    store = backend.primary
    return digest(store.signing_key, b"cookies of the page", "sha256") if isinstance(store, PostgresStore) else None


def page_claim(backend: "Backend") -> "Callable[[str], bool] | None":
    """Return what notes the use of a one-time token for all servers on one database; None: files."""
    if backend.server is None:
        return None
    from daypack.postgres.transaction import Scope, Transaction  # noqa: PLC0415 — only with a database
    from daypack.serve.page.access import ONCE_SECONDS  # noqa: PLC0415

    database = backend.server.database

    def claim(nonce: str) -> bool:
        def insert(transaction: Transaction) -> bool:
            transaction.execute(_FORGET, (2 * ONCE_SECONDS,))  # a clock may be set
            return transaction.row(_CLAIM, (nonce.encode(),)) is not None

        return database.run("use token", insert, Scope())

    return claim


def measure(server: "Server") -> Iterator[Exposed]:
    """Yield the metrics of the database itself; those that cannot be read are left out."""
    try:
        counts = asdict(server.jobs.counts())
        samples = {f'daypack_jobs{{state="{state}"}}': count for state, count in counts.items()}
        yield Exposed("daypack_jobs", "Jobs of the search index by state.", "gauge", samples)
        replica = None if server.copy is None else server.copy.reads.replica
        if replica is not None:
            lag = max(0, server.database.wal_position() - replica.wal_position())
            about = "Bytes of the log that the replica has not replayed yet."
            yield Exposed("daypack_replica_lag_bytes", about, "gauge", {"daypack_replica_lag_bytes": lag})
    except DaypackError:
        return
