"""Who sees the page: tokens, cookies, origins and users, over real sockets."""

import secrets
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import NamedTuple

import httpx
import pytest
from memory_server import Server, find_errors, run_daypack, start_server
from serve.page.pages import BROWSER, ask, enter, look, origin_of, start_view

import daypack
from daypack.memory.tools import open_memory
from daypack.serve.page.access import PageAccess, cookie_name

SECRET_WORDS = "the harbour key is under the third stone"
PAGE = "/page/data/start"


class Place(NamedTuple):
    """A server of ada, with a memory each of ada and bob, and one session."""

    server: Server
    ada_memory: str
    bob_memory: str
    tokens: dict[str, str]  # by what they are for

    @property
    def url(self) -> str:
        return self.server.url

    def enter(self, token: str) -> httpx.Client:
        """Return a browser into which an access token was pasted."""
        client = look(self.url)
        answer = client.post("/page/enter", json={"token": token})
        assert answer.status_code == 200, answer.text
        return client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = str(tmp_path_factory.mktemp("page") / "home")
    with open_memory(home=home, user="ada") as memories:
        ada = memories.create_memory("plans of ada").memory_id
        bob = memories.as_user("bob").create_memory("plans of bob").memory_id
        for user in ("ada", "bob"):
            memories.users.get(user)
        made = {
            "ada": memories.users.new_token("ada").secret,
            "reader": memories.users.new_token("ada", scope="read").secret,
            "bob": memories.users.new_token("bob").secret,
        }
    with daypack.open_session("work", home=home, durability="os") as session:
        session.append("user", SECRET_WORDS)
    with start_server(home, "--user", "ada", "--bad-tokens", "0") as server:
        yield Place(server, ada, bob, made)


@pytest.fixture(scope="module")
def owner(place: Place) -> httpx.Client:
    """A browser with the address that the server printed."""
    return enter(place.server.told["page"])


def test_page_data_needs_a_token_on_loopback_although_the_tools_need_none(place: Place) -> None:
    assert place.server.call("get_user").status_code == 200
    for path in (PAGE, "/page/data/sessions", "/page/data/memories", "/page/live"):
        refused = look(place.url).get(path)
        assert refused.status_code == 401
        assert "daypack view" in refused.json()["error"]["hint"]
    assert look(place.url).post("/page/do/hide-memory", json={"id": place.ada_memory}).status_code == 401


def test_a_one_time_token_works_once_and_looking_does_not_use_it_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = str(tmp_path_factory.mktemp("once") / "home")
    with start_view(home, "--no-open") as view:
        assert not look(view.url).head(view.url, headers=BROWSER).headers.get("set-cookie")
        first, second = enter(view.url), look(view.url)
        answer = second.get(view.url, headers=BROWSER)
        assert (answer.status_code, answer.headers.get("set-cookie")) == (303, None)
        assert second.get(PAGE).status_code == 401
        assert first.get(PAGE).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "dp_x", "é", "a" * 5000])
def test_a_guessed_token_gives_no_cookie(place: Place, token: str) -> None:
    answer = look(place.url).get("/", params={"token": token}, headers=BROWSER)
    assert "set-cookie" not in answer.headers
    entered = look(place.url).post("/page/enter", json={"token": token})
    assert (entered.status_code, entered.headers.get("set-cookie")) == (401, None)


