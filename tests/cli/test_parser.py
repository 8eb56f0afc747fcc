"""Wrong arguments: refused in two lines that name the command and the nearest valid spelling."""

import json

import pytest
from cli.conftest import Command

from daypack.cli.main import run

ROLES = "the choices are system, user, assistant, tool"
DASHES = "see `daypack log --help`; put -- before a text that begins with -"


@pytest.mark.parametrize(
    ("args", "problem", "hint"),
    [
        ("lgo", "daypack: unknown command 'lgo'", "did you mean log? `daypack help` lists the commands"),
        ("dance", "daypack: unknown command 'dance'", "`daypack help` lists the commands"),
        ("hlep", "daypack: unknown command 'hlep'", "did you mean help? `daypack help` lists the commands"),
        ("help lgo", "daypack: unknown command 'lgo'", "did you mean log? `daypack help` lists the commands"),
        ("token lst", "daypack token: unknown action 'lst'", "did you mean list? the actions are new, list, revoke"),
        ("token", "daypack token: action required: new, list or revoke", "see `daypack token --help`"),
        ("prepare talk --budgt 8", "daypack prepare: unknown option '--budgt'", "did you mean --budget?"),
        ("prepare --budgt=8", "daypack prepare: unknown option '--budgt'", "did you mean --budget?"),
        ("session list --jsn", "daypack session list: unknown option '--jsn'", "did you mean --json?"),
        ("memory --jsn list", "daypack memory list: unknown option '--jsn'", "did you mean --json?"),
        ("memory import x --titl y", "daypack memory import: unknown option '--titl'", "did you mean --title?"),
        ("log -x talk", "daypack log: unknown option '-x'", DASHES),
        ("append a b --role usr", "daypack append: --role: invalid choice: 'usr'", f"did you mean user? {ROLES}"),
        ("append a b --role king", "daypack append: --role: invalid choice: 'king'", ROLES),
        ("log", "daypack log: the following arguments are required: session", "see `daypack log --help`"),
        ("log talk more", "daypack log: unexpected argument 'more'", "see `daypack log --help`"),
        ("log talk -n", "daypack log: -n: expected one argument", "see `daypack log --help`"),
        ("--verison", "daypack: unknown option '--verison'", "did you mean --version?"),
    ],
)
def test_wrong_arguments_are_refused_with_the_nearest_spelling(
    command: Command, args: str, problem: str, hint: str
) -> None:
    done = command(*args.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{problem}\n  → {hint}\n"


def test_help_lists_the_commands_and_shows_those_of_a_command_and_of_an_action(command: Command) -> None:
    overview = command("help")
    assert (overview.returncode, overview.stderr) == (0, "")
    assert overview.stdout.startswith("usage: daypack COMMAND")
    for name in (("log",), ("session",), ("session", "list")):
        helped = command("help", *name)
        assert (helped.returncode, helped.stderr) == (0, "")
        assert helped.stdout.startswith(f"usage: daypack {' '.join(name)} ")
        assert helped.stdout == command(*name, "--help").stdout


def test_a_text_that_begins_with_a_dash_is_appended(command: Command, home: str) -> None:
    for text in ("--budget is the option", "- a list\n- of two", "-5"):
        assert command("append", "talk", text).returncode == 0
    assert run(["append", "--home", home, "talk", "--", "--budget"]) == 0
    assert [json.loads(line)["content"] for line in command("log", "talk", "--json").stdout.splitlines()] == [
        "--budget is the option",
        "- a list\n- of two",
        "-5",
        "--budget",
    ]


def test_all_arguments_after_two_dashes_are_texts(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["append", "--home", home, "--", "-x", "--json"]) == 0
    assert run(["--home", home, "session", "show", "--", "-x"]) == 0
    capsys.readouterr()
    assert run(["log", "--json", "--home", home, "--", "-x"]) == 0
    assert json.loads(capsys.readouterr().out)["content"] == "--json"
    assert run(["log", "--home", home, "--", "-x", "--more"]) == 2
    assert "unexpected argument '--more'" in capsys.readouterr().err


@pytest.mark.parametrize("args", [("help", "--", "append"), ("help", "append", "--", "x")])
def test_help_never_runs_the_command(command: Command, args: tuple[str, ...]) -> None:
    done = command(*args)
    assert (done.returncode, done.stdout.startswith("usage: daypack append ")) == (0, True)
    assert command("session", "list").stdout == ""


def test_a_command_to_copy_names_a_session_with_spaces_in_quotes(command: Command) -> None:
    command("append", "my notes", "hello")
    assert "`daypack rules 'my notes' add TEXT`" in command("rules", "my notes").stderr
    assert "`daypack prepare 'my notes'`" in command("turns", "my notes").stderr
    assert "`daypack prepare 'my notes'`" in command("replay", "my notes").stderr
    assert "`daypack turns 'my notes'`" in command("pin", "my notes", "a", "b").stderr + (
        command("replay", "my notes", "ev-1").stderr
    )
