"""The doctor examines store, accounts and indexes, changes nothing, and repairs only what was planned and asked for."""

import json
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memory.damage import change, store_path
from memory_server import run_daypack

from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.memory.store.examination import Examination
from daypack.memory.store.port import NewEntry
from daypack.memory.store.repair import Repair
from daypack.memory.tools import Memories, open_memory
from daypack.types.memory import About
from daypack.upkeep.store_doctor import apply, report
from daypack.upkeep.store_doctor.apply import apply_repair
from daypack.upkeep.store_doctor.indexes import examine_indexes
from daypack.upkeep.store_doctor.report import Examined, examine_memories

DAMAGE = {
    "entry": ("UPDATE entries SET author = 'Eve' WHERE seq = 2", "entry 2", "move entry 2"),
    "text of another entry": ("UPDATE entries SET text = 3 WHERE seq = 2", "entry 2", "move entry 2"),
    "seq": ("UPDATE entries SET seq = 90 WHERE seq = 2", "entry 90", "move entry 90"),
    "document": ("UPDATE documents SET content = 'Eve' WHERE version = 2", "document 2", "move document 2"),
    "all documents": ("UPDATE documents SET content = 'Eve'", "no version", "placeholder"),
    "title": ("UPDATE memories SET title = 'Eve'", "memory ", "keep memory"),
    "owner": ("UPDATE memories SET owner = 2", "memory ", "of local as it is now"),
    "no owner": ("UPDATE memories SET owner = 77", "does not exist", "of local as it is now"),
    "quota": ("UPDATE users SET max_entries = 999 WHERE number = 1", "user local", "keep user local"),
    "token": ("UPDATE tokens SET scope = 'write'", "token ", "make a new one"),
    "token without a user": ("DELETE FROM users WHERE user = 'ada'", "its user ada", "move token"),
    "entry count": ("UPDATE memories SET entries = 99", "counts 99 entries", "count memory"),
    "newest": ("UPDATE memories SET newest = 1", "newest entry is 1", "count memory"),
    "no number left": ("UPDATE memories SET newest = 4294967295", "newest entry is 4294967295", "count memory"),
    "number of no id": ("UPDATE memories SET newest = 4294967296", "newest entry is 4294967296", "count memory"),
    "version of no id": ("UPDATE memories SET documents = 1 << 40", "newest document is", "count memory"),
    "time that is none": ("UPDATE memories SET latest = 'x'", "latest time is x", "count memory"),
    "time ahead": ("UPDATE memories SET latest = latest + 999999999", "latest time is", "count memory"),
    "usage": ("UPDATE users SET bytes = 7 WHERE number = 1", "its usage is", "count the usage"),
    "orphaned entry": ("UPDATE entries SET memory = 5 WHERE seq = 2", "its memory does not exist", "move a row"),
    "orphaned text": ("DELETE FROM entries WHERE seq = 2", "its entry does not exist", "move a row of texts"),
    "orphaned document": ("UPDATE documents SET memory = 5 WHERE version = 2", "its memory", "move a row of documents"),
    "tags": ("DELETE FROM tags WHERE seq = 2", "tags or client keys", "list the tags"),
    "keys": ("UPDATE keys SET key = 'other' WHERE seq = 2", "tags or client keys", "list the tags"),
    "store id": ("UPDATE store SET id = 'x'", "not 16 hexadecimal digits", "a new id"),
    "trigger of another": ("CREATE TRIGGER t AFTER INSERT ON keys BEGIN DELETE FROM tags; END", "trigger t", "remove"),
    "no index": ("DROP INDEX documents_of", "index documents_of: it does not exist", "create index documents_of"),
    "no tags": ("DROP TABLE tags", "table tags: it does not exist", "create table tags"),
    "no keys": ("DROP TABLE keys", "table keys: it does not exist", "create table keys"),
    "no tokens": ("DROP TABLE tokens", "table tokens: it does not exist", "create table tokens"),
    "no store id": ("DROP TABLE store", "table store: it does not exist", "create table store"),
    "column": ("ALTER TABLE entries RENAME COLUMN author TO buthor", "have other names", "write a new file"),
    "running erasure": ("INSERT INTO erasing VALUES (1)", "nothing is protected", "protect"),
}


