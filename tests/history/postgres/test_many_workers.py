"""Eight processes append to shared sessions while workers, connections and servers are killed: nothing is lost.

Everything that was acknowledged is stored, once, where it was said to be; what was not acknowledged is stored once or
not at all. All caches end with the same bytes, and every turn replays in a cache that begins empty.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import postgres_server
from campaigns import Campaign
from history.postgres.appending_worker import SHARED, text_of
from history.postgres.workers import Workers, check_same, logs, replay_all
from worker_processes import WorkerProcesses

from tools.postgres import Server

pytestmark = postgres_server.needs_postgres
WORKERS, APPENDS = 8, 300
HOMES = ("a", "b", "c", "d", "e", "e", "f", "f")  # of the workers: some share one
_SCRIPT = Path(__file__).with_name("appending_worker.py")


def _acknowledged(folder: Path) -> dict[tuple[int, int], tuple[str, int]]:
    """Return the session and the seq of every acknowledged message, by worker and number."""
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for worker in range(WORKERS):
        for line in (folder / f"worker-{worker}").read_text().splitlines():
            number, *place = line.split()
            if len(place) == 2:
                found[worker, int(number)] = (place[0], int(place[1]))
    return found


def _check(workers: Workers, appends: int) -> int:
    """Check all sessions in all caches; return how many turns they have."""
    acknowledged = _acknowledged(workers.folder)
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
        arguments = [
            [server.url(), str(tmp_path / home), str(number), str(appends), str(tmp_path / f"worker-{number}")]
            for number, home in enumerate(HOMES)
        ]
        processes = WorkerProcesses(_SCRIPT, arguments, campaign.seed)
        events: list[Callable[[], object]] = []
        for _ in range(campaign.size("kills", 60, least=6)):
            events += [processes.kill_one, lambda: processes.end_a_connection(server.url()), processes.pause_one]
        for _ in range(campaign.size("kills", 6, least=1)):
            events.insert(processes.chance.randrange(len(events)), server.restart)
        processes.run(events, 0.15)
        assert _check(workers, appends) > 0
        workers.close()
        assert logs(workers.open("fresh", "shared-0")) == logs(workers.open("later", "shared-0"))
        workers.close()
