"""The gate with a page: what counts as a call, and whose cookie a request has."""

from collections.abc import Sequence
from typing import Any

import anyio
import httpx
import pytest

from daypack.serve.http.address import Policy
from daypack.serve.http.gate import Gate, send_json
from daypack.serve.http.limits import Shares
from daypack.serve.http.page_requests import Pass
from daypack.serve.http.turns import Caller

HERE = "http://127.0.0.1:8420"


class Visitors:
    """Knows one cookie of the owner, and one that was made from a token."""

    def find(self, cookies: Sequence[str], port: int) -> Pass | None:
        known = {f"c{port}=owner": Pass("1", Caller("ada", writes=True)), f"c{port}=token": Pass("2", None, "secret")}
        return next((known[cookie] for cookie in cookies if cookie in known), None)


def ask(path: str, cookie: str, visitors: Visitors | None, *, valid: bool = True) -> tuple[int, dict[str, Any]]:
    """Return the status of a request, and what came through the gate."""
    shares, came = Shares(), dict[str, Any]()

    async def door(scope: Any, _: Any, send: Any) -> None:
        came.update(caller=scope["daypack.caller"], calls=dict(shares.calls), key=scope.get("daypack.pass"))
        await send_json(send, 200, b"{}")

    async def check_token(secret: str, address: str, *, guessing: bool = False) -> Caller | None:
        return Caller("bob", writes=False, token_id="t") if valid and secret == "secret" else None

    async def send() -> int:
        gate = Gate(door, Policy(user="ada"), check_token, shares, visitors)
        transport = httpx.ASGITransport(app=gate)  # pyright: ignore[reportArgumentType]
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return (await client.get(path, headers={"Cookie": cookie})).status_code

    status = anyio.run(send)
    assert not shares.calls
    return status, came


def test_a_request_for_data_is_a_call_of_its_user_and_a_stream_is_none() -> None:
    assert ask("/page/data/start", "c8420=owner", Visitors()) == (
        200,
        {"caller": Caller("ada", writes=True), "calls": {"ada": 1}, "key": "1"},
    )
    assert ask("/page/live", "c8420=owner", Visitors())[1]["calls"] == {}


def test_a_cookie_from_a_token_is_checked_with_every_request() -> None:
    status, came = ask("/page/data/start", "c8420=token", Visitors())
    assert (status, came["caller"], came["key"]) == (200, Caller("bob", writes=False, token_id="t"), "2")
    assert ask("/page/data/start", "c8420=token", Visitors(), valid=False) == (401, {})


@pytest.mark.parametrize("cookie", ["", "c80=owner", "c8420=other"])
def test_without_a_known_cookie_the_page_has_no_user_and_the_tools_keep_theirs(cookie: str) -> None:
    assert ask("/page/data/start", cookie, Visitors()) == (401, {})
    assert ask("/api/memories", cookie, Visitors())[1]["caller"] == Caller("ada", writes=True)


def test_a_cookie_means_nothing_to_the_tools() -> None:
    assert ask("/api/memories", "c8420=token", Visitors())[1]["caller"] == Caller("ada", writes=True)