@pytest.fixture
def place(home: str) -> Home:
    return find_home(home)


@pytest.fixture
def memories(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memories]:
    """A memory with four entries and three versions of its document, two users and a token; the index is built."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    with open_memory(home=home) as memories:
        memory = memories.create_memory("Launch").memory_id
        for seq in range(1, 5):
            memories.add_entry(memory, f"crane {seq} is blue", about={"tags": ["a", "b"]}, client_key=f"k{seq}")
        for version in (2, 3):
            memories.put_context(memory, f"# Version {version}")
        memories.users.get("ada")
        memories.users.new_token("ada", scope="read")
        memories.search_memories(memory, "crane")
        yield memories


def held(memories: Memories) -> set[object]:
    """Return every text of the file, also in quarantine."""
    with closing(sqlite3.connect(store_path(memories))) as file:
        texts = {row[0] for row in file.execute("SELECT raw FROM texts")}
        texts |= {row[0] for row in file.execute("SELECT content FROM documents")}
        return texts | {row[0] for row in file.execute("SELECT value FROM quarantine")}


def test_a_sound_store_has_no_findings(memories: Memories, place: Home) -> None:
    memories.close()
    before = Path(store_path(memories)).read_bytes()
    report = examine_memories(place).report()
    assert (report.findings, report.steps, report.memories, report.records) == ((), (), 1, 7)
    assert Path(store_path(memories)).read_bytes() == before


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_planned_and_repaired_without_loss(memories: Memories, place: Home, kind: str) -> None:
    statement, problem, step = DAMAGE[kind]
    change(memories, statement)
    texts = held(memories)
    report = examine_memories(place).report()
    assert any(problem in finding.problem for finding in report.findings), report.findings
    assert any(step in planned for planned in report.steps), report.steps
    assert held(memories) == texts
    left = apply_repair(place, report.id)
    assert left.findings == ()
    assert texts <= held(memories)
    memory = memories.memories()[0].memory_id
    page = memories.list_entries(memory)
    assert page.damaged == ()
    assert {entry.raw_entry for entry in page.entries} >= {f"crane {seq} is blue" for seq in (1, 3, 4)}
    assert memories.add_entry(memory, "and a new one").entry_id
    assert memories.search_memories(memory, "crane blue").damaged == ()
    assert memories.get_context(memory).damaged == ()


def test_missing_guards_are_restored(memories: Memories, place: Home) -> None:
    with closing(sqlite3.connect(store_path(memories))) as file, file:
        file.execute("DROP TRIGGER entries_kept")
        file.execute("DROP TRIGGER texts_unchanged")
        file.execute("CREATE TRIGGER texts_unchanged BEFORE UPDATE ON texts BEGIN SELECT 1; END")
    steps = examine_memories(place).report().steps
    assert steps == ("create trigger entries_kept", "restore trigger texts_unchanged")
    assert apply_repair(place).findings == ()
    with closing(sqlite3.connect(store_path(memories))) as file:
        for statement in ("DELETE FROM entries", "UPDATE texts SET raw = ''"):
            with pytest.raises(sqlite3.IntegrityError):
                file.execute(statement)


def test_without_a_table_of_records_only_a_backup_helps(memories: Memories, place: Home) -> None:
    change_without_guards(memories, "DROP TABLE texts")
    report = examine_memories(place).report()
    assert [finding.problem for finding in report.findings] == ["table texts: it does not exist, nor do its records"]
    assert (report.steps, "backup" in report.findings[0].advice) == ((), True)
    assert apply_repair(place).findings == report.findings


def change_without_guards(memories: Memories, statement: str) -> None:
    memories.close()
    with closing(sqlite3.connect(store_path(memories))) as file, file:
        file.execute(statement)


def test_a_damaged_format_number_is_restored_by_the_next_use(memories: Memories, place: Home) -> None:
    memory = memories.memories()[0].memory_id
    change(memories, "PRAGMA user_version = 1")
    assert len(memories.list_entries(memory).entries) == 4
    assert examine_memories(place).report().findings == ()


def test_what_was_erased_since_the_plan_is_not_repaired(
    memories: Memories, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process finishes the same repair, or erases the damaged record, between the look and the transaction."""
    change(memories, DAMAGE["entry"][0], DAMAGE["document"][0])
    looked = examine_memories(place)
    apply_repair(place)

    def known(_: Home) -> Examined:
        return looked

    monkeypatch.setattr(apply, "examine_memories", known)
    apply_repair(place)
    monkeypatch.undo()
    assert examine_memories(place).report().findings == ()


