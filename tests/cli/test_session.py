"""`daypack session list`: the newest first, one line each, with a title."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import daypack

Command = Callable[..., subprocess.CompletedProcess[str]]


def make(home: str, name: str, updated_at: str, *texts: str) -> Path:
    with daypack.open_session(name, home=home, durability="os") as session:
        for text in texts:
            session.append("user", text)
        (session.path / "updated_at").write_text(f"{updated_at}\n")
        return session.path


def names(printed: str) -> list[str]:
    column = printed.index("session")
    return [line[column:].split()[0] for line in printed.splitlines()[1:]]


def test_the_newest_session_comes_first_with_title_messages_tokens_and_age(command: Command, home: str) -> None:
    make(home, "b-old", "2020-01-01T00:00:00Z", "Mend the belt.\n\nIt slips.", "And the other?")
    make(home, "a-older", "2019-01-01T00:00:00Z", "Say hello")
    make(home, "c-new", "2999-01-01T00:00:00Z", "List the files")
    printed = command("session", "list").stdout
    assert names(printed) == ["c-new", "b-old", "a-older"]
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["age", "messages", "tokens", "session", "title"]
    assert lines[1][:3] == ["0", "s", "1"]
    assert lines[2][1:3] == ["y", "2"]
    assert " ".join(lines[2][5:]) == "Mend the belt. It slips."
    rows = json.loads(command("session", "list", "--json").stdout)
    assert [row["session"] for row in rows] == ["c-new", "b-old", "a-older"]
    assert rows[1]["title"] == "Mend the belt. It slips."
    assert rows[1]["tokens"] == json.loads(command("session", "show", "b-old", "--json").stdout)["tokens"] > 5
    assert f"{rows[1]['tokens']}" == lines[2][3]


def test_n_limits_the_list_and_says_how_many_are_left_out(command: Command, home: str) -> None:
    for number in range(4):
        make(home, f"s{number}", f"202{number}-01-01T00:00:00Z", "x")
    done = command("session", "list", "-n", "2")
    assert names(done.stdout) == ["s3", "s2"]
    assert done.stderr == "… 2 older sessions not shown; -n 0 shows all\n"
    assert len(names(command("session", "list", "-n", "0").stdout)) == 4


def test_a_title_is_escaped_and_cut_to_the_terminal(
    command: Command, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(home, "talk", "2020-01-01T00:00:00Z", "\x1b[31mred\u202e and " + "猫" * 80)
    make(home, "n" * 70, "2020-01-01T00:00:00Z", "no room for this")
    monkeypatch.setenv("COLUMNS", "70")
    long, talk = command("session", "list").stdout.splitlines()[1:]
    assert long.endswith("n" * 70)
    assert "\x1b" not in talk
    assert "\\x1b[31mred\\u202e and 猫" in talk
    assert talk.endswith("…")
    assert len(talk) + talk.count("猫") <= 70


def test_a_state_is_shown_when_a_session_is_not_active(command: Command, home: str) -> None:
    make(home, "talk", "2020-01-01T00:00:00Z", "x")
    assert "state" not in command("session", "list").stdout
    with daypack.open_session("ended", home=home, durability="os") as session:
        session.set_state("done")
    printed = command("session", "list").stdout.splitlines()
    assert printed[0].split() == ["age", "messages", "tokens", "state", "session", "title"]
    assert " done " in printed[1]
    assert "active" not in printed[2]


def test_a_damaged_session_keeps_its_row(command: Command, home: str) -> None:
    lost = make(home, "lost", "2021-01-01T00:00:00Z", "x")
    (lost / "messages.jsonl").unlink()
    other = make(home, "other", "2022-01-01T00:00:00Z", "y")
    (other / "meta.json").write_text('{"protocols": {"history": "99"}}')
    make(home, "good", "2020-01-01T00:00:00Z", "Hello")
    printed = command("session", "list").stdout.splitlines()[1:]
    assert [line.split()[-1] for line in printed[2:]] == ["Hello"]
    assert "the log is missing" in printed[1]
    assert "other" in printed[0]
    rows = json.loads(command("session", "list", "--json").stdout)
    assert [sorted(row) for row in rows[:2]] == [["agent", "error", "session"]] * 2


def test_tokens_of_many_foreign_lines_are_not_counted_for_a_list(command: Command, home: str) -> None:
    path = make(home, "talk", "2020-01-01T00:00:00Z", "one")
    with (path / "messages.jsonl").open("a") as log:
        log.write('{"role":"user","content":"two"}\n')
    (row,) = json.loads(command("session", "list", "--json").stdout)
    assert row["tokens"] == json.loads(command("session", "show", "talk", "--json").stdout)["tokens"] > 0
    with (path / "messages.jsonl").open("a") as log:
        log.write('{"role":"user","content":"three"}\n' * 3000)
    (row,) = json.loads(command("session", "list", "--json").stdout)
    assert row["tokens"] is None
    assert "–" in command("session", "list").stdout
    assert json.loads(command("session", "show", "talk", "--json").stdout)["tokens"] > 3000


def test_without_sessions_the_agents_that_have_some_are_named(command: Command, home: str) -> None:
    assert "--agent" not in command("session", "list").stderr
    make(home, "talk", "2020-01-01T00:00:00Z", "x")
    done = command("session", "list", "--agent", "coder")
    assert done.stdout == ""
    assert done.stderr.endswith("\n1 session of agent default: add --agent NAME\n")


def test_the_list_has_the_sessions_of_all_agents(command: Command, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(home, "talk", "2020-01-01T00:00:00Z", "Say hello")
    assert "agent" not in command("session", "list").stdout
    for agent, name in (("coder", "one"), ("desk", "one")):
        command("append", name, f"by {agent}", "--agent", agent)
    done = command("session", "list")
    assert done.stderr == ""
    heads, *lines = [line.split() for line in done.stdout.splitlines()]
    assert heads[-3:] == ["agent", "session", "title"]
    assert [line[-4:-2] for line in lines] == [["desk", "one"], ["coder", "one"], ["default", "talk"]]
    assert [row["agent"] for row in json.loads(command("session", "list", "--json", "-n", "2").stdout)] == [
        "desk",
        "coder",
    ]
    of_agent = command("session", "list", "--agent", "coder")
    assert ("by coder" in of_agent.stdout, "by desk" in of_agent.stdout, of_agent.stderr) == (True, False, "")
    monkeypatch.setenv("DAYPACK_AGENT", "coder")
    assert command("session", "list").stdout == of_agent.stdout


def test_the_list_of_a_project_has_the_sessions_of_all_its_folders(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, other = tmp_path / "shop", tmp_path / "other"
    for part in ("objects", "refs"):
        (shop / ".git" / part).mkdir(parents=True)
    (shop / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shop / "src").mkdir()
    other.mkdir()
    for folder, name in ((shop, "top"), (shop / "src", "below"), (other, "elsewhere")):
        monkeypatch.chdir(folder)
        command("append", name, "hello", "--agent", name)
    listed = command("session", "list", "--project", str(shop), "--json").stdout
    assert [row["session"] for row in json.loads(listed)] == ["below", "top"]
    monkeypatch.chdir(shop / "src")
    assert len(json.loads(command("session", "list", "--project", "--json", "-n", "1").stdout)) == 1
    done = command("session", "list", "--project", str(tmp_path))
    assert done.stdout == ""
    assert "no sessions of project" in done.stderr
    assert done.stderr.endswith("3 sessions of agents below, elsewhere, top: list them without --project\n")
