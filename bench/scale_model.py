"""`python -m bench.scale_model`: what many users need, computed from costs that are measured here.

1. Measure, with a real server from a wheel: CPU of a worker and of the database for each kind of call, bytes for each
   entry in every table, log bytes for each add, the time of a durable commit.
2. Simulate: calls of many users arrive at random, wait for a worker, then for a core of the database, and for the disk.
   Each station is a queue with as many servers as it has cores; nothing else is assumed about it.
3. Print for each deployment where the time goes, what is busiest, and how much disk it takes.

The simulation is as good as its costs: those of this machine, with data in memory. It says which part ends first, and
at about which load; it does not replace a load test on the machines that will carry it.
"""

import argparse
import heapq
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from math import log
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import msgspec

from bench.entries import DIMENSIONS, RAW_BYTES, ReadyMade, Texts, archive, make_vectors
from bench.measure import say
from daypack.memory.search.postgres.partitions import promote_due
from daypack.memory.tools import Memories
from daypack.postgres.database import Database
from tools.postgres import Server

SIZES = (10_000, 100_000)  # entries of the memories that costs are measured with
CALLS = 400  # of each kind
SECONDS = 30.0  # simulated, after a warm-up of as many
_TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Seconds that one call of a kind needs: CPU of the worker, CPU of the database, waiting for the disk."""

    worker: float
    database: float
    disk: float = 0.0


class Costs(NamedTuple):
    """What was measured with a memory of so many entries."""

    entries: int
    add: Cost
    list: Cost
    search: Cost
    indexing: Cost  # of one entry, in the background
    entry_bytes: float  # of an entry with its text, tags and number
    word_bytes: float  # of its place in the index by words
    vector_bytes: float
    log_bytes: float  # written ahead for one add and its index


class Deployment(NamedTuple):
    """Workers, and databases with so many cores each; `shards` are primaries with replicas of their own."""

    name: str
    workers: int
    cores: int
    replicas: int = 0
    shards: int = 1


class Load(NamedTuple):
    """Users, their entries, and the sessions that are active, each with so many calls a second.

    Of the calls, `adds` write, `searches` search and the rest list; `fresh` of the reads carry a token that only the
    primary can serve at once.
    """

    users: int
    entries: int
    sessions: int
    calls: float = 1 / 30
    adds: float = 0.3
    searches: float = 0.3
    fresh: float = 0.2


class Result(NamedTuple):
    """What a simulation found."""

    latencies: dict[str, list[float]]
    busy: dict[str, float]


DEPLOYMENTS = (
    Deployment("one process, one primary of 2 cores", 1, 2),
    Deployment("4 processes, one primary of 8 cores", 4, 8),
    Deployment("16 processes, a primary of 16 cores, 2 replicas", 16, 16, 2),
    Deployment("64 processes, 8 shards of 16 cores, 2 replicas each", 64, 16, 2, 8),
)
LOADS = (
    Load(100, 10_000, 300),
    Load(1_000, 100_000, 10_000),
    Load(10_000, 1_000_000, 100_000),
)


# Simulating


class _Station:
    """A queue in front of some servers: a call takes the first that is free."""

    def __init__(self, servers: int) -> None:
        self._free = [0.0] * servers
        self.servers = servers
        self.worked = 0.0

    def serve(self, arrives: float, seconds: float) -> float:
        """Return when a call that arrives now is done."""
        begin = max(arrives, heapq.heappop(self._free))
        heapq.heappush(self._free, begin + seconds)
        self.worked += seconds
        return begin + seconds


def simulate(costs: Costs, deployment: Deployment, load: Load, seconds: float = SECONDS, seed: int = 1) -> Result:
    """Let calls arrive for some seconds and return how long they took, and how busy each station was."""
    chance = random.Random(seed)
    workers = [_Station(1) for _ in range(deployment.workers)]
    shards = [_Shard(deployment) for _ in range(deployment.shards)]
    latencies: dict[str, list[float]] = {"add": [], "list": [], "search": []}
    events = [
        _Event(moment, number, kind, moment, chance.choice(workers), chance.choice(shards))
        for number, (moment, kind) in enumerate(_arrivals(load, 2 * seconds, chance))
    ]
    heapq.heapify(events)
    while events:
        event = heapq.heappop(events)
        cost: Cost = getattr(costs, event.kind)
        if not event.in_database:
            at = event.worker.serve(event.moment, _vary(cost.worker, chance))
            heapq.heappush(events, event._replace(moment=at, in_database=True))
            continue
        reads = event.kind in ("search", "list") and chance.random() > load.fresh
        station = chance.choice(event.shard.replicas) if reads and event.shard.replicas else event.shard.primary
        at = station.serve(event.moment, _vary(cost.database, chance))
        if event.kind == "add":
            # Commits that arrive while the disk syncs share the next sync: a wait of one to two, whatever the load.
            at += cost.disk * (1 + chance.random())
            heapq.heappush(events, event._replace(moment=at, kind="indexing", in_database=False))
        if event.kind != "indexing" and event.began > seconds:
            latencies[event.kind].append(at - event.began)
    return Result(latencies, _busy(workers, shards, 2 * seconds))


class _Shard:
    """A primary and its replicas."""

    def __init__(self, deployment: Deployment) -> None:
        self.primary = _Station(deployment.cores)
        self.replicas = [_Station(deployment.cores) for _ in range(deployment.replicas)]


class _Event(NamedTuple):
    """A call that reaches a worker, or the database; ordered by its moment."""

    moment: float
    number: int
    kind: str
    began: float
    worker: _Station
    shard: _Shard
    in_database: bool = False


def _busy(workers: Sequence[_Station], shards: Sequence[_Shard], seconds: float) -> dict[str, float]:
    stations = {
        "workers": workers,
        "primaries": [shard.primary for shard in shards],
        "replicas": [replica for shard in shards for replica in shard.replicas],
    }
    return {
        name: max(station.worked / seconds / station.servers for station in found)
        for name, found in stations.items()
        if found
    }


def _arrivals(load: Load, seconds: float, chance: random.Random) -> Iterator[tuple[float, str]]:
    moment, rate = 0.0, load.sessions * load.calls
    while (moment := moment + chance.expovariate(rate)) < seconds:
        draw = chance.random()
        yield moment, "add" if draw < load.adds else "search" if draw < load.adds + load.searches else "list"


def _vary(seconds: float, chance: random.Random) -> float:
    """Return a time around a mean: most calls are near it, some take several times as long."""
    return seconds * chance.lognormvariate(-0.125, 0.5)


def disk_bytes(costs: Costs, load: Load) -> float:
    """Return the bytes of all entries with their indexes."""
    return load.users * load.entries * (costs.entry_bytes + costs.word_bytes + costs.vector_bytes)


# Measuring


def measure(folder: Path, entries: int) -> Costs:
    """Measure the costs with a real server and a memory of so many entries."""
    from bench.postgres import SETTINGS, open_memories

    with Server.start(folder / str(entries), {**SETTINGS, "autovacuum": "off"}) as server:
        texts = Texts(3)
        with open_memories(server.url(), ReadyMade(make_vectors(entries))) as memories:
            say(f"scale: importing {entries:,} entries")
            memory_id = memories.import_memory(archive(list(texts.take(entries)))).memory_id
            before = _cpu_of(server.pid), time.process_time(), _log_bytes(server)
            say("scale: indexing them")
            memories.await_consistency(memory_id, timeout_ms=600_000)
            promote_due(Database(server.url()))
            spent = (time.process_time() - before[1]) / entries, (_cpu_of(server.pid) - before[0]) / entries
            index_log = (_log_bytes(server) - before[2]) / entries
            return measure_calls(server, memories, memory_id, (entries, Cost(*spent), index_log))


def measure_calls(server: Server, memories: Memories, memory_id: str, made: tuple[int, Cost, float]) -> Costs:
    """Measure calls to a memory that was made: how many entries, and what indexing one of them took and logged."""
    entries, index, index_log = made
    texts = Texts(4)
    server.run("psql", "-XAtc", "VACUUM ANALYZE", "postgres")
    sizes = _sizes(server)
    more = iter(list(texts.take(CALLS + 1)))
    before = _log_bytes(server)
    add = _cost(server, lambda: memories.add_entry(memory_id, next(more), "a summary"))
    log_bytes = (_log_bytes(server) - before) / CALLS + index_log
    memories.await_consistency(memory_id, timeout_ms=600_000)
    search = _cost(server, lambda: memories.search_memories(memory_id, texts.question(), 10))
    listed = _cost(server, lambda: memories.list_entries(memory_id, 25))
    words = sum(sizes[name] for name in ("postings", "places", "conversations", "authors", "author_names", "indexes"))
    stored = sizes["entries"] + sizes["tags"]
    each = (stored / entries, words / entries, sizes["vectors"] / entries)
    return Costs(entries, add, listed, search, index, *each, log_bytes)


def _cost(server: Server, call: Callable[[], object]) -> Cost:
    """Return what a call takes: what is neither CPU of ours nor of the database is waiting for the disk."""
    call()
    wall, worker, database = time.perf_counter(), time.process_time(), _cpu_of(server.pid)
    for _ in range(CALLS):
        call()
    worker, database = (time.process_time() - worker) / CALLS, (_cpu_of(server.pid) - database) / CALLS
    waited = (time.perf_counter() - wall) / CALLS - worker - database
    return Cost(worker, database, max(0.0, waited))


def _cpu_of(pid: int) -> float:
    """Return the CPU seconds of a server with all processes it started, those that ended included."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(name) == pid:
                total += sum(map(int, fields[11:15]))
            elif int(fields[1]) == pid:
                total += sum(map(int, fields[11:13]))
    return total / _TICKS


