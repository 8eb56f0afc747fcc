"""The process beside opencode, started as its plug-in starts it, on a recorded store."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from hooks.hook_process import HookProgram

from daypack.history.home import find_home
from daypack.hooks.call import HookCall
from daypack.hooks.intake.take_in import take_in, wait_for
from daypack.importers.all_places.ledger import Ledger
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import PathsScanner
from daypack.importers.opencode_store import session_path

RECORDED = Path(__file__).parents[2] / "importers" / "recorded" / "opencode.sql"
SESSION = "ses_e133e95e0ffeuZEjFJSkY9RxCa"


class Beside:
    """Requests to a process, one after the other, and the answers."""

    def __init__(self, hook: HookProgram, data: Path) -> None:
        self.hook = hook
        self._environment = hook.environment(XDG_DATA_HOME=str(data), DAYPACK_DURABILITY="os")

    def ask(self, *requests: dict[str, Any] | bytes) -> list[dict[str, Any]]:
        with TemporaryFile() as answers:
            self.tell(answers.fileno(), *requests)
            answers.seek(0)
            return [json.loads(line) for line in answers]

    def tell(self, answers: int, *requests: dict[str, Any] | bytes) -> None:
        """Send requests; the answers go to an open file."""
        lines = [each if isinstance(each, bytes) else json.dumps({"n": 1, **each}).encode() for each in requests]
        subprocess.run(
            [sys.executable, "-m", "daypack", "hook", "opencode", "--serve"],
            input=b"\n".join(lines) + b"\n",
            env=self._environment,
            stdout=answers,
            timeout=60,
            check=True,
        )


@pytest.fixture
def visible(tmp_path: Path) -> list[str]:
    """The messages of a session, in a store of opencode."""
    folder = tmp_path / "data" / "opencode"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "opencode.db")) as connection:
        connection.executescript(RECORDED.read_text(encoding="utf-8"))
        query = "SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id"
        return [row[0] for row in connection.execute(query, (SESSION,))]


@pytest.fixture
def beside(hook: HookProgram, tmp_path: Path, visible: list[str]) -> Beside:
    assert visible
    return Beside(hook, tmp_path / "data")


def pack(visible: list[str], limit: int, user: str = "") -> dict[str, Any]:
    request = {"session": SESSION, "visible": visible, "user": user or visible[-2], "model": "m", "limit": limit}
    return {"do": "pack", "session": SESSION, "request": request}


def test_messages_that_fit_are_not_packed(beside: Beside, visible: list[str]) -> None:
    assert beside.ask(pack(visible, 100_000)) == [{"n": 1, "result": None}]
    assert beside.hook.log == []


def test_the_session_is_stored_once_with_the_keys_of_an_import(beside: Beside, visible: list[str]) -> None:
    beside.ask(pack(visible, 100_000), pack(visible, 100_000))
    beside.ask(pack(visible, 100_000))
    (log,) = beside.hook.folder.glob(f"agent/opencode/session/{SESSION}/messages.jsonl")
    keys = [json.loads(line)["client_key"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == 17


def test_what_is_no_longer_visible_gets_a_lane_of_its_own(beside: Beside, visible: list[str]) -> None:
    fewer = visible[:3] + visible[-2:]
    assert beside.ask(pack(fewer, 100_000), pack(fewer, 100_000)) == [{"n": 1, "result": None}] * 2
    lanes = sorted(os.listdir(beside.hook.folder / "agent" / "opencode" / "session"))
    (lane,) = (name for name in lanes if "--window-" in name)
    log = beside.hook.folder / "agent" / "opencode" / "session" / lane / "messages.jsonl"
    ids = [json.loads(line)["meta"]["id"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert list(dict.fromkeys(ids)) == fewer


@pytest.mark.parametrize(
    "request_", [b"not JSON", b"[]", b'{"n":1,"do":"nothing"}', b'{"n":1,"do":"pack"}', b'{"n":1,"do":"texts"}']
)
def test_a_request_that_cannot_be_answered_is_refused_and_the_next_one_answered(
    beside: Beside, visible: list[str], request_: bytes
) -> None:
    refused, answered = beside.ask(request_, pack(visible, 100_000))
    assert refused["error"]
    assert answered == {"n": 1, "result": None}
    assert len(beside.hook.log) == 1


def test_events_told_before_opencode_ended_are_done_although_nobody_reads_the_answers(
    beside: Beside,
) -> None:
    out, answers = os.pipe()
    os.close(out)
    stop = {"do": "event", "event": "Stop", "session": SESSION, "cwd": "/"}
    beside.tell(answers, {"do": "texts", "session": SESSION}, stop)
    os.close(answers)
    home = find_home(beside.hook.home)
    assert wait_for(home, HookCall(host="opencode", event="Stop", session=SESSION, cwd="/"), 60)
    assert SESSION in home.list("opencode")
    assert beside.hook.log == []


def test_too_small_a_limit_is_a_failure_and_no_pack(beside: Beside, visible: list[str]) -> None:
    (answer,) = beside.ask(pack(visible, 500))
    assert "limit of 500 tokens" in answer["error"]


def test_packing_can_be_switched_off(beside: Beside, visible: list[str]) -> None:
    beside.hook.folder.mkdir(parents=True, exist_ok=True)
    (beside.hook.folder / "config.toml").write_text('[hooks]\noff = ["Pack"]\n')
    assert beside.ask(pack(visible, 500)) == [{"n": 1, "result": None}]


def test_a_session_that_was_deleted_does_not_come_back_from_its_database(
    beside: Beside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    home, database = find_home(beside.hook.home), str(tmp_path / "data" / "opencode" / "opencode.db")
    other = "ses_other"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE session SET id = ?, parent_id = NULL WHERE parent_id IS NOT NULL", (other,))
        connection.execute("UPDATE message SET session_id = ? WHERE session_id != ?", (other, SESSION))
        connection.execute("UPDATE part SET session_id = ? WHERE session_id != ?", (other, SESSION))
        connection.commit()
    transcript = session_path(database, SESSION)
    take_in(HookCall(host="opencode", event="Stop", session=SESSION, cwd="/", transcript=transcript), home, 60)
    assert home.list("opencode") == [SESSION]
    shutil.rmtree(home.session("opencode", SESSION).folder)
    done: list[Done] = []
    NewFiles(home, PathsScanner([database], (".db",)).scan(), Ledger(home)).take_in(done.append)
    assert [report.session for report in done[0].reports] == [other]
    assert home.list("opencode") == [other]