def test_guessing_is_limited_as_for_access_tokens(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = str(tmp_path_factory.mktemp("guess") / "home")
    with start_server(home, "--bad-tokens", "6") as server:
        client = look(server.url)
        answers = [client.post("/page/enter", json={"token": secrets.token_urlsafe(32)}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [401, 429, 429, 429]
        assert answers[-1].json()["error"]["code"] == "RateLimited"
        assert client.get("/", params={"token": "guess"}, headers=BROWSER).status_code == 429
        assert enter(server.told["page"]).get(PAGE).status_code == 200  # the right one still works


def test_a_user_with_many_cookies_loses_the_oldest_and_others_lose_none() -> None:
    access = PageAccess("ada")

    def is_known(value: str) -> bool:
        return access.find([f"{cookie_name(8420)}={value}"], 8420) is not None

    owner, ada = access.new_cookie(), access.new_cookie("ada", "secret of ada")
    bob = [access.new_cookie("bob", "secret of bob") for _ in range(2000)]
    assert (is_known(owner), is_known(ada)) == (True, True)
    known = [is_known(value) for value in bob]
    assert known == [False] * (2000 - sum(known)) + [True] * sum(known)
    assert 2 <= sum(known) <= 50


def test_entering_counts_as_a_request_of_its_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = str(tmp_path_factory.mktemp("rate") / "home")
    with open_memory(home=home, user="ada") as memories:
        memories.users.get("bob")
        token = memories.users.new_token("bob").secret
    with start_server(home, "--user", "ada", "--rate", "6") as server:
        client = look(server.url)
        answers = [client.post("/page/enter", json={"token": token}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 429, 429]
        assert "set-cookie" not in answers[1].headers


def test_the_cookie_is_for_this_port_not_for_scripts_and_not_for_other_sites(place: Place, owner: httpx.Client) -> None:
    answer = look(place.url).post("/page/enter", json={"token": place.tokens["ada"]})
    [cookie] = SimpleCookie(answer.headers["set-cookie"]).values()
    assert cookie.key.endswith(f"-{place.server.told['port']}")
    assert (cookie["path"], cookie["samesite"], cookie["httponly"]) == ("/page", "Strict", True)
    assert not cookie["secure"]
    assert len(cookie.value) >= 43
    proxied = look(place.url).post(
        "/page/enter", json={"token": place.tokens["ada"]}, headers={"Origin": origin_of(place.url)}
    )
    assert "Secure" not in proxied.headers["set-cookie"]
    [(name, value)] = owner.cookies.items()
    other = look(place.url, Cookie=f"{name[:-1]}={value}")
    assert other.get(PAGE).status_code == 401
    assert look(place.url, Cookie=f"a=b; {name}={value}; c").get(PAGE).status_code == 200
    assert look(place.url, Cookie=f"{name}={value[:-1]}").get(PAGE).status_code == 401


def test_behind_a_proxy_with_tls_the_cookie_is_secure_and_the_printed_address_has_no_token(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = str(tmp_path_factory.mktemp("proxy") / "home")
    with open_memory(home=home) as memories:
        memories.users.get("local")
        token = memories.users.new_token("local").secret
    with start_server(home, "--allow-host", "pack.example", "--host", "0.0.0.0") as server:
        assert server.told["page"] == f"{server.url}/"
        host = {"Host": "pack.example", "Origin": "https://pack.example"}
        base = f"http://127.0.0.1:{server.told['port']}"
        entered = look(base).post("/page/enter", json={"token": token}, headers=host)
        assert "Secure" in entered.headers["set-cookie"]
        for origin in ("https://pack.example:444", "https://evil.example", "http://pack.example:1"):
            refused = look(base).post("/page/enter", json={"token": token}, headers=host | {"Origin": origin})
            assert refused.status_code == 403


@pytest.mark.parametrize("path", ["/", PAGE, "/page/live", "/page/assets/x.js"])
def test_another_host_name_is_refused(place: Place, owner: httpx.Client, path: str) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", f"evil.example:{place.server.told['port']}"):
        assert owner.get(path, headers=BROWSER | {"Host": host}).status_code == 421


@pytest.mark.parametrize("path", ["/", PAGE, "/page/live", "/page/assets/x.js"])
def test_another_origin_is_refused_and_so_is_another_port_of_this_machine(
    place: Place, owner: httpx.Client, path: str
) -> None:
    port = place.server.told["port"]
    for origin in (
        "https://evil.example", "null", f"http://127.0.0.1:{port + 1}", "http://localhost:3000", "http://127.0.0.1",
        f"https://127.0.0.1:{port}", f"http://localhost:{port}", "file://", "",
    ):  # fmt: skip
        refused = owner.get(path, headers=BROWSER | {"Origin": origin})
        assert refused.status_code == 403, origin
    assert owner.get(PAGE, headers={"Origin": origin_of(place.url)}).status_code == 200
    assert look(place.url).get("/api/memories", headers={"Origin": "http://localhost:3000"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_causes_is_refused_except_a_link_to_the_shell(
    place: Place, owner: httpx.Client, site: str
) -> None:
    elsewhere = BROWSER | {"Sec-Fetch-Site": site}
    asset = look(place.url).get("/", headers=BROWSER).text.partition('src="')[2].partition('"')[0]
    for path in (PAGE, "/page/live", asset):
        assert owner.get(path, headers=elsewhere).status_code == 403
    assert owner.get(asset).status_code == 200
    write = {"X-Daypack-Write": ask(owner, "start")["write_token"], "Sec-Fetch-Site": site}
    assert owner.post("/page/do/hide-memory", json={"id": place.ada_memory}, headers=write).status_code == 403
    assert owner.get("/", headers=elsewhere).status_code == 200
    assert owner.get("/", headers=elsewhere | {"Sec-Fetch-Mode": "no-cors"}).status_code == 403


def test_the_shell_holds_no_data_and_is_the_same_for_everybody(place: Place, owner: httpx.Client) -> None:
    shell = owner.get("/", headers=BROWSER)
    assert shell.headers["content-type"] == "text/html; charset=utf-8"
    assert shell.text == look(place.url).get("/", headers=BROWSER).text
    for word in ("work", "ada", "bob", SECRET_WORDS, place.server.home, ask(owner, "start")["write_token"]):
        assert word not in shell.text.replace("network", "")
    described = httpx.get(place.url, trust_env=False)
    assert described.headers["content-type"] == "application/json"
    assert list(described.json()["paths"])[:2] == ["/mcp", "/api/TOOL"]


def test_every_answer_of_the_page_restricts_the_browser(place: Place, owner: httpx.Client) -> None:
    shell = owner.get("/", headers=BROWSER)
    asset = shell.text.partition('src="')[2].partition('"')[0]
    answers = [
        shell, owner.get(PAGE), owner.get("/page/data/nothing"), owner.get("/page/nothing"), look(place.url).get(PAGE),
        owner.get(asset), owner.get(PAGE, headers={"Origin": "https://evil.example"}),
    ]  # fmt: skip
    for answer in answers:
        policy = {rule.split()[0]: rule.split()[1:] for rule in answer.headers["content-security-policy"].split("; ")}
        assert policy["default-src"] == policy["script-src"] == policy["style-src"] == ["'self'"]
        for forbidden in ("object-src", "base-uri", "form-action", "frame-ancestors"):
            assert policy[forbidden] == ["'none'"]
        assert (policy["require-trusted-types-for"], policy["trusted-types"]) == (["'script'"], ["'none'"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        kept = "immutable" in answer.headers["cache-control"]
        assert kept == (answer.url.path == asset)
        assert kept or answer.headers.get_list("cache-control") == ["no-store"]


def test_another_user_sees_no_session_and_only_own_memories(place: Place) -> None:
    pasted = place.enter(place.tokens["bob"])
    sent = look(place.url, Authorization=f"Bearer {place.tokens['bob']}")
    for client in (pasted, sent):
        start = ask(client, "start")
        assert (start["user"], start["owner"], start["writes"], start["home"]) == ("bob", False, True, "")
        for view in ("sessions", "session", "messages", "find", "health", "doctor"):
            refused = client.get(f"/page/data/{view}", params={"agent": "default", "session": "work", "q": "harbour"})
            assert refused.status_code == 403
            assert SECRET_WORDS not in refused.text
        assert client.get("/page/live").status_code == 403
        assert [memory["id"] for memory in ask(client, "memories")["memories"]] == [place.bob_memory]
        assert client.get("/page/data/memory", params={"id": place.ada_memory}).status_code == 404
        write = {"X-Daypack-Write": start["write_token"]}
        assert client.post("/page/do/hide-memory", json={"id": place.ada_memory}, headers=write).status_code == 404
        assert client.post("/page/do/undo", json={"agent": "default"}, headers=write).status_code == 403


def test_an_owner_sees_sessions_with_either_kind_of_token(place: Place, owner: httpx.Client) -> None:
    for client in (
        owner,
        place.enter(place.tokens["ada"]),
        look(place.url, Authorization=f"Bearer {place.tokens['ada']}"),
    ):
        start = ask(client, "start")
        assert (start["user"], start["owner"], start["writes"]) == ("ada", True, True)
        assert ask(client, "messages", agent="default", session="work")["messages"][0]["text"] == SECRET_WORDS


def test_a_write_needs_the_token_of_this_cookie_in_a_header(place: Place, owner: httpx.Client) -> None:
    other = place.enter(place.tokens["ada"])
    right, wrong = (ask(client, "start")["write_token"] for client in (owner, other))
    body = {"id": place.ada_memory}
    for headers in ({}, {"X-Daypack-Write": ""}, {"X-Daypack-Write": wrong}, {"X-Daypack-Write": right[:-1]}):
        refused = owner.post("/page/do/hide-memory", json=body, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "AccessDenied")
    assert [memory["hidden_at"] for memory in ask(owner, "memories")["memories"]] == [None]
    for action in ("hide-memory", "restore-memory"):
        done = owner.post(f"/page/do/{action}", json=body, headers={"X-Daypack-Write": right})
        assert done.status_code == 200, done.text
    assert owner.get("/page/do/hide-memory", headers={"X-Daypack-Write": right}).status_code == 405
    form = owner.post("/page/do/hide-memory", data=body, headers={"X-Daypack-Write": right})
    assert form.status_code == 415
    for content in ("[]", '{"id": 1}', '"x"'):
        headers = {"X-Daypack-Write": right, "Content-Type": "application/json"}
        assert owner.post("/page/do/hide-memory", content=content, headers=headers).status_code == 400


def test_a_read_only_token_cannot_write(place: Place) -> None:
    for client in (
        place.enter(place.tokens["reader"]),
        look(place.url, Authorization=f"Bearer {place.tokens['reader']}"),
    ):
        start = ask(client, "start")
        assert (start["owner"], start["writes"], start["write_token"]) == (True, False, None)
        writing = ask(place.enter(place.tokens["ada"]), "start")["write_token"]
        for headers in ({}, {"X-Daypack-Write": writing}):
            refused = client.post("/page/do/hide-memory", json={"id": place.ada_memory}, headers=headers)
            assert refused.status_code == 403
            assert "read-only" in refused.json()["error"]["message"]


def test_a_cookie_ends_with_the_access_token_it_was_made_from(place: Place) -> None:
    with open_memory(home=place.server.home, user="ada") as memories:
        made = memories.users.new_token("ada")
        client = place.enter(made.secret)
        assert client.get(PAGE).status_code == 200
        memories.users.revoke(made.token.token_id)
    assert client.get(PAGE).status_code == 401


def test_data_is_compressed_for_those_who_accept_it(owner: httpx.Client) -> None:
    packed = owner.get(PAGE, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    plain = owner.get(PAGE, headers={"Accept-Encoding": "identity"})
    refusing = owner.get(PAGE, headers={"Accept-Encoding": "gzip;q=0"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refusing.headers
    assert packed.json() == plain.json() == refusing.json()
    assert int(packed.headers["content-length"]) < len(plain.content) > 2_000


def test_no_log_line_has_a_token_or_a_cookie(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = str(tmp_path_factory.mktemp("log") / "home")
    with start_view(home, "--no-open", "--log-level", "debug") as view:
        client = enter(view.url)
        look(view.url).get(view.url, headers=BROWSER)
        token = view.url.partition("token=")[2]
        [cookie] = client.cookies.values()
        write = ask(client, "start")["write_token"]
        look(view.url).post("/page/enter", json={"token": "dp_" + "x" * 43})
        client.post("/page/do/hide-memory", json={"id": "x"}, headers={"X-Daypack-Write": write})
        view.process.send_signal(2)
        _, log = view.process.communicate(timeout=30)
    assert '"/page/do"' in log
    for secret in (token, cookie, write, "dp_xxx"):
        assert secret not in log
    assert find_errors(log) == []


def test_what_is_done_on_the_page_is_audited_with_its_request(place: Place, owner: httpx.Client) -> None:
    write = {"X-Daypack-Write": ask(owner, "start")["write_token"]}
    for action, number in (("hide-memory", "page-1"), ("restore-memory", "page-2")):
        owner.post(f"/page/do/{action}", json={"id": place.ada_memory}, headers=write | {"X-Request-Id": number})
    done = run_daypack(place.server.home, "audit-log", "--json", "--request", "page-1")
    assert '"action":"hide"' in done.stdout
    assert '"door":"http"' in done.stdout


def test_an_address_that_was_used_leads_to_a_page_that_says_so(place: Place, owner: httpx.Client) -> None:
    assert owner.get(PAGE).status_code == 200  # the address is used
    again = look(place.url).get(place.server.told["page"], headers=BROWSER)
    assert (again.status_code, again.headers["location"]) == (303, "/?used")
    assert look(place.url).get("/?used", headers=BROWSER).text.startswith("<!doctype html>")
