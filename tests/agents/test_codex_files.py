"""What becomes of Codex's files: old rollouts are compressed, those of earlier versions migrated, some are lost."""

import json
import os
import time
from pathlib import Path

from coding_agents import Machine, Story, installed
from coding_agents.machine import eventually
from coding_agents.programs import Codex
from model_endpoint import Say

_FEATURES = "\n[features]\nlocal_thread_store_compression = true\n"
_OLD_SECONDS = 90 * 86_400


def make_old(path: Path) -> None:
    then = time.time() - _OLD_SECONDS
    os.utime(path, (then, then))


def make_legacy(path: Path) -> None:
    """Write a rollout as versions before paginated history did: without numbers of rows."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row.pop("ordinal", None)
    rows[0]["payload"].pop("history_mode", None)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    make_old(path)


def imported(machine: Machine) -> dict[str, int]:
    answer = json.loads(machine.daypack("import", "--all", "--agent", "codex", "--json"))
    assert answer["failed"] == []
    return answer["places"][0]["imported"]


def test_migrated_and_compressed_rollouts_add_nothing_to_their_session(machine: Machine, story: Story) -> None:
    codex = installed(Codex, machine)
    question = "In which file are the retries of the client?"
    story.on(question, Say("I look.", calls=(codex.shell("cat README.md"),)), "The retries are in retry.py.")
    session = codex.ask(question)
    path = codex.transcript(session)
    make_legacy(path)
    assert imported(machine)["sessions"] == 1
    before, legacy = machine.recorded("codex", session), path.read_bytes()
    report = json.loads(codex.run("migrate-rollouts", "--apply", "--json"))
    assert [outcome["status"] for outcome in report["outcomes"]] == ["migrated"]
    assert path.read_bytes() != legacy
    assert imported(machine)["messages"] == 0
    make_old(path)
    config = machine.home / ".codex" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + _FEATURES, encoding="utf-8")
    with codex.server() as server:
        server.call("thread/list")
        eventually(lambda: Path(f"{path}.zst").exists() and not path.exists())
    assert imported(machine)["messages"] == 0
    assert machine.recorded("codex", session) == before


def test_a_thread_whose_rollout_is_lost_is_read_from_the_history_database(machine: Machine, story: Story) -> None:
    codex = installed(Codex, machine)
    question = "Which port has module Alder?"
    story.on(question, Say("I ask the disk.", calls=(codex.shell("echo port 4711"),)), "Alder has port 4711.")
    session = codex.ask(question)
    codex.transcript(session).unlink()
    counts = imported(machine)
    assert (counts["without_transcript"], counts["messages"]) == (1, 4)
    parts = machine.recorded("codex", session)
    assert [part.text for part in parts if not part.is_call] == [
        question,
        "I ask the disk.",
        "port 4711\n",
        "Alder has port 4711.",
    ]
    assert [json.loads(part.text)["cmd"] for part in parts if part.is_call] == ["echo port 4711"]
    assert imported(machine)["messages"] == 0