def _log_bytes(server: Server) -> int:
    return int(server.run("psql", "-XAtc", "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn", "postgres"))


def _sizes(server: Server) -> dict[str, int]:
    """Return the bytes of every table with its indexes and partitions."""
    query = (
        "SELECT coalesce(root.relname, c.relname), sum(pg_total_relation_size(c.oid)) FROM pg_class c"
        " LEFT JOIN pg_class root ON root.oid = pg_partition_root(c.oid)"
        " WHERE c.relnamespace = 'daypack'::regnamespace AND c.relkind = 'r' GROUP BY 1"
    )
    lines = server.run("psql", "-XAtc", query, "postgres").split()
    return {name: int(size) for name, size in (line.split("|") for line in lines)}


# Printing


def report(measured: Sequence[Costs]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"measured: entries of {RAW_BYTES} bytes, vectors of {DIMENSIONS} dimensions"
    for costs in measured:
        yield f"  a memory of {costs.entries:,} entries"
        for kind in ("add", "search", "list", "indexing"):
            cost: Cost = getattr(costs, kind)
            parts = (("worker", cost.worker), ("database", cost.database), ("disk", cost.disk))
            yield f"    {kind:<9}" + "".join(f"  {name} {1000 * seconds:6.2f} ms" for name, seconds in parts)
        yield (
            f"    bytes of an entry: {costs.entry_bytes:,.0f} + words {costs.word_bytes:,.0f} + vector"
            f" {costs.vector_bytes:,.0f}; log for an add {costs.log_bytes:,.0f}"
        )
    for load in LOADS:
        costs = min(measured, key=lambda one: abs(log(one.entries / load.entries)))
        size, rate = disk_bytes(costs, load), load.sessions * load.calls
        yield ""
        yield (
            f"{load.users:,} users with {load.entries:,} entries each ({size / 1e12:,.2f} TB), {load.sessions:,} active"
            f" sessions: {rate:,.0f} calls a second; costs of {costs.entries:,} entries"
        )
        for deployment in DEPLOYMENTS:
            yield _line(costs, deployment, load, size)


def _line(costs: Costs, deployment: Deployment, load: Load, size: float) -> str:
    found = simulate(costs, deployment, load)
    name, most = max(found.busy.items(), key=lambda pair: pair[1])
    where = f"{size / deployment.shards / 1e12:,.2f} TB a database"
    if most > 1:
        return f"  {deployment.name:<54} too much: {name} {most:.0%} of what they can do; {where}"
    times = [f"{kind} {_tail(found.latencies[kind])}" for kind in ("add", "search", "list")]
    return f"  {deployment.name:<54} p50/p99 {', '.join(times)}; busiest: {name} {most:.0%}; {where}"


def _tail(latencies: list[float]) -> str:
    if len(latencies) < 2:
        return "-"
    cuts = quantiles(latencies, n=100)
    return f"{1000 * cuts[49]:.0f}/{1000 * cuts[98]:.0f} ms"


def main() -> None:
    """Measure, or read costs, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale_model", description=__doc__)
    parser.add_argument("--costs", metavar="FILE", help="costs of an earlier run instead of measuring")
    parser.add_argument("--save", metavar="FILE", help="write the measured costs")
    parser.add_argument("--entries", metavar="N", type=int, nargs="+", default=SIZES, help="sizes of the memories")
    args = parser.parse_args()
    if args.costs:
        measured = msgspec.json.decode(Path(args.costs).read_bytes(), type=list[Costs])
    else:
        with tempfile.TemporaryDirectory() as folder:
            measured = [measure(Path(folder), entries) for entries in args.entries]
    if args.save:
        Path(args.save).write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1))
    print("\n".join(report(measured)))


if __name__ == "__main__":
    main()
