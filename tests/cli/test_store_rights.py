"""Rights and settings of a database that endanger memories: `serve --check` and `doctor` name them, with a way out."""

import subprocess
from collections.abc import Callable

import psycopg
import pytest
from postgres_server import needs_postgres

pytestmark = needs_postgres
Command = Callable[..., subprocess.CompletedProcess[str]]


def filled(command: Command, url: str) -> None:
    assert command("memory", "new", "Harbour", "--store", url).returncode == 0


@pytest.mark.parametrize(
    ("change", "back", "problem", "remedy"),
    [
        (
            "GRANT daypack_operator TO daypack_app",
            "REVOKE daypack_operator FROM daypack_app",
            "role daypack_app: it is a member of daypack_operator",
            "REVOKE daypack_operator FROM daypack_app",
        ),
        *(
            (
                f"ALTER ROLE daypack_app {right}",
                f"ALTER ROLE daypack_app NO{right}",
                f"role daypack_app: {problem}",
                "ALTER ROLE daypack_app NOSUPERUSER NOBYPASSRLS NOCREATEROLE",
            )
            for right, problem in (
                ("SUPERUSER", "it is not subject to row-level security"),
                ("BYPASSRLS", "it is not subject to row-level security"),
                ("CREATEROLE", "it may create roles"),
            )
        ),
    ],
    ids=["member", "superuser", "bypassrls", "createrole"],
)
def test_a_role_with_too_many_rights_is_found(
    command: Command, database_url: str, change: str, back: str, problem: str, remedy: str
) -> None:
    filled(command, database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(change.encode())
        try:
            checked = command("serve", "--check", "--port", "0", "--store", database_url)
            examined = command("doctor", "--store", database_url)
        finally:
            connection.execute(back.encode())
    for answer in (checked, examined):
        assert answer.returncode
        assert problem in answer.stdout
        assert remedy in answer.stdout + answer.stderr
    assert "restore a backup" not in examined.stdout
    assert "database role" in command("serve", "--check", "--port", "0", "--store", database_url).stdout
    assert command("doctor", "--store", database_url).returncode == 0


def test_commits_that_do_not_wait_for_the_disk_are_named(command: Command, database_url: str) -> None:
    filled(command, database_url)
    assert "synchronous_commit" not in command("serve", "--check", "--port", "0", "--store", database_url).stdout
    name = database_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE postgres IN DATABASE {name} SET synchronous_commit = off".encode())
    for arguments in (("serve", "--check", "--port", "0"), ("doctor",)):
        answer = command(*arguments, "--store", database_url)
        assert answer.returncode == 0
        assert "synchronous_commit is off" in answer.stdout
        assert "ALTER ROLE postgres SET synchronous_commit = on" in answer.stdout + answer.stderr
