"""`daypack copy`: a plan, the copy itself, and what is refused."""

import json
import os

from cli.conftest import Command
from postgres_server import needs_postgres

import daypack

pytestmark = needs_postgres


def talk(home: str, name: str = "talk") -> None:
    with daypack.open_session(name, home=home, durability="os") as session:
        session.append("user", "When does the ferry leave?")


def test_the_plan_is_shown_then_applied_and_then_nothing_is_left(
    home: str, bare_command: Command, database_url: str
) -> None:
    talk(home)
    planned = bare_command("copy", home, database_url)
    assert planned.returncode == 0
    assert "default/talk" in planned.stdout
    plan_id = planned.stdout.split("plan ")[1].split(":")[0]
    assert f"--apply --plan {plan_id}" in planned.stderr
    done = bare_command("copy", home, database_url, "--apply", "--plan", plan_id)
    assert "copied and compared: 1 session" in done.stdout
    again = bare_command("copy", home, database_url, "--apply")
    assert "nothing was copied" in again.stdout


def test_json_has_the_digests_of_both_logs(home: str, bare_command: Command, database_url: str) -> None:
    talk(home)
    applied = json.loads(bare_command("copy", home, database_url, "--apply", "--json").stdout)["applied"]
    [session] = applied["sessions"]
    assert len(session["messages"]) == len(session["events"]) == 64
    assert session["session"] == "talk"


def test_a_conflict_is_named_once_and_everything_else_is_copied(
    home: str, tmp_path: os.PathLike[str], bare_command: Command, database_url: str
) -> None:
    talk(home)
    other = os.path.join(tmp_path, "other")
    talk(other)
    assert bare_command("copy", home, database_url, "--apply").returncode == 0
    planned = bare_command("copy", other, database_url)
    assert planned.returncode == 1
    assert "conflict" in planned.stdout
    assert planned.stdout.count("talk") == 1
    with daypack.open_session("walk", home=other, workspace="") as session:
        session.append("user", "Hello.")
    partial = bare_command("copy", other, database_url, "--apply")
    assert partial.returncode == 1
    assert "copied and compared: 1 session" in partial.stdout
    assert partial.stdout.count("default/talk") == 1
    assert "gc SESSION --archive" in partial.stderr
    with daypack.open_session("walk", home=home, store=database_url, create=False) as session:
        assert [message.text for message in session.messages()] == ["Hello."]
    again = bare_command("copy", other, database_url, "--apply", "--json")
    assert again.returncode == 1
    assert len(json.loads(again.stdout)["applied"]["conflicts"]) == 1


def test_arguments_that_do_not_fit_are_refused(home: str, bare_command: Command) -> None:
    for words in (("--plan", "x"), ("--session", "talk"), ("--session", "a/b", "--memories-only")):
        assert bare_command("copy", home, f"{home}-2", *words).returncode == 2
    assert bare_command("copy", home, "postgresql://").returncode == 2


def test_a_password_in_an_address_is_not_printed(home: str, bare_command: Command, database_url: str) -> None:
    talk(home)
    url = database_url.replace("postgres@", "postgres:hunter2@")
    for words in ((), ("--json",), ("--apply",)):
        done = bare_command("copy", home, url, *words)
        assert done.returncode == 0
        assert "hunter2" not in done.stdout + done.stderr
