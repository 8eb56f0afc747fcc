"""Commands on sessions in a database: two machines with one address see the same, and say what they cannot do."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from postgres_server import needs_postgres

import daypack
from daypack.cli import options
from daypack.history.home import find_home
from daypack.postgres.database import Database

pytestmark = needs_postgres
Command = Callable[..., subprocess.CompletedProcess[str]]
NOBODY = "postgresql://ada:s3cret@127.0.0.1:1/sessions?connect_timeout=1"


class Machine:
    """Runs commands with a home of its own, the same user and the same database."""

    def __init__(self, command: Command, root: Path, url: str) -> None:
        self.root = str(root)
        self._command = command
        self._place = ("--home", self.root, "--uid", "ada", "--store", url)

    def run(self, *args: str, code: int = 0, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        done = self._command(*args, *self._place, stdin=stdin)
        assert done.returncode == code, done.stderr
        return done

    def read(self, *args: str) -> Any:
        return json.loads(self.run(*args, "--json").stdout)


@pytest.fixture
def machines(bare_command: Command, tmp_path: Path, database_url: str) -> tuple[Machine, Machine]:
    with_password = database_url.replace("//postgres@", "//postgres:s3cret@")
    here, there = (Machine(bare_command, tmp_path / name, with_password) for name in ("one", "two"))
    return here, there


def test_a_session_of_one_machine_is_there_on_the_other(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    assert here.run("append", "tide", "The gauge is at port 8080.").stderr == "new session tide\n"
    assert there.run("append", "tide", "And the pump at 9090.", "--role", "assistant").stderr == ""
    assert "8080" in there.run("log", "tide").stdout
    assert "9090" in here.run("log", "tid").stdout
    for machine in machines:
        listed: list[dict[str, Any]] = machine.read("session", "list")
        assert [(row["session"], row["messages"], row["title"]) for row in listed] == [
            ("tide", 2, "The gauge is at port 8080.")
        ]
    assert not os.path.exists(os.path.join(here.root, "home", "ada", "agent"))


def test_lists_searches_and_status_know_what_others_appended_a_moment_ago(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    here.run("append", "tide", "The gauge listens on port 8080.")
    assert "8080" in there.run("find", "gauge", "port").stdout
    here.run("append", "tide", "The sluice opens at noon.")
    here.run("append", "pump", "The pump starts at dawn.")
    found = there.run("find", "sluice", "noon").stdout
    assert "The sluice opens at noon." in found
    assert "--store URL" in found  # the address has a password
    assert there.run("completion", "sessions").stdout.split() == ["pump", "tide"]
    status: dict[str, Any] = there.read("status")
    assert status["session"]["name"] == "pump"
    shown = there.run("status")
    assert "postgresql://postgres@" in shown.stdout
    assert "s3cret" not in shown.stdout + shown.stderr


def test_turns_prepared_on_one_machine_are_explained_and_replayed_on_the_other(
    machines: tuple[Machine, Machine],
) -> None:
    here, there = machines
    here.run("append", "tide", "Which port?")
    here.run("pin", "tide", "rules", "Be brief.")
    here.run("prepare", "tide", "--budget", "4000")
    there.run("accept", "tide", "-", stdin=b"Port 8080.")
    assert "8080" in here.run("log", "tide").stdout
    assert "Be brief." in there.run("pin", "tide", "--json").stdout
    assert there.run("explain", "tide").stdout
    assert there.run("turns", "tide").stdout
    there.run("replay", "tide")
    here.run("compact", "tide", "--model", "none")
    there.run("child", "tide", "scout", "--handoff", "-", stdin=b"Look at the pump.")
    assert "scout" in here.run("child", "tide").stdout
    assert json.loads(there.run("export", "tide").stdout)


def test_a_transcript_is_imported_once_whichever_machine_has_it(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    here, there = machines
    messages = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": "8080."}]
    file = tmp_path / "harbour.json"
    file.write_text(json.dumps({"messages": messages}))
    here.run("import", "openai", str(file), "--session", "harbour")
    again = there.run("import", "openai", str(file), "--session", "harbour")
    assert "2 new" not in again.stdout
    listed: list[dict[str, Any]] = there.read("session", "list")
    assert [row["messages"] for row in listed] == [2]


def test_a_memory_is_bound_where_the_session_is(machines: tuple[Machine, Machine]) -> None:
    here, there = machines
    here.run("append", "tide", "Which port?")
    here.run("memory", "new", "Harbour")
    here.run("memory", "bind", "tide", "Harbour")
    there.run("memory", "capture", "tide")
    assert "Which port?" in here.run("memory", "show", "Harbour").stdout


def test_processes_in_the_background_get_the_address_and_nobody_sees_it_among_their_arguments(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[tuple[list[str], str | None]] = []

    def start(arguments: list[str]) -> None:
        started.append((arguments, os.environ.get("DAYPACK_STORE_URL")))

    monkeypatch.setattr(options, "start_detached", start)
    words = "of the harbour and the lantern " * 80
    messages = [{"role": ("user", "assistant")[number % 2], "content": words} for number in range(2_400)]
    file = tmp_path / "long.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in messages))
    machines[0].run("import", "openai", str(file))
    (arguments, url), *others = started
    assert (arguments[0], others) == ("index", [])
    assert url
    assert "s3cret" in url
    assert "s3cret" not in " ".join(arguments)
    assert "DAYPACK_STORE_URL" not in os.environ


def test_the_setting_and_the_variable_name_the_same_sessions(
    bare_command: Command, home: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare_command("append", "tide", "in a file")
    bare_command("append", "sluice", "in the database", "--store", database_url)
    assert "sluice" not in bare_command("session", "list").stdout
    config = Path(find_home(home).config)
    config.write_text(f'[store]\nurl = "{database_url}"\n')
    listed = bare_command("session", "list").stdout
    assert ("sluice" in listed, "tide" in listed) == (True, False)
    config.unlink()
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    assert "in the database" in bare_command("log", "sluice").stdout
    missing = bare_command("log", "tide")
    assert missing.returncode == 1
    assert "no such session" in missing.stderr
    assert "postgresql://" in missing.stderr
    with daypack.open_session("tide", home=home, store="") as session:
        assert [message.text for message in session.messages()] == ["in a file"]


def test_a_session_says_which_folder_is_a_cache(machines: tuple[Machine, Machine]) -> None:
    here, _ = machines
    made = here.run("session", "new", "tide")
    assert "cache of postgresql://postgres@" in made.stderr
    shown = here.run("session", "show", "tide")
    assert "postgresql://postgres@" in shown.stdout
    assert "s3cret" not in made.stdout + made.stderr + shown.stdout + shown.stderr
    assert "no sessions of agent nobody in postgresql://" in here.run("session", "list", "--agent", "nobody").stderr


@pytest.mark.parametrize(
    "words",
    [("session", "list"), ("find", "gauge"), ("log", "tide"), ("append", "tide", "hello"), ("completion", "sessions")],
)
def test_a_database_that_is_down_is_one_line_with_a_hint(
    bare_command: Command, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = Database.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(Database.__init__, "__kwdefaults__", {**defaults, "patience": 0.1})
    refused = bare_command(*words, "--store", NOBODY)
    problem, hint = refused.stderr.splitlines()
    assert refused.returncode == 1
    assert "127.0.0.1" in problem
    assert hint.startswith("  → ")
    assert "s3cret" not in refused.stderr


def test_status_shows_what_is_here_while_the_database_is_down(
    bare_command: Command, home: str, database_url: str
) -> None:
    bare_command("append", "tide", "hello", "--store", database_url)
    folder = Path(find_home(home).folder, "store")
    down = find_home(home, store=NOBODY)
    assert down.database
    next(folder.iterdir()).rename(folder / down.database.cache_name)
    shown = bare_command("status", "--store", NOBODY)
    assert shown.returncode == 0
    assert "tide" in shown.stdout
    assert "problem" in shown.stdout
    assert "s3cret" not in shown.stdout + shown.stderr
    line = bare_command("status", "--line", "--store", NOBODY)
    assert line.returncode == 0
    assert "⚠" not in line.stdout


def test_sessions_in_files_are_mentioned_where_they_are_not_seen(machines: tuple[Machine, Machine]) -> None:
    here, _ = machines
    with daypack.open_session("older", home=here.root, uid="ada", store="") as session:
        session.append("user", "in files")
    assert "1 session in files of the home: `daypack copy --uid ada`" in here.run("session", "list").stderr
    missing = here.run("log", "older", code=1)
    assert "it is in files of the home: copy it into the database with `daypack copy --uid ada`" in missing.stderr
