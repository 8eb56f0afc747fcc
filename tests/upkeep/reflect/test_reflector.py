"""The reflector is the one writer of MEMORY.md: it promotes what sessions proved, and never half."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from turn.scenes import SECRET, close_all, stage
from upkeep.lint.workspaces import compact

from daypack.errors import BadInput, DaypackError
from daypack.files import atomic
from daypack.history.layout import Home
from daypack.session import Session
from daypack.text.statements.passages import Document
from daypack.upkeep.reflect.promotion import CONFIRMED
from daypack.upkeep.reflect.reflector import Reflected, Reflector

LENS = "The laser's lens is cleaned with alcohol, never with water."
FUSE = "The compressor trips the fuse when the oven is on."


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def reflector(workspace: Path, home: str) -> Reflector:
    return Reflector(str(workspace), Home(home, "1"))


def reflect(workspace: Path, home: str, *sessions: Session, **how: Any) -> Reflected:
    named = [(f"default/{one.name}", one.history) for one in sessions]
    return reflector(workspace, home).reflect(named, **how)


def twice(home: str, *facts: str, decisions: tuple[str, ...] = (), name: str = "work") -> Session:
    """A session in which two compactions found the same."""
    session = stage(home, name)
    compact(session, facts, decisions)
    compact(session, facts, decisions, confirmed=1)
    return session


def test_what_is_merely_carried_from_one_compaction_to_the_next_came_once(home: str, workspace: Path) -> None:
    session = stage(home)
    compact(session, [LENS])
    compact(session, [LENS])
    found = reflect(workspace, home, session)
    assert (found.promoted, [candidate.reason for candidate in found.refused]) == ((), ["occurred only once"])


def test_a_short_fact_is_promoted_once(home: str, workspace: Path) -> None:
    session = twice(home, "Default port is 1100.")
    reflect(workspace, home, session)
    before = (workspace / "MEMORY.md").read_text()
    reflect(workspace, home, session)
    assert (workspace / "MEMORY.md").read_text() == before
    assert before.count("1100") == 1


@pytest.mark.parametrize("text", ["All 123 tests pass now.", "Tests fail: 3 failed, 120 passed.", "The build is red."])
def test_how_the_tests_went_is_not_promoted(home: str, workspace: Path, text: str) -> None:
    found = reflect(workspace, home, twice(home, text))
    assert [candidate.reason.startswith("belongs to a single session") for candidate in found.refused] == [True]


@pytest.mark.requirement("S1-L1", "S1-L1.1", "S1-L1.2")
def test_a_fact_of_two_sessions_becomes_a_bullet_with_its_origin(home: str, workspace: Path) -> None:
    one, two = stage(home, "one"), stage(home, "two")
    compact(one, [LENS, "The oven hums at night."])
    compact(two, ["The laser’s lens is cleaned with **alcohol**, never with water"])
    found = reflect(workspace, home, one, two)
    assert (workspace / "MEMORY.md").read_text() == f"# Memory\n\n- {LENS} [default/one f1]\n"
    assert [(candidate.why, [origin.session for origin in candidate.origins]) for candidate in found.promoted] == [
        ("sessions", ["default/one", "default/two"])
    ]
    assert [candidate.reason for candidate in found.refused] == ["occurred only once"]
    noted = msgspec.json.decode(Path(reflector(workspace, home).origins).read_bytes())
    origins = noted["bullets"][f"- {LENS} [default/one f1]"]["origins"]
    assert origins[0] == {"session": "default/one", "id": "f1", "source": "messages:1"}


def test_a_fact_or_decision_of_two_compactions_is_promoted(home: str, workspace: Path) -> None:
    session = twice(home, LENS, decisions=("Bolts are metric, M3 to M12.",))
    found = reflect(workspace, home, session)
    assert [(candidate.text, candidate.why) for candidate in found.promoted] == [
        (LENS, "compactions"),
        ("Bolts are metric, M3 to M12.", "compactions"),
    ]


def test_a_confirmed_fact_is_promoted_at_once(home: str, workspace: Path) -> None:
    session = stage(home)
    compact(session, [LENS, FUSE, "SKF delivers on Tuesdays."])
    session.append_event(CONFIRMED, {"id": "f2"})
    session.append("user", "Remember: SKF delivers on Tuesdays, always.")
    found = reflect(workspace, home, session)
    assert [(candidate.text, candidate.why) for candidate in found.promoted] == [
        (FUSE, "confirmed"),
        ("SKF delivers on Tuesdays.", "confirmed"),
    ]


def test_what_no_longer_stands_is_not_promoted(home: str, workspace: Path) -> None:
    session = twice(home, LENS)
    compact(session, [FUSE])
    assert reflect(workspace, home, session).promoted == ()
    again = twice(home, LENS, name="other")
    for event in list(again.events()):
        again.append_event("context.compaction.undone", {"compaction": event.id})
    assert reflect(workspace, home, again).promoted == ()


@pytest.mark.requirement("S1-L1.3")
@pytest.mark.parametrize("name", ["AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md"])
def test_what_a_file_says_already_is_not_promoted(home: str, workspace: Path, name: str) -> None:
    (workspace / name).write_text("# X\n\n- Clean the lens of the laser with alcohol, never with water!\n")
    found = reflect(workspace, home, twice(home, LENS, "The laser's lens is cleaned with alcohol and never with water"))
    assert found.promoted == ()
    assert {candidate.reason for candidate in found.refused} == {f"stated in {name}"}


def test_a_fact_with_a_number_of_its_own_is_said_by_nobody_else(home: str, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("# A\n\n- The lens of the laser is cleaned with alcohol.\n")
    found = reflect(workspace, home, twice(home, "The lens of the laser is cleaned with alcohol every 40 hours."))
    assert len(found.promoted) == 1


@pytest.mark.requirement("S1-L1.2")
@pytest.mark.parametrize(
    "text",
    [
        "Currently printing the jaws.",
        "We fixed the stock script.",
        "The user asked for the list.",
        "2026-02-14: tested the camera",
        "TODO: send the list",
        f"The token of the shop is {SECRET}.",
    ],
)
def test_state_narrative_and_secrets_stay_out(home: str, workspace: Path, text: str) -> None:
    found = reflect(workspace, home, twice(home, text))
    assert found.promoted == ()
    assert not (workspace / "MEMORY.md").exists()


def test_what_was_written_by_hand_stays_byte_for_byte(home: str, workspace: Path) -> None:
    hand = "# Things\n\n*  Odd  spacing stays \n\n    code\n- and a line without an end"
    (workspace / "MEMORY.md").write_text(hand)
    (workspace / "MEMORY.md").chmod(0o640)
    found = reflect(workspace, home, twice(home, LENS))
    assert (workspace / "MEMORY.md").stat().st_mode & 0o777 == 0o640
    assert (workspace / "MEMORY.md").read_text() == f"{hand}\n- {LENS} [default/work f1]\n"
    assert found.written.backup is not None
    assert Path(found.written.backup).read_text() == hand
    assert f"+- {LENS}" in found.written.diff


def test_reflecting_again_changes_nothing(home: str, workspace: Path) -> None:
    session = twice(home, LENS)
    reflect(workspace, home, session)
    before = written(workspace / "MEMORY.md")
    found = reflect(workspace, home, session)
    assert (found.promoted, found.written.diff, found.written.backup) == ((), "", None)
    assert written(workspace / "MEMORY.md") == before


def written(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def test_a_full_memory_takes_no_more(home: str, workspace: Path) -> None:
    (workspace / "MEMORY.md").write_text("- One lathe.\n- Two mills.\n")
    found = reflect(workspace, home, twice(home, LENS, FUSE), max_bullets=3)
    assert [candidate.text for candidate in found.promoted] == [LENS]
    assert [candidate.reason for candidate in found.refused] == ["MEMORY.md is full: 3 bullets"]


def test_a_dry_run_writes_nothing_and_says_the_same(home: str, workspace: Path) -> None:
    session = twice(home, LENS)
    tried = reflect(workspace, home, session, dry_run=True)
    assert list(workspace.iterdir()) == []
    assert not Path(reflector(workspace, home).folder).exists()
    done = reflect(workspace, home, session)
    assert (tried.promoted, tried.written.diff) == (done.promoted, done.written.diff)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_failed_write_leaves_the_former_memory(
    home: str, workspace: Path, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "MEMORY.md").write_text("- One lathe.\n")
    session = twice(home, LENS)
    calls = iter(range(1, 100))
    place: Callable[..., bool] = getattr(atomic, "_place")  # noqa: B009 — every write of a file goes through it

    def fail(path: str, data: bytes, **how: bool) -> bool:
        if next(calls) == failing:
            raise atomic.refusal(path, OSError(28, "No space left on device"), "replace")
        return place(path, data, **how)

    monkeypatch.setattr(atomic, "_place", fail)
    with pytest.raises(DaypackError, match="No space"):
        reflect(workspace, home, session)
    assert (workspace / "MEMORY.md").read_text() == "- One lathe.\n"
    assert [path.name for path in workspace.iterdir()] == ["MEMORY.md"]
    monkeypatch.undo()
    assert len(reflect(workspace, home, session).promoted) == 1


@pytest.mark.requirement("S1-L1.1")
def test_two_reflectors_never_interleave(home: str, workspace: Path) -> None:
    sessions = [
        twice(home, f"Machine {name} is painted {name}.", name=name) for name in ("red", "blue", "green", "grey")
    ]
    threads = [threading.Thread(target=reflect, args=(workspace, home, one)) for one in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (workspace / "MEMORY.md").read_text()
    assert len(Document("MEMORY.md", text).items) == 4
    noted = msgspec.json.decode(Path(reflector(workspace, home).origins).read_bytes())
    assert len(noted["bullets"]) == 4


def test_a_memory_that_changed_meanwhile_is_not_overwritten(home: str, workspace: Path) -> None:
    (workspace / "MEMORY.md").write_text("- New.\n")
    with pytest.raises(BadInput, match="changed in the meantime"):
        reflector(workspace, home).rewrite("- Old.\n", "")
    assert (workspace / "MEMORY.md").read_text() == "- New.\n"
