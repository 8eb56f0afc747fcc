"""What a host sends to a status line: read as far as it can be used."""

import json

import pytest
from hooks.status.host_inputs import host_input

from daypack.hooks.status.host import Host, read_host
from daypack.hooks.status.status import Cache, Window


def test_the_fields_of_claude_code_are_read() -> None:
    host = read_host(host_input())
    assert host == Host(
        session="7175a1ac-1287-4d45-b82e-d0727e7f22a3",
        folder="/src/app",
        model="Opus 5.5",
        cost_usd=0.1399,
        window=Window(160_000, 200_000),
        cache=Cache(hit_share=0.93, warm=True, expires_at=1794962400, misses=2, cause="tools changed"),
    )


def test_a_window_without_usage_is_read_from_its_percentage() -> None:
    window = {"context_window_size": 1_000_000, "current_usage": None, "used_percentage": 25}
    host = read_host(host_input(context_window=window))
    assert host
    assert host.window == Window(250_000, 1_000_000)


def test_a_session_before_its_first_call_has_an_empty_window_and_no_cache() -> None:
    window = {"context_window_size": 1_000_000, "current_usage": None, "used_percentage": None}
    host = read_host(host_input(context_window=window, prompt_cache={"warm": False, "caching_observed": False}))
    assert host
    assert host.window == Window(0, 1_000_000)
    assert host.cache is None


@pytest.mark.parametrize("data", [b"", b"  \n", b"{", b"[]", b"3", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000])
def test_what_is_not_an_object_is_nothing(data: bytes) -> None:
    assert read_host(data) is None


@pytest.mark.parametrize("wrong", [None, 3, "x", [], {}, True, -1, 1e300, float("nan"), {"hit_ratio": "x"}])
def test_fields_of_other_types_are_unknown(wrong: object) -> None:
    whole = json.loads(host_input())
    assert read_host(json.dumps(dict.fromkeys(whole, wrong)).encode()) is not None
    for name in whole:
        host = read_host(host_input(**{name: wrong}))
        assert host
        assert host.cost_usd is None or host.cost_usd < 1e15
        assert host.window is None or host.window.size > 0
    inner = dict.fromkeys(json.loads(host_input())["prompt_cache"], wrong)
    host = read_host(host_input(prompt_cache=inner, context_window={"context_window_size": wrong}))
    assert host
    assert host.cache is None or host.cache.hit_share is None or 0 <= host.cache.hit_share <= 1
