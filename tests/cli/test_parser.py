"""Wrong arguments: refused in two lines that name the command and the nearest valid spelling."""

import json
from importlib import import_module

import pytest
from cli.conftest import Command

from daypack.cli.main import COMMANDS, run
from daypack.cli.parser import Parser
from daypack.cli.synonyms import SYNONYMS

LISTED = "`daypack help` lists the commands"
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
        ("list", "daypack: unknown command 'list'", f"did you mean `daypack session list`? {LISTED}"),
        ("ls", "daypack: unknown command 'ls'", f"did you mean `daypack session list`? {LISTED}"),
        ("init talk", "daypack: unknown command 'init'", f"did you mean `daypack session new`? {LISTED}"),
        ("new talk", "daypack: unknown command 'new'", f"did you mean `daypack session new`? {LISTED}"),
        ("cat talk", "daypack: unknown command 'cat'", f"did you mean `daypack log`? {LISTED}"),
        ("show talk", "daypack: unknown command 'show'", f"did you mean `daypack log`? {LISTED}"),
        ("tail talk", "daypack: unknown command 'tail'", f"did you mean `daypack log`? {LISTED}"),
        ("history talk", "daypack: unknown command 'history'", f"did you mean `daypack log`? {LISTED}"),
        ("usage talk", "daypack: unknown command 'usage'", f"did you mean `daypack turns`? {LISTED}"),
        ("version", "daypack: unknown command 'version'", f"did you mean `daypack --version`? {LISTED}"),
        ("rm talk", "daypack: unknown command 'rm'", f"did you mean `daypack gc SESSION --delete`? {LISTED}"),
        ("delete talk", "daypack: unknown command 'delete'", f"did you mean `daypack gc SESSION --delete`? {LISTED}"),
        (
            "config",
            "daypack: unknown command 'config'",
            f"settings are in config.toml and in environment variables, see Settings in docs/cli.md; {LISTED}",
        ),
        (
            "session rm talk",
            "daypack session: unknown action 'rm'",
            "did you mean `daypack gc SESSION --delete`? the actions are new, list, show",
        ),
        ("session ls", "daypack session: unknown action 'ls'", "did you mean list? the actions are new, list, show"),
        ("user add ada", "daypack user: unknown action 'add'", "did you mean set? the actions are list, show, set"),
        ("--hom x session list", "daypack: unknown option '--hom'", "did you mean --home?"),
        ("session --hom x list", "daypack session: unknown option '--hom'", "did you mean --home?"),
        (
            "--budget 8k pack talk",
            "daypack: unknown option '--budget'",
            "options follow the command: `daypack COMMAND --help` lists them",
        ),
        ("--verison", "daypack: unknown option '--verison'", "did you mean --version?"),
    ],
)
def test_wrong_arguments_are_refused_with_the_nearest_spelling(
    command: Command, args: str, problem: str, hint: str
) -> None:
    done = command(*args.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{problem}\n  → {hint}\n"


def test_everything_that_is_suggested_for_a_guess_exists() -> None:
    for suggestion in SYNONYMS:
        command, *others = suggestion.split()
        assert command in COMMANDS or command == "--version"
        if others and others[0].islower() and not others[0].startswith("-"):
            parser = Parser(prog=f"daypack {command}")
            import_module(f"daypack.cli.{command}").configure(parser)
            assert others[0] in parser.actions
    words = [word for guesses in SYNONYMS.values() for word in guesses]
    assert len(set(words)) == len(words)
    assert COMMANDS.keys().isdisjoint(words)


def test_help_lists_the_commands_and_shows_those_of_a_command_and_of_an_action(command: Command) -> None:
    overview = command("help")
    assert (overview.returncode, overview.stderr) == (0, "")
    assert overview.stdout.startswith("usage: daypack COMMAND")
    for name in (("log",), ("session",), ("session", "list"), ("mcp", "install")):
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


def test_help_of_an_action_lists_only_its_own_options(command: Command) -> None:
    helped = command("help", "mcp", "install").stdout
    assert "--user-wide" in helped
    assert "--with-hooks" not in helped
    assert "--user-wide" not in command("help", "mcp", "serve").stdout


def test_help_begins_with_the_most_used_commands(command: Command) -> None:
    groups = command("help").stdout.split("\n\n")[2:]
    listed = [line.split()[0] for line in groups[0].splitlines()[1:]]
    assert groups[0].startswith("Most used:")
    assert {"setup", "find", "log", "status", "import"} <= set(listed)
    assert len(listed) < 10
    others = [line.split()[0] for group in groups[1:] for line in group.splitlines()[1:]]
    assert sorted(others) == sorted(COMMANDS)
