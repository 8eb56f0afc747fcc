"""The index of `find` is brought up to date in any order, by any number of processes, and after a kill."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daypack.files.jsonl import seal
from daypack.history.across_sessions import forget_index
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.upkeep.find import find
from daypack.upkeep.find.index import FindIndex, read_sessions
from daypack.upkeep.find.update import Progress, update

_NOUNS = (
    "lamp",
    "lens",
    "port",
    "tide",
    "chart",
    "harbour",
    "proxy",
    "token",
    "server",
    "screw",
    "brass",
    "cable",
    "buoy",
)
_QUERIES = (
    "lamp lens",
    "port of the proxy",
    "brass screw 7",
    "where is the server cable?",
    "tide chart harbour",
    "buoy",
)


@pytest.fixture
def place(home: str) -> Home:
    """The home of the sessions."""
    return find_home(home)


class _Logs:
    """Sessions that grow by random messages."""

    def __init__(self, home: Home, seed: int) -> None:
        self._home = home
        self._chance = random.Random(seed)
        self._seqs: dict[str, int] = {}

    def grow(self, name: str, count: int = 1) -> None:
        """Append messages to a session."""
        layout = self._home.session("codex", name)
        os.makedirs(layout.folder, exist_ok=True)
        with open(layout.messages, "ab") as log:
            for _ in range(count):
                self._seqs[name] = seq = self._seqs.get(name, 0) + 1
                words = " ".join(self._chance.choices(_NOUNS, k=self._chance.randrange(2, 12)))
                ts = f"2026-{seq % 12 + 1:02}-11T10:00:{seq % 60:02}.000Z"
                role = self._chance.choice(("user", "assistant", "tool"))
                fields = {"seq": seq, "id": f"msg-{seq}", "ts": ts, "role": role, "content": f"{words} {seq % 9}"}
                log.write(seal(msgspec.json.encode(fields))[0])

    def delete(self, name: str) -> None:
        """Delete a session."""
        os.unlink(self._home.session("codex", name).messages)
        self._seqs.pop(name)

    def rewrite(self, name: str) -> None:
        """Replace the log of a session by another of other words."""
        path = self._home.session("codex", name).messages
        data = Path(path).read_bytes().replace(b"lamp", b"lump")
        Path(f"{path}.new").write_bytes(
            b"".join(seal(line.rpartition(b',"crc"')[0] + b"}")[0] for line in data.splitlines())
        )
        os.replace(f"{path}.new", path)


def _answers(home: Home) -> list[Any]:
    return [
        [(hit.session, hit.seq, hit.score, hit.line, hit.more) for hit in find(home, query).hits] for query in _QUERIES
    ]


@pytest.mark.parametrize("seed", range(6))
def test_an_index_that_grew_in_any_order_answers_like_a_new_one(
    place: Home, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.upkeep.find.search.time.time", lambda: 1.8e9)
    logs, chance = _Logs(place, seed), random.Random(seed)
    names = [f"session-{number}" for number in range(6)]
    for name in names:
        logs.grow(name, chance.randrange(1, 20))
    for _ in range(25):
        step = chance.random()
        name = chance.choice(names)
        if step < 0.1 and os.path.exists(place.session("codex", name).messages):
            logs.delete(name)
        elif step < 0.2 and os.path.exists(place.session("codex", name).messages):
            logs.rewrite(name)
        else:
            logs.grow(name, chance.randrange(1, 6))
        if chance.random() < 0.5:
            index = FindIndex(place)
            update(place, index)
            index.close()
    grown = _answers(place)
    forget_index(place.find_index)
    assert any(grown)
    assert _answers(place) == grown


def test_only_what_is_new_is_read_again(place: Home) -> None:
    logs = _Logs(place, 1)
    for number in range(5):
        logs.grow(f"session-{number}", 10)
    index = FindIndex(place)
    assert update(place, index).messages == 50
    assert update(place, index).messages == 0
    logs.grow("session-3", 2)
    assert update(place, index).messages == 2


def test_progress_names_sessions_and_messages(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daypack.upkeep.find.update._BATCH_MESSAGES", 40)
    logs = _Logs(place, 1)
    for number in range(5):
        logs.grow(f"session-{number}", 30)
    seen: list[Progress] = []
    update(place, FindIndex(place), seen.append)
    assert {progress.sessions for progress in seen} == {5}
    assert seen[-1].done == 150
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert all(progress.done <= progress.total for progress in seen)


def test_an_interrupted_update_continues_where_it_was(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daypack.upkeep.find.update._BATCH_MESSAGES", 20)
    logs = _Logs(place, 2)
    logs.grow("long", 90)
    logs.grow("short", 5)

    def interrupt(progress: Progress) -> None:
        if progress.done >= 40:
            raise KeyboardInterrupt

    index = FindIndex(place)
    with pytest.raises(KeyboardInterrupt):
        update(place, index, interrupt)
    done = sum(row.messages for row in index.sessions()[0])
    assert 40 <= done < 95
    assert update(place, index).messages == 95 - done


_INDEXING = """
import sys
from daypack.history.layout import Home
from daypack.upkeep.find import update as module
from daypack.upkeep.find.index import FindIndex
module._BATCH_MESSAGES = 10
def shown(progress):
    print(progress.done, flush=True)
