"""`daypack session list` of many sessions opens only those that changed, and is the same list whatever its index is."""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import faults
import pytest
from cli.conftest import Command
from faults import Faults, injected, refused_writing

import daypack
from daypack.history.home import find_home
from daypack.history.listing import index as session_index
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request

COUNT = 12


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_index, "LEAST", 3)
    monkeypatch.setattr(session_index, "_SETTLED_NS", -(1 << 62))  # nothing is written while a test lists


@pytest.fixture
def many(home: str) -> Path:
    """Sessions of one agent; returns the folder that holds them."""
    for number in range(COUNT):
        with daypack.open_session(f"s{number}", home=home, durability="os", workspace="") as session:
            session.append("user", f"Question number {number}, about the tide")
            session.append("assistant", "An answer.")
    return Path(find_home(home).sessions("default"))


def listed(command: Command) -> list[dict[str, object]]:
    done = command("session", "list", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def index(many: Path) -> Path:
    return many.parent / "sessions.idx"


def fresh(command: Command, many: Path) -> list[dict[str, object]]:
    """Return the list as it is without an index."""
    index(many).unlink(missing_ok=True)
    rows = listed(command)
    index(many).unlink(missing_ok=True)
    return rows


def opens_of(work: Callable[[], object]) -> list[str]:
    """Return the paths that are opened through the file layer."""
    paths: list[str] = []
    real = os.open

    def note(path: str, *args: int, **kwargs: int) -> int:
        paths.append(str(path))
        return real(path, *args, **kwargs)

    os.open = note  # type: ignore[assignment]
    try:
        work()
    finally:
        os.open = real
    return paths


def test_a_second_list_opens_no_session(command: Command, many: Path) -> None:
    before = fresh(command, many)
    assert listed(command) == before
    opened = opens_of(lambda: listed(command))
    assert [path for path in opened if path.startswith(f"{many}/")] == []
    assert listed(command) == before
    with daypack.open_session("s3", home=str(many.parents[4]), durability="os") as session:
        session.append("user", "More of it")
    opened = opens_of(lambda: listed(command))
    assert {Path(path).relative_to(many).parts[0] for path in opened if path.startswith(f"{many}/")} == {"s3"}


def _append(folder: Path) -> None:
    with daypack.open_session(folder.name, home=str(folder.parents[5]), durability="os") as session:
        session.append("user", "more")
        session.append_event("mine", {})


def _by_hand(folder: Path) -> None:
    with open(folder / "messages.jsonl", "a") as log:
        log.write('{"role":"user","content":"by hand"}\n')


def _flip(folder: Path) -> None:
    log = folder / "messages.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Question", b"Qwestion"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "append": _append,
    "state": lambda folder: (folder / "state").write_text("done\n"),
    "time": lambda folder: (folder / "updated_at").write_text("2999-01-01T00:00:00Z\n"),
    "meta": lambda folder: (folder / "meta.json").write_text('{"model":"gpt-4","tokenizer":"o200k_base"}'),
    "hand-written line": _by_hand,
    "damage": _flip,
    "removed": shutil.rmtree,
    "renamed": lambda folder: folder.rename(folder.parent / "renamed"),
    "a log that is gone": lambda folder: (folder / "messages.jsonl").unlink(),
    "a link": lambda folder: (shutil.rmtree(folder / "context"), (folder / "context").symlink_to("/tmp")),
}


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_row_is_made_again(command: Command, many: Path, change: str) -> None:
    listed(command)
    listed(command)
    CHANGES[change](many / "s5")
    with_index = listed(command)
    assert with_index == fresh(command, many)


