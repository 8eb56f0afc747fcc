"""`daypack reflect` promotes what sessions proved into the MEMORY.md of their workspace."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from upkeep.lint.workspaces import compact

from daypack.session import open_session

Command = Callable[..., subprocess.CompletedProcess[str]]
LENS = "The laser's lens is cleaned with alcohol."


@pytest.fixture
def sessions(command: Command, home: str) -> tuple[str, str]:
    """Two sessions of the folder the command runs in, with a fact in common."""
    for name in ("one", "two"):
        with open_session(name, home=home) as session:
            compact(session, [LENS, f"Session {name} has a parrot of its own."])
    return "one", "two"


@pytest.mark.requirement("S1-L1", "S1-L1.1")
def test_a_common_fact_goes_into_the_memory_of_the_workspace(command: Command, sessions: tuple[str, str]) -> None:
    done = command("reflect", *sessions)
    assert done.returncode == 0
    assert f"+- {LENS} [default/one f1]" in done.stdout
    assert "1 fact promoted into" in done.stdout
    assert "occurred only once" in done.stdout
    assert Path("MEMORY.md").read_text() == f"# Memory\n\n- {LENS} [default/one f1]\n"


def test_what_is_not_promoted_is_counted_by_reason_with_examples(command: Command, home: str) -> None:
    animals = ("parrot", "walrus", "heron", "badger", "otter", "weasel", "magpie")
    facts = [f"The {animal} sleeps under the {animal} bench." for animal in animals]
    for name in ("one", "two"):
        with open_session(name, home=home) as session:
            compact(session, [LENS, *(facts if name == "one" else [])])
    Path("MEMORY.md").write_text(f"# Memory\n\n- {LENS}\n")
    done = command("reflect", "one", "two")
    assert done.stdout.splitlines() == [
        "not promoted: 7 facts, occurred only once",
        *(f"  {fact}" for fact in facts[:3]),
        "  … and 4 more; -v lists all",
        "not promoted: 1 fact, stated in MEMORY.md",
        f"  {LENS}",
        f"0 facts promoted into {Path('MEMORY.md').resolve()}",
    ]
    every = command("reflect", "one", "two", "-v").stdout.splitlines()
    assert every[:8] == ["not promoted: 7 facts, occurred only once", *(f"  {fact}" for fact in facts)]
    assert len(json.loads(command("reflect", "one", "two", "--json").stdout)["reflected"]["refused"]) == 8


def test_one_session_alone_proves_nothing(command: Command, sessions: tuple[str, str]) -> None:
    assert "0 facts promoted" in command("reflect", sessions[0], sessions[0]).stdout
    assert not Path("MEMORY.md").exists()


def test_a_dry_run_shows_and_writes_nothing(command: Command, sessions: tuple[str, str]) -> None:
    done = command("reflect", *sessions, "--dry-run", "--json")
    found = json.loads(done.stdout)
    assert found["dry_run"] is True
    assert [one["text"] for one in found["reflected"]["promoted"]] == [LENS]
    assert found["reflected"]["written"]["diff"].startswith("--- a/MEMORY.md\n")
    assert not Path("MEMORY.md").exists()


def test_sessions_of_different_folders_need_a_workspace(command: Command, home: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with open_session(name, home=home, workspace=str(tmp_path / name)) as session:
            compact(session, [LENS])
    done = command("reflect", "one", "two")
    assert (done.returncode, "no common workspace" in done.stderr) == (2, True)
    assert command("reflect", "one", "two", "--workspace", str(tmp_path / "two")).returncode == 0
    assert (tmp_path / "two" / "MEMORY.md").exists()


def test_the_number_of_bullets_is_bounded(command: Command, sessions: tuple[str, str]) -> None:
    done = command("reflect", *sessions, "--max-bullets", "0")
    assert "MEMORY.md is full: 0 bullets" in done.stdout
    assert not Path("MEMORY.md").exists()


def test_a_session_that_is_not_there_is_told(command: Command) -> None:
    done = command("reflect", "nowhere")
    assert (done.returncode, "no such session" in done.stderr) == (1, True)
