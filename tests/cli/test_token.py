"""Tokens on the command line: the secret is shown once, and nothing else shows it."""

import json
from pathlib import Path

import pytest
from cli.conftest import Command

from daypack.memory.tools import open_memory


def test_a_token_opens_what_it_was_made_for_until_it_is_revoked(command: Command, home: str) -> None:
    made = command("token", "new", "ada", "--name", "laptop", "--scope", "read")
    assert made.returncode == 0
    secret = made.stdout.strip()
    with open_memory(home=home) as memories:
        assert memories.users.check_token(secret)[:2] == ("ada", "read")
    (listed,) = json.loads(command("token", "list", "--json").stdout)
    assert (listed["user"], listed["name"], listed["scope"]) == ("ada", "laptop", "read")
    assert listed["token_id"] in made.stderr
    shown = command("token", "list", "ada").stdout
    assert "laptop" in shown
    assert secret not in shown
    assert command("token", "revoke", listed["token_id"]).returncode == 0
    assert command("token", "list").stdout == ""
    assert command("token", "revoke", listed["token_id"]).returncode == 1


def test_the_secret_stands_in_no_file(command: Command, home: str) -> None:
    secret = command("token", "new", "ada").stdout.strip()
    assert len(secret) > 40
    held = b"".join(path.read_bytes() for path in Path(home).rglob("*") if path.is_file())
    assert held
    assert secret.encode() not in held


def test_a_token_may_end_by_itself(command: Command) -> None:
    made = json.loads(command("token", "new", "ada", "--days", "30", "--json").stdout)
    assert made["token"]["expires_at"] > made["token"]["created_at"]
    assert "until 20" in command("token", "list").stdout
    assert command("token", "new", "ada", "--days", "0").returncode == 2
    assert command("token", "new", "ada", "--days", "999999").returncode == 2


@pytest.mark.parametrize("user", ["../etc", "", "a/b", "x" * 200])
def test_a_name_that_cannot_be_one_gets_no_token(command: Command, user: str) -> None:
    assert command("token", "new", user).returncode == 2
    assert command("token", "list").stdout == ""


def test_whose_tokens_must_be_somebody(command: Command) -> None:
    refused = command("token", "list", "nobody")
    assert refused.returncode == 1
    assert "no such user" in refused.stderr


def test_a_token_is_revoked_by_the_start_of_its_id(command: Command) -> None:
    token = json.loads(command("token", "new", "ada", "--json").stdout)["token"]["token_id"]
    assert command("token", "revoke", token[:3]).returncode == 1
    assert command("token", "revoke", token[:6]).stdout == f"revoked {token}\n"
    assert json.loads(command("token", "list", "--json").stdout) == []
