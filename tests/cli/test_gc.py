"""`daypack gc` prints the plan, applies it with --apply, and archives, restores and deletes sessions by name."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Command
from turn.scenes import close_all
from upkeep.gc.collectable import full_session, store_blob, swap_out, write_temporary_file

from daypack.cli import gc as command_module
from daypack.upkeep.gc.apply import APPLIED, apply


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


def aged(home: str, name: str = "work") -> Path:
    """A session whose derived files are two months old."""
    session = full_session(home, name)
    swap_out(session, 1, 5)
    store_blob(session, "unreferenced text", ())
    write_temporary_file(session.path)
    session.close()
    long_ago = time.time() - 60 * 86400
    for path in session.path.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    return session.path


def events(folder: Path) -> list[str]:
    return [json.loads(line)["type"] for line in (folder / "events.jsonl").read_text().splitlines()]


@pytest.mark.requirement("S4-GC0")
def test_the_plan_is_printed_and_nothing_is_removed(home: str, command: Command) -> None:
    folder = aged(home)
    before = sorted(folder.rglob("*"))
    done = command("gc", "work", "--home", home)
    assert done.returncode == 0
    assert "context/pack.json: older than 1d" in done.stdout
    assert "unreferenced, and history can reproduce it" in done.stdout
    assert "5 files removable" in done.stdout
    assert f"remove with `daypack gc work --home {home} --apply`" in done.stdout
    assert "1 child file: children are kept unless --children is given" in done.stdout
    assert sorted(folder.rglob("*")) == before
    assert APPLIED not in events(folder)


def test_apply_removes_and_says_what(home: str, command: Command) -> None:
    folder = aged(home)
    done = command("gc", "work", "--apply")
    assert done.returncode == 0
    assert "5 files removed" in done.stdout
    assert "recorded as ev-" in done.stdout
    assert events(folder)[-1] == APPLIED
    assert not (folder / "context" / "pack.json").exists()
    assert "0 files removed, 0 bytes\n" in command("gc", "work", "--apply").stdout
    assert events(folder).count(APPLIED) == 1


def test_json_tells_all(home: str, command: Command) -> None:
    aged(home)
    planned = json.loads(command("gc", "work", "--json").stdout)
    assert (planned["agent"], planned["session"], planned["applied"]) == ("default", "work", None)
    assert {removal["kind"] for removal in planned["plan"]["removals"]} == {"pack", "swap", "dedup", "temporary"}
    assert {retained["path"] for retained in planned["plan"]["retained"]} >= {"messages.jsonl", "events.jsonl", "blob"}
    applied = json.loads(command("gc", "work", "--json", "--apply").stdout)
    assert len(applied["applied"]["removed"]) == 5
    assert applied["applied"]["event"].startswith("ev-")


def test_the_policy_of_the_session_counts_and_a_bad_one_is_told(home: str, command: Command) -> None:
    folder = aged(home)
    policy = folder / "context" / "gc.policy"
    policy.write_text("pack_ttl=90d\nswap_ttl=90d\ndedup_min_refs=0\n")
    assert "1 file removable" in command("gc", "work").stdout
    policy.write_text("pack_ttl=90d\nswap_ttl=soon\n")
    done = command("gc", "work")
    assert done.returncode == 2
    assert "gc.policy, line 2" in done.stderr
    assert "→ write a number and s, m, h, d or w" in done.stderr


def test_something_missing_is_damage(home: str, command: Command) -> None:
    folder = aged(home)
    for blob in (folder / "blob").iterdir():
        blob.unlink()
    done = command("gc", "work")
    assert done.returncode == 3
    assert "missing" in done.stdout
    assert "nothing is removed while a file is missing" in done.stdout
    done = command("gc", "work", "--apply")
    assert done.returncode == 3
    assert "referenced by" in done.stderr
    assert (folder / "context" / "pack.json").exists()


def test_all_sessions_of_all_agents_are_collected(home: str, command: Command) -> None:
    folders = [aged(home, name) for name in ("one", "two")]
    os.rename(folders[1].parents[1], folders[1].parents[2] / "moved")
    os.makedirs(folders[0].parent)
    os.rename(folders[0].parents[2] / "moved" / "session" / "one", folders[0])
    folders[1] = folders[1].parents[2] / "moved" / "session" / "two"
    assert "2 sessions checked" in command("gc", "--all").stdout
    assert all((folder / "context" / "pack.json").exists() for folder in folders)
    done = command("gc", "--all", "--apply")
    assert done.returncode == 0
    assert "default/one: 5 files" in done.stdout
    assert "moved/two: 5 files" in done.stdout
    assert "2 sessions collected" in done.stdout
    assert not [folder for folder in folders if (folder / "context" / "pack.json").exists()]
    assert not (folders[0].parents[3] / "gc.progress").exists()
    again = json.loads(command("gc", "--all", "--apply", "--json").stdout)
    assert [one["applied"]["removed"] for one in again["sessions"]] == [[], []]


def test_an_interrupted_run_over_all_goes_on_where_it_was(
    home: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [aged(home, name) for name in ("a", "b", "c", "d")]
    seen: list[str] = []

    def interrupted(history: object, planned: object) -> object:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(planned.session)  # type: ignore[attr-defined]
        return apply(history, planned)  # type: ignore[arg-type]

    monkeypatch.setattr(command_module, "apply", interrupted)
    assert command("gc", "--all", "--apply").returncode == 130
    assert seen == ["a", "b"]
    progress = folders[0].parents[3] / "gc.progress"
    assert progress.exists()
    monkeypatch.setattr(command_module, "apply", apply)
    done = command("gc", "--all", "--apply")
    assert "resuming an interrupted run after 2 sessions" in done.stderr
    assert "2 sessions collected" in done.stdout
    assert not progress.exists()
    assert not [folder for folder in folders if (folder / "context" / "pack.json").exists()]


def test_a_session_that_fails_does_not_stop_the_others(home: str, command: Command) -> None:
    bad, good = aged(home, "bad"), aged(home, "good")
    (bad / "context" / "gc.policy").write_text("nonsense\n")
    done = command("gc", "--all", "--apply", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [one["session"] for one in told["sessions"]] == ["good"]
    assert "gc.policy, line 1" in told["failed"][0]["path"]
    assert (bad / "context" / "pack.json").exists()
    assert not (good / "context" / "pack.json").exists()


@pytest.mark.requirement("X29", "S4-GC4", "S4-GC5")
def test_a_session_is_archived_restored_and_deleted_by_name(home: str, command: Command) -> None:
    folder = aged(home)
    log = (folder / "messages.jsonl").read_bytes()
    (folder / "context" / "gc.policy").write_text("keep_messages=0\nkeep_events=0\n")
    assert command("gc", "work", "--apply").returncode == 0
    assert command("gc", "--all", "--apply").returncode == 0
    assert (folder / "messages.jsonl").read_bytes() == log  # the switches alone delete nothing
    done = command("gc", "work", "--archive", "--force", "--json")
    moved = json.loads(done.stdout)
    assert moved["number"] == 1
    assert not folder.exists()
    assert command("log", "work").returncode == 1
    assert command("gc", "work", "--restore").stdout.startswith(str(folder))
    assert (folder / "messages.jsonl").read_bytes() == log
    refused = command("gc", "work", "--delete")
    assert refused.returncode == 2
    assert "confirm with --yes" in refused.stderr
    assert folder.exists()
    assert "deleted work" in command("gc", "work", "--delete", "--yes", "--force").stdout
    assert not folder.exists()


def test_the_session_one_works_in_is_protected(home: str, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = aged(home)
    monkeypatch.setenv("DAYPACK_SESSION", "work")
    done = command("gc", "work", "--archive")
    assert done.returncode == 2
    assert "DAYPACK_SESSION" in done.stderr
    assert folder.exists()
    assert command("gc", "work", "--archive", "--force").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("work", "--all"),
        ("--all", "--archive"),
        ("work", "--archive", "--apply"),
        ("work", "--delete", "--yes", "--children"),
        ("work", "--number", "1"),
        ("work", "--archive", "--number", "1"),
        ("work", "--yes"),
        ("work", "--archive", "--restore"),
        ("work", "--restore", "--number", "x"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(home: str, command: Command, arguments: tuple[str, ...]) -> None:
    folder = aged(home)
    before = sorted(folder.rglob("*"))
    assert command("gc", *arguments).returncode == 2
    assert sorted(folder.rglob("*")) == before


def test_what_is_not_there_is_told(home: str, command: Command) -> None:
    for arguments in (["nobody"], ["nobody", "--archive"], ["nobody", "--restore"], ["nobody", "--delete", "--yes"]):
        assert command("gc", *arguments).returncode == 1
    done = command("gc", "--all", "--apply")
    assert done.returncode == 0
    assert "no sessions in" in done.stderr


def test_no_session_and_a_session_with_all_are_two_different_mistakes(command: Command) -> None:
    assert "daypack: session required, or --all [arguments]" in command("gc").stderr
    assert "daypack: a session and --all cannot be combined [arguments]" in command("gc", "talk", "--all").stderr
