"""Hooks with memories in a database: found there; and if it does not answer, the hook goes on and notes it."""

import socket
from pathlib import Path

import pytest
from postgres_server import needs_postgres

import daypack
from daypack.hooks import failures
from daypack.hooks.call import HookCall
from daypack.hooks.file_decisions.updating import update_entry_decisions
from daypack.hooks.prompt import on_prompt
from daypack.hooks.start import on_start
from daypack.hooks.status.gathering import gather
from daypack.memory.project import project_memory
from daypack.types.memory import About
from tests.hooks.coding_session import CodingSession

FACT = "The staging database listens on port 6543 behind pgbouncer, because 5432 is taken by the old replica."
QUESTION = "Which port does the staging database behind pgbouncer listen on?"


@pytest.fixture
def work(tmp_path: Path) -> CodingSession:
    return CodingSession(tmp_path)


def remember(work: CodingSession) -> str:
    memory_id = project_memory(work.home, work.project)
    assert memory_id
    with daypack.open_memory(home=work.home.root, uid=work.home.uid) as memories:
        memories.add_entry(memory_id, FACT, about=About(session="codex/other", role="user"))
        memories.put_context(memory_id, "# Facts\n\n- Deployments run at noon.\n")
    return memory_id


def asked(work: CodingSession, event: str = "UserPromptSubmit") -> HookCall:
    source = "startup" if event == "SessionStart" else ""
    return HookCall(
        host="claude", event=event, session="5ac28188", cwd=work.project.top, source=source, prompt=QUESTION
    )


@needs_postgres
def test_a_prompt_and_a_start_find_what_the_database_has(
    work: CodingSession, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    memory_id = remember(work)
    assert not Path(work.home.store).exists()
    found = on_prompt(asked(work), work.home)
    assert found
    assert FACT in found.text
    started = on_start(asked(work, "SessionStart"), work.home)
    assert started
    assert "Deployments run at noon." in started.text
    update_entry_decisions(work.home, memory_id)
    status = gather(work.home, work.project.top, None, max_bytes=1 << 20)
    assert status.memory
    assert (status.memory.memory_id, status.memory.place.startswith("postgresql://")) == (memory_id, True)


def test_a_database_that_does_not_answer_costs_a_hook_its_time_and_no_more(
    work: CodingSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(work)  # in files: the project has a memory
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        url = f"postgresql://ada:s3cret@127.0.0.1:{silent.getsockname()[1]}/memories"
        monkeypatch.setenv("DAYPACK_STORE_URL", url)
        monkeypatch.setenv("DAYPACK_MEMORY_MS", "200")
        monkeypatch.setenv("DAYPACK_HOME", work.home.root)
        monkeypatch.setenv("DAYPACK_UID", work.home.uid)
        assert on_prompt(asked(work), work.home) is None
        assert on_start(asked(work, "SessionStart"), work.home) is None
    recent = failures.read_recent(str(Path(work.home.folder) / failures.LOG))
    assert recent
    assert recent.number == 2
    assert "no answer in 200 ms" in recent.newest
    assert "s3cret" not in recent.newest
