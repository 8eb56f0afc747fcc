"""Commands on memories in a database: named by an option, a variable or a setting, and never with its password."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest
from memory_server import start_server
from postgres_server import drop_database, needs_postgres, new_database

import daypack
from daypack.errors import BadInput
from daypack.history.home import find_home
from daypack.memory.backend import open_backend
from daypack.memory.remote import RemoteMemories
from daypack.memory.tools import Memories
from daypack.postgres.address import shown

pytestmark = needs_postgres
Command = Callable[..., subprocess.CompletedProcess[str]]
FACT = "The tide gauge listens on port 8080."
NOBODY = "postgresql://ada:s3cret@127.0.0.1:1/memories?connect_timeout=1"


def with_password(url: str) -> str:
    """Return an address with a password that the server does not ask for."""
    return url.replace("//postgres@", "//postgres:s3cret@")


def filled(command: Command, url: str) -> None:
    assert command("memory", "new", "Harbour", "--store", url).returncode == 0
    assert command("memory", "add", "Harbour", FACT, "--store", url).returncode == 0


def test_the_option_comes_before_the_variable_and_that_before_the_setting(
    command: Command, home: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(command, with_password(database_url))
    assert not Path(find_home(home).store).exists()
    assert command("memory", "list").stdout == ""
    folder = Path(find_home(home).folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f'[store]\nurl = "{with_password(database_url)}"\n')
    assert "Harbour" in command("memory", "list").stdout
    other = new_database()
    monkeypatch.setenv("DAYPACK_STORE_URL", other)
    assert command("memory", "list").stdout == ""
    assert "Harbour" in command("memory", "list", "--store", database_url).stdout
    assert os.environ["DAYPACK_STORE_URL"] == other
    drop_database(other)


def test_memories_opened_by_an_address_are_those_of_the_database(home: str, database_url: str) -> None:
    with daypack.open_memory(url=with_password(database_url), home=home) as memories:
        assert isinstance(memories, Memories)
        assert memories.remote
        assert memories.place.startswith("postgresql://postgres@")
        assert "s3cret" not in repr(memories) + memories.place
        memory = memories.create_memory("Harbour")
        memories.add_entry(memory.memory_id, FACT)
        assert memories.search_memories(memory.memory_id, "tide gauge").entries[0].raw_entry == FACT
    assert not Path(home).exists()  # it has only settings, prompts and models
    with daypack.open_memory(url="http://127.0.0.1:1") as far:
        assert isinstance(far, RemoteMemories)


def test_an_address_that_cannot_be_used_is_refused_without_its_password(command: Command) -> None:
    for url in ("https://ada:s3cret@db", "ada:s3cret@db", "postgresql://ada:s3cret@db:port/x"):
        refused = command("memory", "list", "--store", url)
        assert refused.returncode == 2
        assert "postgresql://USER@HOST/DATABASE" in refused.stderr
        assert "s3cret" not in refused.stdout + refused.stderr
    both = command("memory", "list", "--store", NOBODY, "--url", "http://127.0.0.1:1")
    assert (both.returncode, "cannot be combined" in both.stderr) == (2, True)


def test_users_and_tokens_of_a_database(command: Command, home: str, database_url: str) -> None:
    made = command("token", "new", "ada", "--store", database_url)
    assert made.returncode == 0
    assert "ada" in command("user", "list", "--store", database_url).stdout
    listed = json.loads(command("token", "list", "--store", database_url, "--json").stdout)
    assert [token["user"] for token in listed] == ["ada"]
    assert not Path(find_home(home).store).exists()
    assert command("user", "list").stdout == ""


def test_a_backup_of_a_database_is_restored_into_another(command: Command, database_url: str, tmp_path: Path) -> None:
    filled(command, database_url)
    path, other = str(tmp_path / "b.tar"), new_database()
    planned = command("backup", path, "--store", with_password(database_url))
    assert re.search(r"^database +\d+ +database$", planned.stdout, re.MULTILINE)
    assert "s3cret" not in planned.stdout + planned.stderr
    assert "--store URL --apply" in planned.stderr
    assert "1 memory, 1 entry" in command("backup", path, "--store", database_url, "--apply").stdout
    assert command("backup", "--verify", path).returncode == 0
    refused = command("restore", path)
    assert (refused.returncode, "--store" in refused.stderr) == (2, True)
    refused = command("restore", path, "--replace", "database", "--store", database_url)
    assert "nothing to restore" in refused.stderr  # it is the same
    assert command("restore", path, "--store", with_password(other), "--apply").returncode == 0
    assert FACT in command("memory", "search", "Harbour", "tide gauge", "--store", other).stdout
    audited = command("audit-log", "--store", other).stdout
    assert "restore" in audited
    assert command("audit-log", "verify", "--store", other).returncode == 0
    drop_database(other)


def test_a_token_that_was_revoked_in_a_database_stays_revoked_in_one_that_is_restored(
    command: Command, home: str, database_url: str, tmp_path: Path
) -> None:
    path, other = str(tmp_path / "b.tar"), new_database()
    for user in ("ada", "eve"):
        assert command("token", "new", user, "--store", database_url).returncode == 0
    listed = json.loads(command("token", "list", "--store", database_url, "--json").stdout)
    ids = {token["user"]: token["token_id"] for token in listed}
    assert command("backup", path, "--store", database_url, "--apply").returncode == 0
    assert command("token", "revoke", ids["ada"], "--store", database_url).returncode == 0
    assert "1 token of the backup stays revoked" in command("restore", path, "--store", other).stderr
    assert command("restore", path, "--store", other, "--apply").returncode == 0
    tokens = json.loads(command("token", "list", "--store", other, "--json").stdout)
    assert [token["token_id"] for token in tokens] == [ids["eve"]]
    again = command("restore", path, "--store", other, "--apply")
    assert (again.returncode, "everything in the backup is there" in again.stdout) == (0, True)
    older = str(tmp_path / "later.tar")  # its records do not take the place of those that are newer
    assert command("backup", older, "--store", other, "--apply").returncode == 0
    assert command("token", "revoke", ids["eve"], "--store", other).returncode == 0
    command("restore", older, "--store", other, "--replace", "all", "--apply")
    noted = Path(find_home(home).folder, "revocations.jsonl").read_text()
    assert [token in noted for token in ids.values()] == [True, True]
    drop_database(other)


def test_a_token_is_revoked_even_if_the_home_cannot_note_it(
    command: Command, home: str, database_url: str, tmp_path: Path
) -> None:
    assert command("token", "new", "ada", "--store", database_url).returncode == 0
    (token,) = json.loads(command("token", "list", "--store", database_url, "--json").stdout)
    Path(find_home(home).folder, "revocations.jsonl").mkdir(parents=True)
    done = command("token", "revoke", token["token_id"], "--store", database_url)
    assert (done.returncode, "a restore of an older backup would let it work again" in done.stderr) == (0, True)
    assert command("token", "list", "--store", database_url).stdout == ""


def test_a_restore_says_what_it_left_alone_and_which_database_the_settings_name(
    command: Command, home: str, database_url: str, tmp_path: Path
) -> None:
    filled(command, database_url)
    path, other, config = str(tmp_path / "b.tar"), new_database(), Path(find_home(home).config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[store]\nurl = "{with_password(database_url)}"\n')
    assert command("backup", path, "--apply").returncode == 0
    config.unlink()
    moved = command("restore", path, "--store", other, "--apply")
    assert moved.returncode == 0
    assert f"{config} was restored and names {shown(database_url)}, not {shown(other)}" in moved.stderr
    assert "s3cret" not in moved.stdout + moved.stderr
    assert command("memory", "add", "Harbour", "The ferry leaves at nine.", "--store", other).returncode == 0
    left = command("restore", path, "--replace", "all", "--store", other, "--apply")
    assert (left.returncode, "nothing was restored: the database is not empty" in left.stdout) == (1, True)
    assert "create a new one and name it with --store" in left.stderr
    assert "was restored and names" not in left.stderr
    drop_database(other)


def test_a_restore_that_leaves_the_database_out_fails_and_does_not_offer_to_replace_it(
    command: Command, home: str, database_url: str, tmp_path: Path
) -> None:
    filled(command, database_url)
    path, config = str(tmp_path / "b.tar"), Path(find_home(home).config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('locking = "flock"\n')
    assert command("backup", path, "--store", database_url, "--apply").returncode == 0
    assert command("memory", "add", "Harbour", "The ferry leaves at nine.", "--store", database_url).returncode == 0
    planned = command("restore", path, "--store", database_url)
    assert "left as it is: create a new one and name it with --store" in planned.stderr
    assert "--replace" not in planned.stderr
    assert "token" not in planned.stderr  # none of the backup will work
    refused = command("restore", path, "--store", database_url, "--apply")
    assert refused.returncode == 2
    assert "--replace" not in refused.stderr
    config.unlink()
    partly = command("restore", path, "--store", database_url, "--apply")
    assert partly.returncode == 1
    assert re.search(r"^restored 1 part, .*; the database was left out$", partly.stdout, re.MULTILINE)
    config.write_text('locking = "flock"\nredaction = "off"\n')
    differs = command("restore", path, "--home", home, "--store", database_url)
    assert f"restore {path} --replace config.toml --home" in differs.stderr


def test_an_erasure_reaches_the_database_and_a_restore_knows_of_it(
    command: Command, database_url: str, tmp_path: Path
) -> None:
    filled(command, database_url)
    path, other = str(tmp_path / "b.tar"), new_database()
    assert command("backup", path, "--store", database_url, "--apply").returncode == 0
    erased = command("erase", "--all", "--literal", "tide gauge", "--store", database_url, "--apply")
    assert "erased 1 text in 1 memory" in erased.stdout
    assert path in erased.stdout  # the backup holds it
    assert "tide gauge" not in command("memory", "show", "Harbour", "--store", database_url).stdout
    refused = command("restore", path, "--store", other, "--apply")
    assert (refused.returncode, "erased since" in refused.stderr) == (2, True)
    drop_database(other)


def test_a_session_is_bound_to_a_memory_of_the_database_by_the_setting(
    command: Command, home: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(command, database_url)
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    with daypack.open_session("talk", home=home, durability="os", workspace="") as session:
        with pytest.raises(BadInput) as refused:
            session.bind_memory("0" * 32, url=with_password(database_url))
        assert "s3cret" not in str(refused.value)
        session.append("user", "Where does the tide gauge listen?")
        assert command("memory", "bind", "talk", "Harbour").returncode == 0
        assert FACT in str(session.prepare(budget=8_000).messages())


def test_the_index_jobs_of_a_database_are_done_by_a_command_and_by_a_server(
    command: Command, home: str, database_url: str
) -> None:
    filled(command, database_url)
    done = json.loads(command("index", "--memories", "--store", database_url, "--json").stdout)
    assert (done["jobs"] > 0, done["left"]["due"], done["left"]["dead"]) == (True, 0, 0)
    assert command("memory", "add", "Harbour", "The ferry leaves at nine.", "--store", database_url).returncode == 0
    backend = open_backend(find_home(home), database_url)
    assert backend.server is not None
    assert backend.server.jobs.counts().due
    with start_server(home, "--store", database_url) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
        _until(lambda: not backend.server.jobs.counts().due)  # type: ignore[union-attr]
    backend.close()
    for wrong in ((), ("talk", "--memories"), ("talk", "--retry"), ("--retry",)):
        assert command("index", *wrong).returncode == 2


def test_an_attempt_that_failed_is_not_a_job_that_is_done(command: Command, database_url: str) -> None:
    filled(command, database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA daypack FROM daypack_app")
    failed = command("index", "--memories", "--store", database_url)
    assert failed.stdout == "0 jobs done, 1 attempt failed, 0 jobs given up\n"
    assert "1 job will be tried again" in failed.stderr
    again = json.loads(command("index", "--memories", "--store", database_url, "--json").stdout)
    assert (again["jobs"], again["left"]["dead"]) == (0, 0)


def test_doctor_finds_damage_in_a_database_and_repairs_nothing(command: Command, database_url: str) -> None:
    filled(command, database_url)
    healthy = command("doctor", "--store", with_password(database_url))
    assert (healthy.returncode, "1 memory with 2 records checked, no problems" in healthy.stdout) == (0, True)
    assert command("doctor", "--repair", "--store", database_url).stdout == "nothing to repair\n"
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE daypack.entries SET raw = 'other'::bytea")
    for options in ((), ("--repair",), ("--repair", "--apply")):
        damaged = command("doctor", *options, "--store", with_password(database_url))
        assert damaged.returncode == 3
        assert "checksum mismatch" in damaged.stdout
        assert "restore" in damaged.stdout
        assert "s3cret" not in damaged.stdout + damaged.stderr
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT raw FROM daypack.entries").fetchall() == [(b"other",)]


def test_status_counts_the_memory_of_the_project_and_shows_none_before_there_is_one(
    command: Command, database_url: str, home: str
) -> None:
    def memory(*options: str) -> str:
        lines = command("status", "--store", with_password(database_url), "--width", "400", *options).stdout
        return next(line for line in lines.splitlines() if line.startswith("memory"))

    assert memory() == "memory      none yet; it is created with the first entry"
    assert command("memory", "add", FACT, "--store", database_url).returncode == 0
    (listed,) = json.loads(command("memory", "list", "--json", "--store", database_url).stdout)
    assert memory() == f"memory      1 entry in {shown(database_url)}  {listed['memory_id']}"
    shutil.rmtree(home)
    assert memory().startswith("memory      1 entry in ")  # another worker, whose home is empty


def test_dead_jobs_are_shown(command: Command, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(command, database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE daypack.jobs SET dead = now(), problem = 'no model'::bytea")
    checked = command("serve", "--check", "--port", "0", "--store", database_url)
    assert "given up" in checked.stdout
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    shown = command("status")
    assert "given up" in shown.stderr
    examined = command("doctor")
    assert (examined.returncode, "given up after" in examined.stdout) == (0, True)
    assert "store" in shown.stdout
    retried = json.loads(command("index", "--memories", "--retry", "--store", database_url, "--json").stdout)
    assert retried["retried"] > 0
    assert retried["left"]["dead"] == 0


def _until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)
