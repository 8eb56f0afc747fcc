"""Shares: rates and calls in progress, per caller; the tables stay small."""

import asyncio

import pytest

from daypack.errors import RateLimited, ServerBusy
from daypack.serve.http.limits import Rates, ServerLimits, Shares, caller_address


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("daypack.serve.http.limits.time.monotonic", lambda: now[0])
    return now


def test_a_rate_has_a_burst_and_refills(clock: list[float]) -> None:
    rates = Rates(60)
    for _ in range(10):
        assert rates.wait_seconds("ada") == 0
        rates.count("ada")
    assert rates.wait_seconds("ada") == 1
    assert rates.wait_seconds("eve") == 0
    clock[0] += 1
    assert rates.wait_seconds("ada") == 0


def test_a_rate_remembers_a_bounded_number_of_callers(clock: list[float]) -> None:
    rates = Rates(6, most_keys=100)
    for number in range(10_000):
        rates.count(str(number))
    assert len(rates) == 100


def test_a_rate_of_zero_is_none(clock: list[float]) -> None:
    rates = Rates(0)
    for _ in range(1000):
        rates.count("ada")
    assert (rates.wait_seconds("ada"), len(rates)) == (0, 0)


def test_a_user_over_the_rate_is_refused_and_others_are_not(clock: list[float]) -> None:
    shares = Shares(ServerLimits(rate=60))
    for _ in range(10):
        asyncio.run(shares.check_rate("ada"))
    with pytest.raises(RateLimited, match="10 at once, then 60 per minute") as refused:
        asyncio.run(shares.check_rate("ada"))
    assert refused.value.retry_after == 1
    asyncio.run(shares.check_rate("eve"))
    assert shares.usage.refused == {"rate": 1}


def test_a_full_server_refuses_the_users_with_the_most_calls() -> None:
    shares = Shares(ServerLimits(connections=100, calls_per_user=60))
    for _ in range(60):
        shares.begin_call("ada")
    with pytest.raises(RateLimited, match="60 calls of this user") as own:
        shares.begin_call("ada")
    assert not isinstance(own.value, ServerBusy)
    for _ in range(20):
        shares.begin_call("eve")
    for number in range(15):  # nearly full: those with few calls still come in
        shares.begin_call(f"user{number}")
    with pytest.raises(ServerBusy):
        shares.begin_call("eve")
    with pytest.raises(ServerBusy):
        shares.begin_call("late")
    assert shares.usage.refused == {"calls of a user": 1, "calls in all": 2}
    for _ in range(60):
        shares.end_call("ada")
    shares.begin_call("late")
    assert "ada" not in shares.calls


def test_an_address_is_what_one_machine_cannot_vary() -> None:
    assert caller_address("192.0.2.7") == caller_address("::ffff:192.0.2.7") == "192.0.2.7"
    assert caller_address("2001:db8:1:2::1") == caller_address("2001:db8:1:2:ffff::9%eth0")
    assert caller_address("2001:db8:1:2::1") != caller_address("2001:db8:1:3::1")
    assert caller_address("a pipe") == "a pipe"