def test_two_repairs_at_once_are_one(memories: Memories, place: Home) -> None:
    memories.close()
    path = Path(store_path(memories))
    change(memories, *(DAMAGE[kind][0] for kind in ("entry", "title", "usage")))
    data = bytearray(path.read_bytes())
    data[21] ^= 0x55
    path.write_bytes(data)
    with ThreadPoolExecutor(4) as pool:
        assert {report.findings for report in pool.map(apply_repair, [place] * 4)} == {()}
    assert len([one for one in path.parent.iterdir() if ".damaged-" in one.name]) == 1


def test_entries_that_are_indexed_meanwhile_are_no_problem(
    memories: Memories, place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memories.memories()[0].memory_id

    def late(*args: Any) -> Any:
        memories.add_entry(memory, "a crane that came meanwhile")
        memories.search_memories(memory, "crane")
        memories.search_memories(memories.create_memory("Late").memory_id, "crane")
        return examine_indexes(*args)

    monkeypatch.setattr(report, "examine_indexes", late)
    assert examine_memories(place).report().findings == ()


def test_the_work_of_a_repair_grows_with_the_damage_and_not_with_its_square(home: str) -> None:
    assert steps_of_repair(home + "-large", 1_600) < 8 * steps_of_repair(home + "-small", 400)


def steps_of_repair(home: str, entries: int) -> int:
    """Return how many thousand instructions SQLite executes to repair a store, a quarter of it damaged."""
    with open_memory(home=home) as memories:
        memory = memories.create_memory("Launch").memory_id
        new = [NewEntry(raw=f"crane {seq}", summary="crane", about=About(tags=("a",))) for seq in range(entries)]
        memories.backend.store.add("local", memory, new)
        change(memories, "UPDATE entries SET author = 'Eve' WHERE seq % 4 = 0")
    counted = [0]

    def count() -> None:
        counted[0] += 1

    with closing(sqlite3.connect(store_path(memories), isolation_level=None)) as file:
        problems = Examination(file).problems()
        assert len([problem for problem in problems if "checksum" in problem.problem]) == entries // 4
        file.set_progress_handler(count, 1_000)
        Repair(file).run(problems)
    return counted[0]


def test_nothing_is_applied_that_was_not_planned(memories: Memories, place: Home) -> None:
    change(memories, DAMAGE["entry"][0])
    planned = examine_memories(place).report().id
    change(memories, DAMAGE["document"][0])
    with pytest.raises(BadInput, match="the plan has changed"):
        apply_repair(place, planned)
    problems = " ".join(finding.problem for finding in examine_memories(place).report().findings)
    assert "entry 2" in problems
    assert "document 2" in problems


def test_the_command_plans_then_applies(memories: Memories, home: str) -> None:
    assert run_daypack(home, "doctor").returncode == 0
    change(memories, DAMAGE["entry"][0])
    found = run_daypack(home, "doctor")
    assert (found.returncode, found.stdout.count("checksum mismatch")) == (3, 1)
    shown = run_daypack(home, "doctor", "--repair")
    assert shown.returncode == 3
    assert "would  move entry 2" in shown.stdout
    plan = json.loads(run_daypack(home, "doctor", "--repair", "--json").stdout)["plan"]["id"]
    assert plan in shown.stdout
    done = run_daypack(home, "doctor", "--repair", "--apply", "--plan", plan)
    assert (done.returncode, "no problems left" in done.stdout) == (0, True), done.stdout
    assert run_daypack(home, "doctor").returncode == 0
    for wrong in (("--apply",), ("--repair", "--plan", "x"), ("work", "--repair")):
        assert run_daypack(home, "doctor", *wrong).returncode == 2


def index_file(memories: Memories, name: str) -> str:
    return os.path.join(memories.backend.indexes.folder, memories.memories()[0].memory_id, name)


def test_a_damaged_index_is_removed_and_rebuilt(memories: Memories, place: Home) -> None:
    memory = memories.memories()[0].memory_id
    path = Path(index_file(memories, "words.sqlite"))
    memories.close()
    data = bytearray(path.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    path.write_bytes(data)
    report = examine_memories(place).report()
    assert [(finding.severity, finding.path) for finding in report.findings] == [("warning", str(path))]
    assert apply_repair(place).findings == ()
    assert len(memories.search_memories(memory, "crane").entries) == 4


def test_an_index_of_no_memory_and_rows_of_no_entry_are_found(memories: Memories, place: Home) -> None:
    os.makedirs(os.path.join(memories.backend.indexes.folder, "f" * 32))
    change(memories, "DELETE FROM texts WHERE number = 4", "DELETE FROM entries WHERE seq = 4")
    problems = [finding.problem for finding in examine_memories(place).report().findings]
    assert any("rows belong to no record" in problem for problem in problems)
    assert any("a memory that does not exist" in problem for problem in problems)
    assert apply_repair(place).findings == ()


@pytest.mark.parametrize("offset", [0, 5, 16, 18, 21, 45, 59, 63, 70])
def test_a_damaged_header_is_restored(memories: Memories, place: Home, offset: int) -> None:
    memory = memories.memories()[0].memory_id
    memories.close()
    path = Path(store_path(memories))
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x55
    path.write_bytes(data)
    report = examine_memories(place).report()
    assert report.findings
    assert apply_repair(place).findings == ()
    assert len(memories.list_entries(memory).entries) == 4
    assert [one for one in path.parent.iterdir() if ".damaged-" in one.name]


def test_a_file_with_a_destroyed_page_is_written_again_with_what_can_be_read(memories: Memories, place: Home) -> None:
    memory = memories.memories()[0].memory_id
    for seq in range(5, 200):
        memories.add_entry(memory, f"crane {seq} is blue " + "x" * 200, "crane")
    memories.close()
    path = Path(store_path(memories))
    with closing(sqlite3.connect(path)) as file:
        (page,) = file.execute(
            "SELECT pageno FROM dbstat WHERE name = 'texts' AND pagetype = 'leaf' LIMIT 1 OFFSET 5"
        ).fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    page = memories.list_entries(memory, limit=50)
    barrier = memories.await_consistency(memory)
    assert barrier.status == "consistent"
    memories.close()
    report = examine_memories(place).report()
    assert any("write a new file" in step for step in report.steps)
    assert apply_repair(place).findings == ()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (kept,) = file.execute("SELECT count(*) FROM entries").fetchone()
        moved = {row[0] for row in file.execute("SELECT id FROM quarantine WHERE kind = 'entry'")}
    assert 160 < kept < 199
    assert len(moved) == 199 - kept
    (aside,) = (one for one in path.parent.iterdir() if ".damaged-" in one.name)
    assert aside.read_bytes()[100:] == bytes(data)[100:]  # the header says that there is no journal any more
    assert memories.get_memory(memory).stats.entries == kept
