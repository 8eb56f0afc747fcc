"""Eight processes append to shared sessions while workers, connections and servers are killed: nothing is lost.

Everything that was acknowledged is stored, once, where it was said to be; what was not acknowledged is stored once or
not at all. All caches end with the same bytes, and every turn replays in a cache that begins empty.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import postgres_server
import psycopg
from campaigns import Campaign
from history.postgres.appending_worker import SHARED, text_of
from history.postgres.workers import Workers, check_same, logs, replay_all

from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
WORKERS, APPENDS = 8, 300
HOMES = ("a", "b", "c", "d", "e", "e", "f", "f")  # of the workers: some share one
_SCRIPT = Path(__file__).with_name("appending_worker.py")
_PATIENCE_SECONDS = 300


class Processes:
    """The workers, each with a file of what was acknowledged; one that was killed is started again."""

    def __init__(self, folder: Path, url: str, appends: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.kills = 0
        self._folder = folder
        self._url = url
        self._appends = appends
        self._running = [self._start(number) for number in range(WORKERS)]

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        home = str(self._folder / HOMES[number])
        arguments = [self._url, home, str(number), str(self._appends), str(self._folder / f"worker-{number}")]
        return subprocess.Popen([sys.executable, _SCRIPT, *arguments], stderr=subprocess.PIPE)

    def kill_one(self) -> None:
        number = self.chance.randrange(WORKERS)
        process = self._running[number]
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.kills += 1
            self._running[number] = self._start(number)

    def pause_one(self) -> None:
        """Stop a worker until the next event."""
        process = self.chance.choice(self._running)
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)

    def continue_all(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)

    @property
    def done(self) -> bool:
        return all(process.poll() is not None for process in self._running)

    def finish(self) -> None:
        self.continue_all()
        for process in self._running:
            _, problem = process.communicate(timeout=_PATIENCE_SECONDS)
            assert process.returncode == 0, problem.decode()[-2000:]

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()

    def acknowledged(self) -> dict[tuple[int, int], tuple[str, int]]:
        """The session and the seq of every acknowledged message, by worker and number."""
        found: dict[tuple[int, int], tuple[str, int]] = {}
        for worker in range(WORKERS):
            for line in (self._folder / f"worker-{worker}").read_text().splitlines():
                number, *place = line.split()
                if len(place) == 2:
                    found[worker, int(number)] = (place[0], int(place[1]))
        return found


def _run(processes: Processes, events: Sequence[Callable[[], object]], pause: float) -> None:
    """Let things happen, one after the other, until the workers are done."""
    try:
        for event in events:
            time.sleep(pause)
            if processes.done:
                break
            processes.continue_all()
            event()
        processes.finish()
    finally:
        processes.stop()


def _terminate(url: str, chance: random.Random) -> None:
    """End a connection of a worker, as an administrator may."""
    with psycopg.connect(url, autocommit=True) as connection:
        pids = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'daypack'").fetchall()
        if pids:
            connection.execute("SELECT pg_terminate_backend(%s)", chance.choice(pids))


def _check(processes: Processes, workers: Workers, appends: int) -> int:
    """Check all sessions in all caches; return how many turns they have."""
    acknowledged = processes.acknowledged()
    stored = Counter[str]()
    places: dict[str, tuple[str, int]] = {}
    replayed = 0
    for name in [f"shared-{number}" for number in range(SHARED)] + [f"own-{number}" for number in range(WORKERS)]:
        fresh = workers.open("fresh", name)
        check_same(fresh, *(workers.open(home, name) for home in sorted(set(HOMES))))
        order: dict[str, int] = {}
        for message in fresh.messages():
            stored[message.text] += 1
            places[message.text] = (name, message.seq)
            _, worker, _, number = message.text.split()
            assert order.get(worker, -1) < int(number)  # each worker's messages are in its order
            order[worker] = int(number)
        given = replay_all(fresh)
        assert given == replay_all(workers.open(HOMES[0], name))
        replayed += len(given)
        workers.close()
    assert len(acknowledged) > WORKERS
    assert [text for text, count in stored.items() if count > 1] == []
    assert {key: places.get(text_of(*key)) for key in acknowledged} == acknowledged
    keyed = {(worker, number) for worker in range(WORKERS) for number in range(0, appends, 2)}
    assert keyed <= acknowledged.keys()  # a message with a client key is sent until it is acknowledged
    return replayed


def test_nothing_acknowledged_is_lost_doubled_or_moved_whatever_is_killed(tmp_path: Path, campaign: Campaign) -> None:
    appends = campaign.size("concurrent writes", WORKERS * APPENDS) // WORKERS
    with Server.start(tmp_path / "server") as server:
        workers = Workers(server.url(), tmp_path)
        workers.open("fresh", "shared-0").close()  # the schema
        processes = Processes(tmp_path, server.url(), appends, campaign.seed)
        events: list[Callable[[], object]] = []
        for _ in range(campaign.size("kills", 60, least=6)):
            events += [processes.kill_one, lambda: _terminate(server.url(), processes.chance), processes.pause_one]
        for _ in range(campaign.size("kills", 6, least=1)):
            events.insert(processes.chance.randrange(len(events)), server.restart)
        _run(processes, events, 0.15)
        assert _check(processes, workers, appends) > 0
        workers.close()
        assert logs(workers.open("fresh", "shared-0")) == logs(workers.open("later", "shared-0"))
        workers.close()
