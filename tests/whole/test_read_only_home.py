"""A home that cannot be written is read as it is: on a read-only mount, and without the right to write."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from memory_server import start_server

import daypack
from daypack.errors import WriteFailed
from daypack.files import read_only

# Root may write everywhere, unless it gives up these rights.
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
HINT = "make the home writable, or copy it and choose the copy with --home or DAYPACK_HOME"

# Runs commands, or Python doors, in one process that has only the rights of the reader.
READER = """
import contextlib, io, json, os, sys
from daypack.cli.main import run

def command(argv):
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(argv)
        except SystemExit as left:
            code = left.code
        except BaseException as error:
            code = repr(error)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()

print(json.dumps([command(argv) for argv in json.load(sys.stdin)]))
"""

DOORS = """
import daypack, sys
from daypack.errors import StorageFailed
memory_id = sys.argv[1]
with daypack.open_session("work", create=False) as session:
    assert len(session.messages()) == 7 and session.tail(1)[0].text == "Which zebra port?"
    assert session.search_history("zebra port")
    for write in (lambda: session.append("user", "more"), lambda: session.prepare(), lambda: session.pin("a", "b")):
        try:
            write()
        except StorageFailed as error:
            assert error.place and error.hint, error
        else:
            raise AssertionError("written")
with daypack.open_memory() as memory:
    assert memory.list_entries(memory_id).entries
    hits = memory.search_memories(memory_id, "giraffe")
    assert hits.entries, hits
    assert memory.get_context(memory_id).content
    try:
        memory.add_entry(memory_id, "more")
    except StorageFailed as error:
        assert error.place.endswith("store.sqlite") and error.hint, error
    else:
        raise AssertionError("written")
