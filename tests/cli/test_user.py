"""Users on the command line: profiles and quotas, shown and set."""

import json

import pytest
from cli.conftest import Command

from daypack.errors import QuotaExceeded
from daypack.memory.tools import open_memory


@pytest.mark.requirement("G16")
def test_a_profile_is_set_and_shown(command: Command) -> None:
    assert command("user", "ada", "--name", "Ada L.", "--email", "ada@example.org", "--entries", "2").returncode == 0
    shown = command("user", "ada").stdout
    assert "Ada L." in shown
    assert "ada@example.org" in shown
    assert "entries   0 of 2" in shown
    told = json.loads(command("user", "ada", "--json").stdout)
    assert told["quotas"] == {
        "memories": None,
        "entries": 2,
        "bytes": None,
        "used": {"memories": 0, "entries": 0, "bytes": 0},
    }
    assert "ada" in command("user").stdout


@pytest.mark.parametrize("none", ["0", "none", "None"])
def test_a_quota_holds_until_it_is_taken_away(command: Command, home: str, none: str) -> None:
    command("user", "ada", "--entries", "1", "--bytes", "1000000")
    with open_memory(home=home, user="ada") as memories:
        memory_id = memories.create_memory("m").memory_id
        memories.add_entry(memory_id, "one")
        with pytest.raises(QuotaExceeded):
            memories.add_entry(memory_id, "two")
        assert command("user", "ada", "--entries", none).returncode == 0
        assert memories.add_entry(memory_id, "two").seq == 2
    assert json.loads(command("user", "ada", "--json").stdout)["quotas"]["bytes"] == 1_000_000


def test_a_user_who_is_new_is_made_and_said_to_be(command: Command) -> None:
    assert "created user ada" in command("user", "ada").stderr
    assert command("user", "ada").stderr == ""
    assert [one["user_id"] for one in json.loads(command("user", "--json").stdout)] == ["ada"]


def test_what_is_wrong_is_said_and_nobody_is_made(command: Command) -> None:
    assert command("user", "ada", "--entries", "-1").returncode == 2
    assert command("user", "ada", "--entries", "many").returncode == 2
    assert command("user", "--entries", "5").returncode == 2
    assert command("user", "a/b", "--name", "x").returncode == 2
    assert command("user", "ada", "--name", "x\x1b[31m").returncode == 2
    assert json.loads(command("user", "--json").stdout) == []
