"""A kill at any file call and any statement of a repair leaves a store that opens and a repair that can be finished."""

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign
from faults import Faults, calls_of, injected
from memory.damage import change, store_path

from daypack.history.home import find_home
from daypack.memory.tools import Memories, open_memory
from daypack.upkeep.store_doctor.apply import apply_repair
from daypack.upkeep.store_doctor.report import examine_memories

ENTRIES = 60


@pytest.fixture
def damaged(home: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home whose store has a destroyed page, a damaged header, damaged records and wrong counts."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    with open_memory(home=home) as memories:
        memory = memories.create_memory("Launch").memory_id
        for seq in range(1, ENTRIES + 1):
            memories.add_entry(memory, f"crane {seq} " + "x" * 400, "crane", client_key=f"k{seq}")
        memories.search_memories(memory, "crane")
        change(
            memories,
            "UPDATE entries SET author = 'Eve' WHERE seq IN (2, 50)",
            "UPDATE memories SET entries = 9, title = 'Eve'",
        )
        destroy(memories)
    return home


def destroy(memories: Memories) -> None:
    path = Path(store_path(memories))
    with closing(sqlite3.connect(path)) as file:
        query = "SELECT pageno FROM dbstat WHERE name = 'texts' AND pagetype = 'leaf' LIMIT 1 OFFSET 2"
        (page,) = file.execute(query).fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    data[21] = 0
    path.write_bytes(data)


def killed(work: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def check_finished(home: str, expected: list[str]) -> None:
    assert apply_repair(find_home(home)).findings == ()
    with open_memory(home=home) as memories:
        memory = memories.memories()[0].memory_id
        texts: list[str] = []
        page = memories.list_entries(memory, limit=50)
        texts += [entry.raw_entry for entry in page.entries]
        while page.next_before:
            page = memories.list_entries(memory, limit=50, before=page.next_before)
            texts += [entry.raw_entry for entry in page.entries]
        assert texts == expected
        assert memories.add_entry(memory, "and a new one").seq == ENTRIES + 1
    folder = Path(find_home(home).memory)
    assert [name for name in os.listdir(folder) if name.endswith((".repair", "-copy"))] == []
    assert any(".damaged-" in name for name in os.listdir(folder))


def repaired_texts(home: str, tmp_path: Path) -> list[str]:
    """Return what a repair that is not interrupted leaves."""
    whole = str(tmp_path / "whole")
    shutil.copytree(home, whole)
    assert examine_memories(find_home(whole)).report().findings
    assert apply_repair(find_home(whole)).findings == ()
    with open_memory(home=whole) as memories:
        memory = memories.memories()[0].memory_id
        pages = [memories.list_entries(memory, limit=50)]
        if pages[0].next_before:
            pages.append(memories.list_entries(memory, limit=50, before=pages[0].next_before))
        return [entry.raw_entry for page in pages for entry in page.entries]


def test_a_kill_at_any_file_call_leaves_a_repair_that_can_be_finished(
    damaged: str, tmp_path: Path, campaign: Campaign
) -> None:
    expected = repaired_texts(damaged, tmp_path)
    assert ENTRIES - 20 < len(expected) < ENTRIES - 2
    counted = str(tmp_path / "counted")
    shutil.copytree(damaged, counted)
    calls = calls_of(lambda: apply_repair(find_home(counted)))
    for at in campaign.calls("kills", calls):
        home = str(tmp_path / f"kill-{at}")
        shutil.copytree(damaged, home)

        def work(home: str = home, at: int = at) -> None:
            with injected(Faults(at, "kill")):
                apply_repair(find_home(home))

        killed(work)
        check_finished(home, expected)
        shutil.rmtree(home)


def test_a_kill_at_any_statement_leaves_a_repair_that_can_be_finished(
    damaged: str, tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = repaired_texts(damaged, tmp_path)
    real = sqlite3.connect
    statements: list[str] = []
    kill_at = [0]

    def count(statement: str) -> None:
        statements.append(statement)
        if len(statements) == kill_at[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*args, **options)
        connection.set_trace_callback(count)
        return connection

    counted = str(tmp_path / "counted")
    shutil.copytree(damaged, counted)
    monkeypatch.setattr(sqlite3, "connect", connect)
    apply_repair(find_home(counted))
    names = [statement.split()[0] for statement in statements]
    statements.clear()
    for at in campaign.calls("kills", names, every=10):
        home = str(tmp_path / f"kill-{at}")
        shutil.copytree(damaged, home)
        kill_at[0] = at
        killed(lambda home=home: apply_repair(find_home(home)))  # type: ignore[misc]
        kill_at[0] = 0
        check_finished(home, expected)
        shutil.rmtree(home)
        statements.clear()
