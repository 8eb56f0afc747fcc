"""The page of several processes with one key: what one of them gives to a browser, each of them believes."""

import base64
import json
import sys
from pathlib import Path

import anyio
import httpx
import psycopg
import pytest
from memory_server import run_daypack, start_server
from postgres_server import needs_postgres
from serve.page.pages import BROWSER, enter, look

from daypack.errors import StorageFailed
from daypack.memory.tools import Memories, open_memory
from daypack.serve.http.page_requests import Pass
from daypack.serve.page import access as accesses
from daypack.serve.page.access import PageAccess, cookie_name
from daypack.serve.page.signed import Signer
from daypack.serve.shared.sharing import page_claim
from tools.postgres import Server

KEY, OTHER = bytes(range(32)), bytes(32)
WITH_KEY = f"import daypack.serve.shared.sharing as sharing\nsharing.page_key = lambda _: {KEY!r}\n"
START = "/page/data/start"


def find(access: PageAccess, value: str) -> Pass | None:
    return access.find([f"{cookie_name(8420)}={value}"], 8420)


def use(access: PageAccess, token: str) -> bool:
    return anyio.run(access.use_token, token)


def test_a_cookie_is_valid_at_every_process_with_the_key_and_at_no_other() -> None:
    here, there = PageAccess("ada", KEY), PageAccess("ada", KEY)
    cookie = here.new_cookie()
    found = find(there, cookie)
    assert found is not None
    assert found.caller is not None
    assert (found.caller.user, found.caller.writes) == ("ada", True)
    assert find(PageAccess("ada", OTHER), cookie) is None
    assert find(PageAccess("ada"), cookie) is None
    assert there.is_write_token(found.key, here.write_token(found.key))
    assert not PageAccess("ada", OTHER).is_write_token(found.key, here.write_token(found.key))


def test_a_cookie_of_an_access_token_holds_its_id_and_no_secret() -> None:
    cookie = PageAccess("ada", KEY).new_cookie("bob", "dp_secret", "1234")
    found = find(PageAccess("ada", KEY), cookie)
    assert found is not None
    assert (found.caller, found.secret, found.token) == (None, "", ("bob", "1234"))
    body = cookie.partition(".")[0]
    assert "secret" not in base64.urlsafe_b64decode(body + "==").decode()


def test_a_changed_cookie_is_refused() -> None:
    access = PageAccess("ada", KEY)
    body, _, signature = access.new_cookie("bob", "dp_secret", "1234").partition(".")
    fields = json.loads(base64.urlsafe_b64decode(body + "=="))
    for change in ({"user": "ada"}, {"token_id": ""}, {"expires": fields["expires"] + 1}):
        forged = base64.urlsafe_b64encode(json.dumps(fields | change).encode()).decode().rstrip("=")
        assert find(access, f"{forged}.{signature}") is None
    for broken in ("", ".", body, f"{body}.", f".{signature}", f"{body}.{signature}x", f"{body}.é", f"é.{signature}"):
        assert find(access, broken) is None
    assert find(access, access.new_token()) is None  # a one-time token is no cookie
    assert not use(access, access.new_cookie())  # nor the other way round
    with pytest.raises(ValueError, match="32 bytes"):
        Signer(b"short")


def test_signed_values_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    access = PageAccess("ada", KEY)
    monkeypatch.setattr(accesses, "COOKIE_SECONDS", 0)
    monkeypatch.setattr(accesses, "ONCE_SECONDS", 0)
    assert find(access, access.new_cookie()) is None
    assert not use(access, access.new_token())


def test_a_one_time_token_works_at_another_process_of_the_same_owner() -> None:
    here, there = PageAccess("ada", KEY), PageAccess("ada", KEY)
    token = here.new_token()
    assert [use(there, token), use(there, token)] == [True, False]
    assert not use(PageAccess("bob", KEY), here.new_token())  # it is for another user
    assert not use(PageAccess("ada", OTHER), here.new_token())


@needs_postgres
def test_a_one_time_token_works_once_at_all_processes_together(database_url: str, tmp_path: Path) -> None:
    with (
        open_memory(home=tmp_path, url=database_url) as first,
        open_memory(home=tmp_path, url=database_url) as second,
    ):
        assert isinstance(first, Memories)
        assert isinstance(second, Memories)
        here, there = (PageAccess("ada", KEY, page_claim(each.backend)) for each in (first, second))
        token, other = here.new_token(), here.new_token()
        assert [use(there, token), use(here, token), use(there, token)] == [True, False, False]
        assert [use(here, other), use(there, other)] == [True, False]