def test_a_missing_damaged_or_foreign_index_gives_the_same_list(command: Command, many: Path) -> None:
    expected = fresh(command, many)
    listed(command)
    data = index(many).read_bytes()
    damaged = {
        "nothing": b"",
        "cut": data[: len(data) // 2],
        "flipped": data.replace(b"Question number 4", b"Question number 9"),
        "zeros": bytes(len(data)),
        "text": b"hello\n[]",
        "other version": data.replace(b"daypack-sessions-1", b"daypack-sessions-9"),
    }
    for name, content in damaged.items():
        index(many).write_bytes(content)
        assert listed(command) == expected, name
        assert index(many).read_bytes() == data, name  # and it is whole again
    index(many).unlink()
    index(many).mkdir()
    assert listed(command) == expected
    index(many).rmdir()
    index(many).symlink_to("/etc/passwd")
    assert listed(command) == expected


def test_on_a_read_only_disk_the_list_is_the_same(command: Command, many: Path) -> None:
    expected = fresh(command, many)
    with refused_writing(30):
        assert listed(command) == expected
    assert not index(many).exists()
    listed(command)
    with refused_writing(30):
        assert listed(command) == expected


def test_a_failure_at_any_file_call_of_the_index_is_no_failure_of_the_list(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fresh(command, many)
    monkeypatch.setattr(faults, "CALLS", ("write", "fsync", "replace", "rename", "unlink"))
    for at in range(1, 5):
        index(many).unlink(missing_ok=True)
        with injected(Faults(at, code=28)):
            assert listed(command) == expected
        assert listed(command) == expected


def test_settings_that_change_what_is_shown_make_the_rows_again(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fresh(command, many)
    listed(command)
    monkeypatch.setenv("DAYPACK_LOCKING", "nonsense")
    assert all("error" in row for row in listed(command))
    monkeypatch.delenv("DAYPACK_LOCKING")
    assert listed(command) == expected


def test_a_session_that_changes_while_it_is_described_is_not_kept(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "_SETTLED_NS", 1 << 62)  # all of them changed a moment ago
    expected = fresh(command, many)
    assert listed(command) == expected
    assert not index(many).exists()


def test_few_sessions_have_no_index(command: Command, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_index, "LEAST", COUNT + 1)
    listed(command)
    assert not index(many).exists()


def test_an_erasure_and_a_deletion_leave_no_title_behind(command: Command, home: str, many: Path) -> None:
    listed(command)
    assert b"number 7, about" in index(many).read_bytes()
    planned = json.loads(command("erase", "s7", "--literal", "number 7, about", "--json").stdout)["plan"]
    assert planned["elsewhere"] == []
    done = erase(find_home(home), Request(session="s7", literal="number 7, about"))
    assert done.remaining == ()
    assert not index(many).exists()
    listed(command)
    command("gc", "s8", "--archive", "--force")
    assert command("gc", "s8", "--delete", "--yes", "--force").returncode == 0
    assert not index(many).exists()
    assert len(listed(command)) == COUNT - 1


def read_bytes_of(work: Callable[[], object], ending: str) -> int:
    """Return how many bytes of files with this ending are read through the file layer."""
    total = 0
    real = {name: getattr(os, name) for name in ("pread", "read")}

    def counting(name: str) -> Callable[..., bytes]:
        def read(fd: int, *args: int) -> bytes:
            nonlocal total
            data = real[name](fd, *args)
            if os.readlink(f"/proc/self/fd/{fd}").endswith(ending):
                total += len(data)
            return data

        return read

    for name in real:
        setattr(os, name, counting(name))
    try:
        work()
    finally:
        for name, function in real.items():
            setattr(os, name, function)
    return total


@pytest.fixture
def long(home: str) -> Iterator[Path]:
    with daypack.open_session("long", home=home, durability="os", workspace="") as session:
        session.append_many([{"role": "user", "content": f"message {at} " + "x" * 400} for at in range(70_000)])
        yield Path(session.path)


def test_a_long_session_is_shown_without_reading_its_messages(command: Command, long: Path) -> None:
    shown: list[dict[str, object]] = []
    show = lambda: shown.append(json.loads(command("session", "show", "long", "--json").stdout))  # noqa: E731
    assert read_bytes_of(show, "messages.jsonl") < 10_000
    assert shown[0]["messages"] == 70_000
    sidecar = long / "context" / "offsets" / "messages.idx"
    expected = shown[0]["tokens"]
    assert isinstance(expected, int)
    assert expected > 70_000 * 50
    with open(long / "messages.jsonl", "a") as log:
        log.write('{"role":"user","content":"by hand"}\n')
    show()
    assert isinstance(shown[1]["tokens"], int)
    assert expected < shown[1]["tokens"] < expected + 20
    sidecar.unlink()
    show()  # counted from the log
    assert shown[2]["tokens"] == shown[1]["tokens"]


def _read_nothing(_folder: str, _title: object) -> None:
    """Every session has to be opened."""


def opened_list(command: Command, many: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Return the list that is made by opening every session."""
    with monkeypatch.context() as patched:
        patched.setattr(session_index, "read_row", _read_nothing)
        return fresh(command, many)


def test_a_first_list_opens_each_file_of_an_ordinary_session_once(command: Command, many: Path) -> None:
    opened = opens_of(lambda: fresh(command, many))
    of_sessions = [path for path in opened if path.startswith(f"{many}/")]
    assert len(of_sessions) == len(set(of_sessions)) == COUNT * 8


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_is_read_is_the_row_of_the_opened_session(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    CHANGES[change](many / "s5")
    assert fresh(command, many) == opened_list(command, many, monkeypatch)


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_whatever_happens_to_the_bytes_of_a_session_its_row_is_the_one_of_the_opened_session(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s1", "s2"):
        _append(many / name)
    files = [path for name in ("s1", "s2", "s3") for path in sorted((many / name).rglob("*")) if path.is_file()]
    whole = {path: path.read_bytes() for path in files}
    chance = random.Random(11)
    for round_ in range(40):
        for path in chance.sample(files, 3):
            path.write_bytes(_harmed(whole[path], chance))
        assert fresh(command, many) == opened_list(command, many, monkeypatch), round_
        for path, data in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def test_a_slot_that_points_far_past_the_log_is_not_followed(
    command: Command, many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = many / "s4" / "context" / "offsets" / "messages.idx"
    data = bytearray(sidecar.read_bytes())
    data[64 : 64 + 8] = (1 << 62).to_bytes(8, "little")  # the offset of the first line
    sidecar.write_bytes(data)
    assert fresh(command, many) == opened_list(command, many, monkeypatch)


def _harmed(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        case 2:
            return data[:at] + data[at // 2 :]
        case 3:
            return data + b'{"role":"user","content":"by hand"}\n'
        case _:
            return b""
