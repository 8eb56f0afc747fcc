"""Sessions in PostgreSQL: durable appends, caches made from nothing, and turns, beside plain SQL and the file home.

One server from a wheel serves all, with fsync on. Plain: an autocommit INSERT of as many bytes, with a connection for
each thread. LangGraph: a `put` for each message, whose checkpoint has all messages so far; from 200 on a new one.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

import psycopg

import daypack
from bench.conversations import Conversation
from bench.histories import LINE_BYTES, TEXTS, Histories
from bench.measure import Block, Series, Taken, alternate, repeat, repeat_after, say, settle
from bench.table import Limit, Row, Section, compare, duration
from daypack import Session
from daypack.history.postgres.store import close_databases
from tools.postgres import Server, problem

ROUNDS, QUICK_ROUNDS = 15, 7
CROWDS = ((1, 1), (8, 8), (32, 32), (1, 8))  # sessions and threads
OPERATIONS = 20  # of each thread in a round, of many threads fewer
MOST_OPERATIONS = 320
MOST_MESSAGES = 200  # of a checkpoint
COLD, QUICK_COLD, COLD_ROUNDS = 100_000, 10_000, 5
TURNS = (100, 10_000)
TURN_OPERATIONS, TOKENS = 4, 32_000
PLAIN, LANGGRAPH, FILES = "plain INSERT", "LangGraph PostgresSaver", "file home"
_BATCH = 1_000
_PLAIN_TABLE = "CREATE TABLE plain(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session text, data bytea)"
_INSERT = "INSERT INTO plain(session, data) VALUES (%s, %s)"
_SELECT = "SELECT data FROM daypack.session_lines WHERE log = 0 ORDER BY tenant, session, log, start"
_NOTES = (
    f"appends of {LINE_BYTES} bytes: how many a second by all threads, p50 / p99 of a call; × is the time per append",
    "cold cache: an empty folder until the session is open, one row per message; beside: its rows written to a file",
    "turns: a question is appended, prepare (measured), the reply is accepted; both homes are durable, caches are warm",
)


class Place(NamedTuple):
    """Where the sessions of this part are: a folder and a server."""

    folder: Path
    server: Server

    def open(self, name: str, home: str = "home", database: str = "postgres") -> Session:
        """Open a session in a database, with its cache in a home."""
        url, folder = self.server.url(database), str(self.folder / home)
        return daypack.open_session(name, home=folder, uid="bench", store=url, workspace="")

    def open_files(self, name: str) -> Session:
        """Open a session in files."""
        return daypack.open_session(name, home=str(self.folder / "files"), workspace="")


class Crowd:
    """Calls that threads make at the same time, each its own; a block takes the time of all together."""

    def __init__(self, calls: Sequence[Callable[[], object]], pool: ThreadPoolExecutor) -> None:
        self.walls: list[int] = []
        self._calls = calls
        self._pool = pool

    def __call__(self, operations: int) -> Taken:
        """Let each thread make its share of the calls."""
        share, clock = operations // len(self._calls), time.perf_counter_ns

        def run(call: Callable[[], object]) -> list[int]:
            walls: list[int] = []
            for _ in range(share):
                start = clock()
                call()
                walls.append(clock() - start)
            return walls

        cpu, start = time.process_time_ns(), clock()
        found = list(self._pool.map(run, self._calls))
        wall, spent = clock() - start, time.process_time_ns() - cpu
        self.walls += [wall for walls in found for wall in walls]
        return Taken([wall // operations], spent)


def measure(histories: Histories) -> Section:
    """Measure appends, cold caches and turns."""
    if reason := problem():
        return Section("Sessions in PostgreSQL", (), (reason,))
    rounds = QUICK_ROUNDS if histories.quick else ROUNDS
    rows: list[Row] = []
    folder = Path(histories.folder) / "sessions"
    folder.mkdir()
    with Server.start(folder / "pg") as server:
        place = Place(folder, server)
        try:
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute(_PLAIN_TABLE)
                connection.execute("CREATE DATABASE filled")
                connection.execute("ALTER DATABASE filled SET synchronous_commit = off")  # it is only read
            for sessions, threads in CROWDS:
                rows += _appends(place, sessions, threads, rounds)
            rows += _cold(place, QUICK_COLD if histories.quick else COLD)
            for size in TURNS:
                rows += _turns(place, size, rounds)
        finally:
            close_databases()
    return Section(f"Sessions in PostgreSQL ({rounds} rounds)", tuple(rows), _NOTES)


# Appends


def _appends(place: Place, sessions: int, threads: int, rounds: int) -> Iterator[Row]:
    name = f"{sessions}-{threads}"
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        ours = [stack.enter_context(place.open(f"{name}-{number}")) for number in range(sessions)]
        files = [stack.enter_context(place.open_files(f"{name}-{number}")) for number in range(sessions)]
        calls = {
            "ours": [_appending(ours[number % sessions]) for number in range(threads)],
            PLAIN: [_inserting(stack, place) for _ in range(threads)],
            LANGGRAPH: _putting(stack, place, name, sessions, threads),
            FILES: [_appending(files[number % sessions]) for number in range(threads)],
        }
        crowds = {contender: Crowd(made, pool) for contender, made in calls.items() if made}
        operations = min(OPERATIONS, MOST_OPERATIONS // threads) * threads
        settle()
        title = f"{sessions} session{'s' * (sessions > 1)}, {threads} thread{'s' * (threads > 1)}"
        say(f"appends, {title}: {rounds} rounds")
        series = alternate(dict(crowds), rounds=rounds, operations=operations)
        for crowd in crowds.values():
            del crowd.walls[:operations]  # of the round that does not count
    for contender, crowd in crowds.items():
        if contender == "ours":
            continue
        limit = Limit(1.5) if contender == PLAIN else None
        row = compare(f"append, {title}, beside {contender}", series["ours"], series[contender], limit)
        yield _with_rates(row, (series["ours"], crowds["ours"]), (series[contender], crowd))
    if LANGGRAPH not in crowds:
        yield Row(f"append, beside {LANGGRAPH}", ours="not installed")


def _with_rates(row: Row, ours: tuple[Series, Crowd], theirs: tuple[Series, Crowd]) -> Row:
    mine, beside = (f"{1e9 / series.middle('wall'):,.0f}/s, {_tail(crowd.walls)}" for series, crowd in (ours, theirs))
    return replace(row, ours=mine, beside=beside)


def _tail(walls: Sequence[int]) -> str:
    cuts = quantiles(walls, n=100, method="inclusive")
    return f"{duration(cuts[49])} / {duration(cuts[98])}"


def _appending(session: Session) -> Callable[[], object]:
    texts = cycle(TEXTS)
    return lambda: session.append("user", next(texts))


def _inserting(stack: ExitStack, place: Place) -> Callable[[], object]:
    connection = stack.enter_context(psycopg.connect(place.server.url(), autocommit=True))
    data = b"x" * LINE_BYTES
    return lambda: connection.execute(_INSERT, ("bench", data))


def _putting(stack: ExitStack, place: Place, name: str, threads: int, callers: int) -> list[Callable[[], object]]:
    """Return a call for each caller that puts one more message into its thread; none if it is not installed."""
    try:
        saver = import_module("langgraph.checkpoint.postgres").PostgresSaver
        empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        human = import_module("langchain_core.messages").HumanMessage
    except ImportError:
        say(f"{LANGGRAPH} is not installed")
        return []

    def start(number: int) -> Callable[[], object]:
        store = stack.enter_context(saver.from_conn_string(place.server.url()))
        if number == 0:
            store.setup()
        config: dict[str, Any] = {"configurable": {"thread_id": f"{name}-{number}", "checkpoint_ns": ""}}
        messages: list[Any] = []
        texts, versions = cycle(TEXTS), count(1)

        def put() -> None:
            version = next(versions)
            if len(messages) >= MOST_MESSAGES:
                messages.clear()
            messages.append(human(next(texts), id=str(version)))
            values = {"channel_values": {"messages": list(messages)}, "channel_versions": {"messages": version}}
            store.put(config, empty() | values, {"source": "loop", "step": version}, {"messages": version})

        return put

    started = [start(number) for number in range(threads)]
    return [started[number % threads] for number in range(callers)]


# Cold caches


def _cold(place: Place, size: int) -> Iterator[Row]:
    say(f"cold cache: storing {size:,} messages")
    with place.open("cold", database="filled") as session:
        texts = cycle(TEXTS)
        for _ in range(size):
            session.append("user", next(texts))
        messages = session.history.messages.tail(size)
        log_bytes = os.path.getsize(session.layout.messages)
        counted = session.history.count_tokens
    homes = count()

    def build() -> None:
        place.open("cold", f"cold-{next(homes)}", "filled").close()

    with psycopg.connect(place.server.url("filled"), autocommit=True) as connection, connection.cursor() as cursor:

        def select() -> None:
            rows = cursor.execute(_SELECT, binary=True).fetchall()
            (place.folder / "selected").write_bytes(b"".join(row[0] for row in rows))

        def copy() -> None:
            with cursor.copy(f"COPY ({_SELECT}) TO STDOUT (FORMAT binary)") as rows:
                (place.folder / "copied").write_bytes(b"".join(map(bytes, rows)))

        blocks = {"ours": build, "SELECT": select, "COPY": copy, "tokens": lambda: [*map(counted, messages)]}
        say(f"cold cache: {COLD_ROUNDS} rounds")
        series = alternate({name: repeat(block) for name, block in blocks.items()}, rounds=COLD_ROUNDS, operations=1)
    ours = series["ours"]
    for other in ("SELECT", "COPY"):
        row = compare(f"cold cache, {log_bytes / 1e6:,.0f} MB, beside {other}", ours, series[other], None, size)
        yield row
    yield compare("  beside counting its tokens", ours, series["tokens"], None, size)


# Turns


class Agent:
    """An agent with a history: asks, prepares and accepts, again and again."""

    def __init__(self, session: Session, size: int) -> None:
        self.session = session
        self._talk = Conversation()
        for start in range(0, size, _BATCH):
            session.append_many(self._talk.take(min(_BATCH, size - start)))
        self._ask()
        self.prepare()
        session.turns.inputs.history_search.index.wait()
        session.turns.compactions.wait()

    def _ask(self) -> None:
        question = self._talk.question()
        self.session.append(question["role"], question["content"])

    def prepare(self) -> None:
        """The middle of a turn."""
        self.session.prepare(budget=TOKENS)

    def begin(self) -> None:
        """Accept the reply to the turn before, and ask."""
        self.session.accept(str(self._talk.exchange()[0]["content"]))
        self._ask()

    def turn(self) -> None:
        """The whole turn."""
        self.begin()
        self.prepare()


def _turns(place: Place, size: int, rounds: int) -> Iterator[Row]:
    say(f"turns of {size:,} messages: writing them")
    with place.open(f"turns-{size}") as ours, place.open_files(f"turns-{size}") as files:
        agents = {"ours": Agent(ours, size), "files": Agent(files, size)}
        prepares: dict[str, Block] = {name: repeat_after(agent.begin, agent.prepare) for name, agent in agents.items()}
        turns: dict[str, Block] = {name: repeat(agent.turn) for name, agent in agents.items()}
        settle()
        say(f"turns of {size:,} messages: {rounds} rounds")
        series = alternate(prepares, rounds=rounds, operations=TURN_OPERATIONS)
        yield compare(f"prepare, beside {FILES}", series["ours"], series["files"], Limit(1.2), size)
        series = alternate(turns, rounds=rounds, operations=TURN_OPERATIONS)
        yield compare(f"append, prepare, accept, beside {FILES}", series["ours"], series["files"], None, size)