@needs_postgres
def test_a_one_time_token_works_once_whatever_happens_to_the_database(tmp_path: Path) -> None:
    def claim(url: str, token: str) -> bool:
        with open_memory(home=tmp_path / "home", url=url) as memories:
            assert isinstance(memories, Memories)
            return use(PageAccess("ada", KEY, page_claim(memories.backend)), token)

    token, fresh = (PageAccess("ada", KEY).new_token() for _ in range(2))
    with Server.start(tmp_path / "primary") as primary:
        assert claim(primary.url(), token)
        primary.restart(immediate=True)
        assert not claim(primary.url(), token)
        with primary.replica(tmp_path / "replica") as replica:
            primary.down(immediate=True)
            replica.promote()
            assert not claim(replica.url(), token)
            assert claim(replica.url(), fresh)


@needs_postgres
def test_uses_of_one_time_tokens_are_forgotten_when_those_have_expired(database_url: str, tmp_path: Path) -> None:
    with (
        open_memory(home=tmp_path, url=database_url) as memories,
        psycopg.connect(database_url, autocommit=True) as connection,
    ):
        assert isinstance(memories, Memories)
        access = PageAccess("ada", KEY, page_claim(memories.backend))
        assert use(access, access.new_token())
        connection.execute("UPDATE daypack.used_tokens SET at = at - interval '1 hour'")
        assert use(access, access.new_token())
        assert connection.execute("SELECT count(*) FROM daypack.used_tokens").fetchone() == (1,)


@needs_postgres
def test_a_one_time_token_is_not_used_up_while_the_database_is_away(tmp_path: Path) -> None:
    nowhere = "postgresql://ada@127.0.0.1:1/memories"
    with open_memory(home=tmp_path, url=nowhere) as memories:
        assert isinstance(memories, Memories)
        assert memories.backend.server is not None
        memories.backend.server.database.patience = 0.0
        access = PageAccess("ada", KEY, page_claim(memories.backend))
        token = access.new_token()
        with pytest.raises(StorageFailed):
            use(access, token)
    access._claim = None  # pyright: ignore[reportPrivateUsage] — the database is back
    assert use(access, token)


@needs_postgres
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is not shared")
def test_the_printed_address_works_once_whichever_process_answers(database_url: str, tmp_path: Path) -> None:
    home, options = str(tmp_path / "home"), ("--user", "ada", "--share-port", "--store", database_url)
    with (
        start_server(home, *options) as first,
        start_server(home, *options, "--port", str(first.told["port"])) as second,
    ):
        for page in (first.told["page"], second.told["page"]):
            answers = [httpx.get(page, headers=BROWSER, trust_env=False) for _ in range(30)]
            assert [bool(answer.headers.get("set-cookie")) for answer in answers] == [True] + 29 * [False]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is not shared")
def test_a_browser_stays_in_at_an_address_that_processes_share(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    with open_memory(home=home, user="ada") as memories:
        memories.users.get("bob")
        made = memories.users.new_token("bob", scope="read")
    options = ("--user", "ada", "--share-port")
    with (
        start_server(home, *options, before=WITH_KEY) as first,
        start_server(home, *options, "--port", str(first.told["port"]), before=WITH_KEY) as second,
    ):
        owner, reader = enter(first.told["page"]), look(second.url)
        seen = [owner.get(START) for _ in range(30)]  # each on a connection of its own
        assert {answer.status_code for answer in seen} == {200}
        assert len({answer.json()["write_token"] for answer in seen}) == 1
        assert reader.post("/page/enter", json={"token": made.secret}).status_code == 200
        assert {answer.json()["user"] for answer in ask_often(reader)} == {"bob"}
        assert {answer.json()["writes"] for answer in ask_often(reader)} == {False}
        assert run_daypack(home, "token", "revoke", made.token.token_id).returncode == 0
        assert {answer.status_code for answer in ask_often(reader)} == {401}
        assert httpx.get(f"{first.url}/", headers=BROWSER, trust_env=False).status_code == 200


def ask_often(client: httpx.Client) -> list[httpx.Response]:
    return [client.get(START) for _ in range(12)]
