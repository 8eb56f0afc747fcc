"""Users on the command line: profiles and quotas, shown and set."""

import json

import pytest
from cli.conftest import Command

from daypack.errors import QuotaExceeded
from daypack.memory.tools import open_memory


@pytest.mark.requirement("G16")
def test_a_profile_is_set_and_shown(command: Command) -> None:
    assert (
        command("user", "set", "ada", "--name", "Ada L.", "--email", "ada@example.org", "--entries", "2").returncode
        == 0
    )
    shown = command("user", "show", "ada").stdout
    assert "Ada L." in shown
    assert "ada@example.org" in shown
    assert "entries   0 of 2" in shown
    told = json.loads(command("user", "show", "ada", "--json").stdout)
    assert told["quotas"] == {
        "memories": None,
        "entries": 2,
        "bytes": None,
        "used": {"memories": 0, "entries": 0, "bytes": 0},
    }
    assert "ada" in command("user").stdout


@pytest.mark.parametrize("none", ["0", "none", "None"])
def test_a_quota_holds_until_it_is_taken_away(command: Command, home: str, none: str) -> None:
    command("user", "set", "ada", "--entries", "1", "--bytes", "1000000")
    with open_memory(home=home, user="ada") as memories:
        memory_id = memories.create_memory("m").memory_id
        memories.add_entry(memory_id, "one")
        with pytest.raises(QuotaExceeded):
            memories.add_entry(memory_id, "two")
        assert command("user", "set", "ada", "--entries", none).returncode == 0
        assert memories.add_entry(memory_id, "two").seq == 2
    assert json.loads(command("user", "show", "ada", "--json").stdout)["quotas"]["bytes"] == 1_000_000


def test_only_set_creates_a_user(command: Command) -> None:
    assert "created user ada" in command("user", "set", "ada").stderr
    assert command("user", "set", "ada").stderr == ""
    assert command("user", "show", "ada").stderr == ""
    for actions in ((), ("list",)):
        assert [user["user_id"] for user in json.loads(command("user", *actions, "--json").stdout)] == ["ada"]


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("lst",), 2, "daypack user: unknown action 'lst'\n  → did you mean list? the actions are list, show, set\n"),
        (("ada",), 2, "daypack user: unknown action 'ada'\n  → the actions are list, show, set\n"),
        (("show",), 2, "daypack user show: the following arguments are required: user\n"),
        (
            ("show", "ada"),
            1,
            "daypack: there is no such user [ada]\n  → `daypack user list` lists them; create it with",
        ),
    ],
)
def test_a_look_or_a_typing_mistake_creates_nobody(
    command: Command, args: tuple[str, ...], code: int, problem: str
) -> None:
    done = command("user", *args)
    assert done.returncode == code
    assert done.stderr.startswith(problem)
    assert json.loads(command("user", "list", "--json").stdout) == []


def test_a_user_that_cannot_be_set_is_not_created(command: Command) -> None:
    assert command("user", "set", "ada", "--entries", "-1").returncode == 2
    assert command("user", "set", "ada", "--entries", "many").returncode == 2
    assert command("user", "set", "--entries", "5").returncode == 2
    bad = command("user", "set", "a/b", "--name", "x")
    assert bad.returncode == 2
    assert "created" not in bad.stderr
    assert command("user", "set", "ada", "--name", "x\x1b[31m").returncode == 2
    assert json.loads(command("user", "--json").stdout) == []
    assert command("user").stderr == "no users yet; create one with `daypack user set NAME`\n"


def test_options_may_come_before_the_action(command: Command) -> None:
    assert command("user", "--name", "Ada L.", "set", "ada").returncode == 0
    assert "Ada L." in command("user", "show", "ada").stdout
