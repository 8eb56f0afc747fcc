"""The gate: who and what it lets through, with the right status for everybody else."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest

from daypack.errors import AccessDenied, BadInput, DaypackError, StorageFailed
from daypack.llm.addresses import is_loopback
from daypack.serve.http import bodies
from daypack.serve.http.address import Policy, choose_policy
from daypack.serve.http.bodies import MAX_DEPTH, read_json
from daypack.serve.http.gate import Gate, send_json
from daypack.serve.http.turns import Caller

HERE = "http://127.0.0.1:8420"
ARGUMENTS = {"a": 1}
Asked = Callable[..., httpx.Response]


def open_gate(policy: Policy | None = None) -> tuple[Gate, list[dict[str, Any]]]:
    """A gate in front of a door that notes who came through and with what."""
    came: list[dict[str, Any]] = []

    async def door(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        if scope["method"] == "POST":
            body = (await receive())["body"]
        came.append({"caller": scope.get("daypack.caller"), "json": scope.get("daypack.json"), "body": body})
        await send_json(send, 200, b"{}", {"cache-control": "public"})

    async def check_token(secret: str, address: str, *, guessing: bool = False) -> Caller | None:
        return {"reader": Caller("ada", writes=False), "writer": Caller("bob", writes=True)}.get(secret)

    return Gate(door, policy or Policy(), check_token), came


def ask(gate: Gate, path: str = "/api/get_user", method: str = "POST", **more: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=gate)  # pyright: ignore[reportArgumentType]
        async with httpx.AsyncClient(transport=transport, base_url=more.pop("base", HERE)) as client:
            if method == "POST" and "content" not in more:
                more.setdefault("json", ARGUMENTS)
            return await client.request(method, path, **more)

    return anyio.run(send)


def test_a_request_from_this_machine_comes_through_with_its_caller_and_its_json() -> None:
    gate, came = open_gate(Policy(user="eve"))
    assert ask(gate).status_code == 200
    assert came == [{"caller": Caller("eve", writes=True), "json": ARGUMENTS, "body": b'{"a":1}'}]


def test_every_answer_forbids_caches_and_guesses() -> None:
    gate, _ = open_gate()
    for answered in (ask(gate), ask(gate, headers={"Host": "evil.example"}), ask(gate, "/health", "GET")):
        assert answered.headers.get_list("cache-control") == ["no-store"]
        assert answered.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8420", "localhost", "LOCALHOST:1", "localhost.", "[::1]", "[::1]:8420"]
)
def test_the_names_of_this_machine_are_answered(host: str) -> None:
    assert ask(open_gate()[0], headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "127.evil.example",
        "localhost.evil.example",
        "evil.example:8420",
        "127.0.0.1@evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1:80@evil.example",
        "192.168.0.7",
        "localhost:abc",
        "localhost:",
        "localhost:99999",
        "localhost..",
        "localhost:80:80",
        "[::1",
        "::1",
        "[::1]x",
        "[localhost]",
        "local host",
        "0.0.0.0",
        "",
        "::1:evil",
    ],
)
@pytest.mark.parametrize("path", ["/api/get_user", "/mcp", "/health"])
def test_a_foreign_host_name_is_misdirected(host: str, path: str) -> None:
    gate, came = open_gate()
    method = "GET" if path == "/health" else "POST"
    assert ask(gate, path, method, headers={"Host": host}).status_code == 421
    assert came == []


@pytest.mark.parametrize(
    "origin",
    [
        HERE,
        "http://localhost:3000",
        "https://localhost",
        "http://[::1]:9",
        "http://127.0.0.1",
        "HTTP://LOCALHOST:3000",
        "http://localhost.:3000",
    ],
)
def test_a_page_of_this_machine_may_ask(origin: str) -> None:
    assert ask(open_gate()[0], headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://evil.example/http://localhost",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost/path",
        "http://localhost:80@evil",
        "http://localhost:80@evil.example",
        "http://:secret@localhost",
        "http://@localhost",
        "http://localhost:",
        "http://localhost:abc",
        "http://localhost:99999",
        "http://localhost:80:80",
        "http://localhost#evil",
        "http://localhost?evil",
        "http://localhost\\evil.example",
        "http://local\thost",
        " http://localhost",
        "http://localhost ",
        "http:localhost",
        "http://",
        "http://::1",
        "http://[::1].evil.example",
        "http://[::1]evil",
        "http://[localhost]",
        "http://localhost, http://evil.example",
        "null",
        "NULL",
        "file://",
        "chrome-extension://localhost",
        "http://[::1",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/api/get_user", "/mcp", "/health"])
def test_a_page_of_another_origin_is_forbidden(origin: str, path: str) -> None:
    gate, came = open_gate()
    method = "GET" if path == "/health" else "POST"
    assert ask(gate, path, method, headers={"Origin": origin}).status_code == 403
    assert came == []


def test_the_origin_of_the_server_itself_has_its_scheme_and_port() -> None:
    gate, _ = open_gate(choose_policy("local", "0.0.0.0", [], require_token=False))
    headers = {"Host": "192.168.0.7:8420", "Authorization": "Bearer writer"}
    assert ask(gate, headers={**headers, "Origin": "http://192.168.0.7:8420"}).status_code == 200
    for other in (
        "http://192.168.0.7",
        "http://192.168.0.7:8421",
        "https://192.168.0.7:8420",
        "http://192.168.0.70:8420",
    ):
        assert ask(gate, headers={**headers, "Origin": other}).status_code == 403


def test_of_two_origins_each_must_be_ours_and_two_hosts_are_none() -> None:
    gate, came = open_gate()
    mixed = [("Origin", HERE), ("Origin", "https://evil.example")]
    assert ask(gate, headers=mixed).status_code == 403
    assert ask(gate, headers=[("Host", "127.0.0.1"), ("Host", "evil.example")]).status_code == 421
    assert came == []


def test_a_server_that_others_can_reach_wants_a_token_from_everybody() -> None:
    def needed(bound: str, *allowed: str, asked: bool = False) -> bool:
        return choose_policy("local", bound, allowed, require_token=asked).token_required

    assert not needed("127.0.0.1")
    assert not needed("localhost")
    assert not needed("::1")
    assert needed("127.0.0.1", asked=True)
    assert needed("0.0.0.0")
    assert needed("::")
    assert needed("192.168.0.7")
    assert needed("memory.example")
    assert needed("127.0.0.1", "memory.example")  # something in front of it passes requests on


def test_an_allowed_host_is_answered_and_its_pages_may_ask() -> None:
    gate, _ = open_gate(choose_policy("local", "127.0.0.1", ["Memory.example"], require_token=True))
    token = {"Authorization": "Bearer writer"}
    assert ask(gate, headers={"Host": "memory.example", **token}).status_code == 200
    assert ask(gate, headers={"Host": "memory.example:443", "Origin": "https://memory.example", **token}).is_success
    assert ask(gate, headers={"Host": "other.example", **token}).status_code == 421


def test_a_server_on_all_addresses_answers_to_addresses_and_not_to_names() -> None:
    gate, _ = open_gate(choose_policy("local", "0.0.0.0", [], require_token=False))
    token = {"Authorization": "Bearer writer"}
    assert ask(gate, headers={"Host": "192.168.0.7:8420", **token}).status_code == 200
    assert ask(gate, headers={"Host": "[fd00::7]:8420", **token}).status_code == 200
    assert ask(gate, headers={"Host": "evil.example:8420", **token}).status_code == 421


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic writer", "writer"])
@pytest.mark.parametrize("path", ["/api/get_user", "/mcp"])
def test_no_token_or_a_wrong_one_is_unauthorised(given: str | None, path: str) -> None:
    gate, came = open_gate(Policy(token_required=True))
    answered = ask(gate, path, headers={} if given is None else {"Authorization": given})
    assert answered.status_code == 401
    sent = 'Bearer error="invalid_token"'
    assert answered.headers["www-authenticate"] == ("Bearer" if given is None else sent)
    assert "error" in answered.json()
    assert came == []


def test_a_token_says_who_the_caller_is_also_where_none_is_needed() -> None:
    for policy in (Policy(token_required=True), Policy(token_required=False)):
        gate, came = open_gate(policy)
        assert ask(gate, headers={"Authorization": "bearer reader"}).status_code == 200
        assert came[0]["caller"] == Caller("ada", writes=False)
        assert ask(gate, headers={"Authorization": "Bearer wrong"}).status_code == 401
        twice = [("Authorization", "Bearer reader"), ("Authorization", "Bearer writer")]
        assert ask(gate, headers=twice).status_code == 401


def test_health_and_the_description_need_no_token() -> None:
    gate, _ = open_gate(Policy(token_required=True))
    assert ask(gate, "/health", "GET").status_code == 200
    assert ask(gate, "/openapi.json", "GET").status_code == 200
    assert ask(gate, "/health/", "GET").status_code == 401
    assert ask(gate, "/anything", "GET").status_code == 401


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", "*/*"])
def test_a_body_that_a_plain_form_could_send_is_not_read(kind: str) -> None:
    gate, came = open_gate()
    assert ask(gate, content=b"{}", headers={"Content-Type": kind}).status_code == 415
    assert ask(gate, content=b"{}").status_code == 415
    assert came == []


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", 'application/json;charset="UTF-8"']
)
def test_json_is_read_by_any_spelling_of_its_name(kind: str) -> None:
    assert ask(open_gate()[0], content=b"{}", headers={"Content-Type": kind}).status_code == 200


def test_a_rejected_media_type_is_named_with_what_to_send() -> None:
    refused = ask(open_gate()[0], content=b"a=1", headers={"Content-Type": "application/x-www-form-urlencoded"})
    problem = refused.json()["error"]
    assert "application/x-www-form-urlencoded" in problem["message"]
    assert "Content-Type: application/json" in problem["hint"]


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "application/json; charset=utf-16"}, {"Content-Encoding": "gzip"}]
)
def test_other_charsets_and_packed_bodies_are_not_read(headers: dict[str, str]) -> None:
    gate, came = open_gate()
    assert ask(gate, content=b"{}", headers={"Content-Type": "application/json"} | headers).status_code == 415
    assert came == []


def chunks(size: int, count: int) -> AsyncIterator[bytes]:
    async def give() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b" " * size

    return give()


def test_a_body_is_limited_whether_its_length_is_told_or_not() -> None:
    gate, came = open_gate(Policy(max_body_bytes=1000))
    fits, over = b'"' + b"x" * 998 + b'"', b'"' + b"x" * 999 + b'"'
    kind = {"Content-Type": "application/json"}
    assert ask(gate, content=fits, headers=kind).status_code == 200
    assert ask(gate, content=over, headers=kind).status_code == 413
    assert ask(gate, content=chunks(100, 11), headers=kind).status_code == 413
    assert ask(gate, content=chunks(100, 11), headers=kind | {"Content-Length": "5"}).status_code == 413
    assert len(came) == 1


def test_what_is_no_post_has_no_body() -> None:
    gate, came = open_gate()
    assert ask(gate, "/health", "GET", content=b"{}").status_code == 400
    assert ask(gate, "/api/memories", "GET", content=chunks(1, 1)).status_code == 400
    assert ask(gate, "/mcp", "DELETE", content=b"{}").status_code == 400
    assert came == []


def test_a_body_that_trickles_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep(60)
        yield b"}"

    async def hurry(receive: bodies.Receive, *, most: int) -> bytes:
        return await whole(receive, most=most, seconds=0.05)

    whole = bodies.collect
    monkeypatch.setattr("daypack.serve.http.gate.collect", hurry)
    gate, came = open_gate()
    answered = ask(gate, content=trickle(), headers={"Content-Type": "application/json"})
    assert answered.status_code == 408
    assert answered.headers["connection"] == "close"
    assert came == []


def test_a_sender_who_goes_is_not_answered() -> None:
    gate, came = open_gate()
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/api/get_user", "scheme": "http", "headers": headers}
    anyio.run(_awaited(gate(scope, receive, send)))
    assert sent == came == []


def _awaited(promise: Awaitable[None]) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        await promise

    return wait


def test_a_refusal_at_the_mcp_door_is_a_json_rpc_error() -> None:
    answered = ask(open_gate()[0], "/mcp", content=b"{", headers={"Content-Type": "application/json"})
    assert answered.status_code == 400
    told = answered.json()
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", None, -32700)


@pytest.mark.parametrize("text", ['{"a":[1,2.5e3,-0,"\\ud83d\\ude00 ü 中",true,null]}', " [] ", '"x"', "1e308"])
def test_json_is_read_as_it_stands(text: str) -> None:
    assert read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a':1}",
        b'{"a":1,}',
        b"[1] [2]",
        b"NaN",
        b'{"a":NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b"1e400",
        b"-1e400",
        b"9" * 5000,
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\x01"',
        b"\xef\xbb\xbf{}",
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000,
        b"0x10",
        b"// {}",
        "{}".encode("utf-16"),
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_readers_of_json_disagree_about_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        read_json(body)
    gate, came = open_gate()
    answered = ask(gate, content=body, headers={"Content-Type": "application/json"})
    assert answered.status_code == 400
    assert came == []


def test_nesting_is_counted_exactly() -> None:
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert read_json(deep)
    mixed = b'{"a":[' * (MAX_DEPTH // 2) + b"1" + b"]}" * (MAX_DEPTH // 2)
    assert read_json(mixed)
    with pytest.raises(BadInput, match="nested"):
        read_json(b"[" + mixed + b"]")


def test_loopback_is_an_address_or_its_one_name() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost")))
    assert not any(map(is_loopback, ("127.example.org", "127.0.0.1.example.org", "1.2.3.4", "", "127.1", "::")))


@pytest.mark.parametrize("error", [StorageFailed, AccessDenied])
def test_a_database_that_does_not_answer_is_no_wrong_token(error: type[DaypackError]) -> None:
    async def door(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async def check_token(secret: str, address: str, *, guessing: bool = False) -> Caller | None:
        raise error("connection to 10.0.0.7 failed", place="postgresql://daypack@10.0.0.7/memories")

    gate = Gate(door, Policy(), check_token)
    for path in ("/api/get_user", "/mcp"):
        answered = ask(gate, path, headers={"Authorization": "Bearer dp_secret"})
        assert (answered.status_code, answered.headers["retry-after"]) == (503, "5")
        assert "10.0.0.7" not in answered.text
        assert error.__name__ in answered.text
        assert ("jsonrpc" in answered.json()) == (path == "/mcp")