home = Home(sys.argv[1], sys.argv[2])
module.update(home, FindIndex(home), shown)
"""


def test_a_killed_process_leaves_an_index_that_the_next_completes(place: Home) -> None:
    logs = _Logs(place, 3)
    for number in range(8):
        logs.grow(f"session-{number}", 200)
    command = [sys.executable, "-c", _INDEXING, place.root, place.uid]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 100:
                break
        process.send_signal(signal.SIGKILL)
    index = FindIndex(place)
    done = sum(row.messages for row in index.sessions()[0])
    assert done >= 100
    assert update(place, index).messages == 1600 - done
    found = _answers(place)
    forget_index(place.find_index)
    assert _answers(place) == found


def test_two_processes_index_everything_once(place: Home) -> None:
    logs = _Logs(place, 4)
    for number in range(6):
        logs.grow(f"session-{number}", 100)
    command = [sys.executable, "-c", _INDEXING, place.root, place.uid]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    index = FindIndex(place)
    assert sum(row.messages for row in index.sessions()[0]) == 600
    messages = index.read(lambda connection: connection.execute("SELECT count(*) FROM messages").fetchone()[0])
    assert messages == 600


def test_a_search_does_not_wait_long_for_another_process(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from daypack.files.lock import held_after_waiting

    logs = _Logs(place, 5)
    logs.grow("known", 20)
    before = find(place, "lamp lens")
    logs.grow("new", 20)
    monkeypatch.setattr("daypack.upkeep.find.update.WAIT_SECONDS", 0.01)
    with held_after_waiting(f"{place.find_index}.lock", 1, "a test"):
        found = find(place, "lamp lens")
    assert not found.complete
    assert [hit.session for hit in found.hits] == [hit.session for hit in before.hits]
    assert find(place, "lamp lens").complete


def test_what_was_read_before_the_index_was_deleted_is_not_added(place: Home) -> None:
    """An erasure deletes the index: words that another process read before must not return."""
    logs = _Logs(place, 6)
    logs.grow("one", 5)
    index = FindIndex(place)
    update(place, index)
    logs.grow("one", 5)
    deleted: list[bool] = []

    def delete_once(_: Progress) -> None:
        if not deleted:
            deleted.append(True)
            forget_index(place.find_index)

    update(place, index, delete_once)
    rows = index.read(read_sessions) or []
    assert [(row.name, row.messages) for row in rows] == [("one", 10)]


def test_a_damaged_index_is_replaced(place: Home) -> None:
    logs = _Logs(place, 7)
    logs.grow("one", 30)
    expected = _answers(place)
    for data in (b"", b"no database", Path(place.find_index).read_bytes()[:5000]):
        Path(place.find_index).write_bytes(data)
        assert _answers(place) == expected


def test_an_index_of_mostly_gone_sessions_is_made_again(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daypack.upkeep.find.index._LEAST_DEAD", 10)
    logs = _Logs(place, 8)
    for number in range(4):
        logs.grow(f"session-{number}", 50)
    index = FindIndex(place)
    update(place, index)
    inode = os.stat(place.find_index).st_ino
    before = os.path.getsize(place.find_index)
    logs.delete("session-0")
    update(place, index)
    assert os.stat(place.find_index).st_ino == inode
    for number in (1, 2):
        logs.delete(f"session-{number}")
    update(place, index)
    assert index.read(lambda connection: connection.execute("SELECT dead FROM totals").fetchone()[0]) == 0
    assert [row.name for row in index.sessions()[0]] == ["session-3"]
    assert os.path.getsize(place.find_index) <= before


def test_a_line_that_is_not_finished_is_indexed_when_it_is(place: Home) -> None:
    logs = _Logs(place, 9)
    logs.grow("one", 3)
    path = place.session("codex", "one").messages
    whole = seal(msgspec.json.encode({"seq": 4, "id": "msg-4", "role": "user", "content": "the zeppelin has landed"}))[
        0
    ]
    with open(path, "ab") as log:
        log.write(whole[:30])
    assert find(place, "zeppelin landed").hits == ()
    with open(path, "ab") as log:
        log.write(whole[30:])
    assert [hit.seq for hit in find(place, "zeppelin landed").hits] == [4]