print("done")
"""


class Reader(NamedTuple):
    """Where the home is for a process that can only read it, and how that is started."""

    home: str
    prefix: tuple[str, ...] = ()

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run Python, and return what it printed."""
        environment = {
            **os.environ,
            "DAYPACK_HOME": self.home,
            "DAYPACK_UID": str(os.getuid()),
            "HOME": "/nonexistent",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [*self.prefix, sys.executable, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd="/",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commands(self, argvs: list[list[str]]) -> list[tuple[int, str, str]]:
        """Run commands, and return the exit code and output of each."""
        return [(code, out, err) for code, out, err in json.loads(self.run("-c", READER, stdin=json.dumps(argvs)))]


@contextmanager
def _mounted(home: str, *, over: bool = False) -> Generator[Reader]:
    """Mount a home read-only: at another place, or over itself."""
    place = home if over else tempfile.mkdtemp()
    bound = subprocess.run(["mount", "--bind", home, place], capture_output=True, check=False).returncode == 0
    try:
        options = ["mount", "-o", "remount,ro,bind", place]
        if not bound or subprocess.run(options, capture_output=True, check=False).returncode != 0:
            pytest.skip("a read-only mount needs the right to mount (run the tests as root)")
        yield Reader(place)
    finally:
        if bound:
            subprocess.run(["umount", place], check=True)
        if not over:
            os.rmdir(place)


@contextmanager
def _forbidden(home: str) -> Generator[Reader]:
    if WITHOUT_RIGHTS and subprocess.run([*WITHOUT_RIGHTS, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("root cannot give up its rights here (setpriv fails): run the tests as another user")
    subprocess.run(["chmod", "-R", "a-w", home], check=True)
    try:
        yield Reader(home, WITHOUT_RIGHTS)
    finally:
        subprocess.run(["chmod", "-R", "u+w", home], check=True)


WAYS = {"mount": _mounted, "permissions": _forbidden}


class Stored(NamedTuple):
    """A home with a session of two turns and a memory."""

    home: str
    memory: str

    @property
    def session(self) -> str:
        return f"{self.home}/home/{os.getuid()}/agent/default/session/work"

    @property
    def store(self) -> str:
        return f"{self.home}/home/{os.getuid()}/memory/store.sqlite"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stored:
    home = os.fspath(tmp_path / "home")
    monkeypatch.setenv("DAYPACK_HOME", home)
    with daypack.open_session("work", home=home) as session:
        for number in range(3):
            session.append("user", f"Deploy {number} of the zebra service uses port 80{number}. Always use tabs.")
            session.append("assistant", f"Noted: zebra {number}.")
        session.prepare()
        session.append("user", "Which zebra port?")
        session.prepare()
        assert session.search_history("zebra")
    with daypack.open_memory(home=home) as memory:
        memory_id = memory.create_memory("animals").memory_id
        memory.add_entry(memory_id, "The giraffe eats leaves.")
        assert memory.search_memories(memory_id, "giraffe").entries
    return Stored(home, memory_id)


def _reads(stored: Stored) -> list[list[str]]:
    memory = stored.memory
    return [
        *(["log", "work"], ["log", "work", "--events"], ["session", "list"], ["session", "show", "work"]),
        *(["search", "work", "zebra"], ["pack", "work"], ["recall", "work", "msg-3"], ["explain", "work", "msg-3"]),
        *(["replay", "work", "ev-1"], ["turns", "work"], ["diff", "work"], ["export", "work"], ["rules", "work"]),
        *(["tiers", "work"], ["memory", "list"], ["memory", "show", memory], ["memory", "search", memory, "giraffe"]),
        *(["memory", "context", memory], ["memory", "export", memory], ["doctor"], ["doctor", "work"], ["gc", "work"]),
        *(["user", "list"], ["token", "list"], ["pin", "work"], ["question", "work"], ["compactions", "work"]),
    ]


def _writes(stored: Stored) -> list[list[str]]:
    return [
        *(["append", "work", "more"], ["prepare", "work"], ["session", "new", "other"], ["budget", "work", "9000"]),
        *(["memory", "add", stored.memory, "more"], ["memory", "new", "more"], ["index", "work"], ["rebuild", "work"]),
        ["memory", "erase", stored.memory, "--yes"],
    ]


def _digests(home: str) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(Path(home).rglob("*"))
    }


def _check_reads(stored: Stored, reader: Reader) -> dict[str, str]:
    argvs = _reads(stored)
    outputs: dict[str, str] = {}
    for argv, (code, out, err) in zip(argvs, reader.commands(argvs), strict=True):
        assert code == 0, (argv, out, err)
        assert "Traceback" not in err
        outputs[" ".join(argv)] = out
    assert "port 802" in outputs["search work zebra"]
    assert "messages.jsonl 1-" in outputs["pack work"]
    assert "giraffe" in outputs[f"memory search {stored.memory} giraffe"]
    assert "giraffe" in outputs[f"memory export {stored.memory}"]
    assert stored.memory in outputs["memory list"]
    return outputs


def _without_derived(stored: Stored) -> None:
    """Remove everything that can be made again: sidecars and indexes."""
    shutil.rmtree(f"{stored.session}/context")
    shutil.rmtree(os.path.dirname(stored.store) + "/index")


def _behind(stored: Stored) -> None:
    """Let indexes and sidecars lack the newest message and entry."""
    kept = tempfile.mkdtemp()
    folders = {
        f"{stored.session}/context": f"{kept}/context",
        os.path.dirname(stored.store) + "/index": f"{kept}/index",
    }
    for folder, copy in folders.items():
        shutil.copytree(folder, copy)
    with daypack.open_session("work") as session:
        session.append("assistant", "The walrus service uses port 900.")
    with daypack.open_memory() as memory:
        memory.add_entry(stored.memory, "The walrus eats clams.")
    for folder, copy in folders.items():
        shutil.rmtree(folder)
        shutil.move(copy, folder)
    shutil.rmtree(kept)


def _damaged(stored: Stored) -> None:
    """Damage both indexes of words: where they can be written, they would be replaced."""
    index = f"{os.path.dirname(stored.store)}/index/{stored.memory}/words.sqlite"
    for path in (f"{stored.session}/context/search.sqlite", index):
        Path(path).write_bytes(b"no database" * 1000)


@pytest.mark.requirement("G7")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", [None, _without_derived])
def test_every_read_works_and_every_write_names_the_place_and_a_remedy(stored: Stored, way: str, change: Any) -> None:
    if change:
        change(stored)
    before = _digests(stored.home)
    with WAYS[way](stored.home) as reader:
        _check_reads(stored, reader)
        argvs = _writes(stored)
        for argv, (code, out, err) in zip(argvs, reader.commands(argvs), strict=True):
            assert code == 1, (argv, out, err)
            assert reader.home in err
            assert "→" in err
            assert "Traceback" not in err
            assert way != "mount" or HINT in err, (argv, err)
        assert reader.run("-c", DOORS, stored.memory) == "done\n"
    assert _digests(stored.home) == before


@pytest.mark.parametrize("way", WAYS)
def test_what_an_index_lacks_is_found_without_writing_it(stored: Stored, way: str) -> None:
    _behind(stored)
    with WAYS[way](stored.home) as reader:
        _check_reads(stored, reader)
        argvs = [["search", "work", "walrus"], ["memory", "search", stored.memory, "walrus"]]
        (code, words, _), (memory_code, entries, _) = reader.commands(argvs)
        assert (code, memory_code) == (0, 0)
        assert "port 900" in words
        assert "clams" in entries


def test_a_damaged_index_is_made_again_in_memory(stored: Stored) -> None:
    _damaged(stored)
    before = _digests(stored.home)
    with _mounted(stored.home) as reader:
        argvs = [["search", "work", "zebra"], ["memory", "search", stored.memory, "giraffe"]]
        (code, words, _), (memory_code, entries, _) = reader.commands(argvs)
    assert (code, memory_code) == (0, 0)
    assert "port 802" in words
    assert "leaves" in entries
    assert _digests(stored.home) == before


@pytest.mark.parametrize("shared_memory", [True, False])
def test_what_a_killed_process_left_in_the_journal_of_the_store_is_read(stored: Stored, *, shared_memory: bool) -> None:
    kept = tempfile.mkdtemp()
    with daypack.open_memory() as memory:
        memory.add_entry(stored.memory, "The walrus eats clams.")
        for ending in ("", "-wal", "-shm"):
            shutil.copy(stored.store + ending, f"{kept}/store{ending}")
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{kept}/store{ending}", stored.store + ending)
    shutil.rmtree(kept)
    if not shared_memory:
        os.unlink(stored.store + "-shm")
    assert os.path.getsize(stored.store + "-wal")
    with _mounted(stored.home) as reader:
        outputs = _check_reads(stored, reader)
        assert "clams" in outputs[f"memory export {stored.memory}"]
        with tempfile.TemporaryDirectory() as folder:
            (code, _, err), *_ = reader.commands([["backup", f"{folder}/file", "--apply"]])
            assert code == 0, err
            environment = {**os.environ, "DAYPACK_HOME": f"{folder}/home"}
            restore = [sys.executable, "-m", "daypack", "restore", f"{folder}/file", "--apply"]
            subprocess.run(restore, env=environment, check=True, capture_output=True)
            shown = [sys.executable, "-m", "daypack", "memory", "export", stored.memory]
            assert b"clams" in subprocess.run(shown, env=environment, check=True, capture_output=True).stdout


def test_a_reader_sees_what_others_write_through_another_mount(stored: Stored) -> None:
    with _mounted(stored.home) as reader, daypack.open_memory(home=reader.home) as reading:
        assert len(reading.list_entries(stored.memory).entries) == 1
        with daypack.open_memory() as writing:
            for number in range(3):
                writing.add_entry(stored.memory, f"The walrus eats {number} clams.")
                assert len(reading.list_entries(stored.memory).entries) == 2 + number
        assert len(reading.list_entries(stored.memory).entries) == 4
        assert reading.search_memories(stored.memory, "walrus").entries


def test_a_server_says_that_it_is_not_ready_and_answers_writes_with_507(stored: Stored) -> None:
    with (
        _mounted(stored.home) as reader,
        start_server(reader.home, quiet=False) as server,
        server.client() as client,
    ):
        assert client.get("/health/ready").status_code == 503
        assert server.call("get_context", memory_id=stored.memory).status_code == 200
        answer = server.call("add_entry", memory_id=stored.memory, raw_entry="more")
        assert answer.status_code == 507
        assert answer.json()["error"]["code"] == "WriteFailed"
        assert "/health/ready" in answer.json()["error"]["hint"]
        assert reader.home not in answer.text
        assert client.get("/health/ready").status_code == 503


def test_a_home_that_becomes_read_only_while_its_files_are_open_is_found_out(stored: Stored) -> None:
    with daypack.open_memory() as memories:
        backend = memories.backend
        assert backend.audit is not None
        memories.add_entry(stored.memory, "The walrus eats clams.")
        backend.check()
        with _mounted(stored.home, over=True):
            with pytest.raises(WriteFailed):
                backend.check()
            with pytest.raises(WriteFailed):
                backend.audit.check()
        backend.check()


def test_an_empty_home_has_no_sessions_and_no_memories(tmp_path: Path) -> None:
    with _mounted(str(tmp_path)) as reader:
        for code, _, err in reader.commands([["session", "list"], ["memory", "list"], ["doctor"]]):
            assert code == 0, err


def test_a_file_in_a_writable_folder_is_not_taken_for_read_only(tmp_path: Path) -> None:
    assert not read_only.is_read_only(str(tmp_path / "none" / "file"))
    with _mounted(str(tmp_path)) as reader:
        assert read_only.is_read_only(f"{reader.home}/none/file")
