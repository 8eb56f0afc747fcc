"""What one caller may use of a server, so that others are served; and counts of what was refused or closed."""

import time
from collections import Counter, OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from daypack.errors import RateLimited, ServerBusy

MOST_KEYS = 4096  # addresses or users whose rate is known; the one that was quiet longest is forgotten
_BURST_SECONDS = 10.0  # a caller may use the rate of so many seconds at once
_RETRY_SECONDS = 1


class ServerLimits(NamedTuple):
    """The limits of a server. Rates are per minute; 0 switches one off.

    An agent makes a few calls per second, and this server answers fewer than 2,000: the rate of a user stops only
    loops. What is fair among users is decided by turns.
    """

    connections: int = 500
    calls_per_user: int = 100  # running and queued
    rate: int = 60_000
    bad_tokens: int = 60

    @property
    def connections_per_caller(self) -> int:
        """Connections of one user, or of one address before it has shown a token."""
        return max(1, self.connections // 2)


# Why requests are refused for the sake of others, and connections closed by the server; labels of metrics.
REFUSED = ("rate", "bad tokens", "token checks", "calls of a user", "calls in all", "malformed")
CLOSED = ("too many", "slow headers", "idle", "unread", "pipelined", "shutdown")


class Usage:
    """Counts since the start, by reason: requests `refused` and connections `closed`. Plain values, for metrics."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()


class Rates:
    """How often each key did something: at most `per_minute`, and a sixth of that at once."""

    def __init__(self, per_minute: int, most_keys: int = MOST_KEYS) -> None:
        self._per_second = per_minute / 60
        self._per_minute = per_minute
        self._burst = max(1.0, self._per_second * _BURST_SECONDS)
        self._most_keys = most_keys
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by key: what was spent, and when

    def __len__(self) -> int:
        return len(self._spent)

    def __str__(self) -> str:
        return f"{int(self._burst):,} at once, then {self._per_minute:,} per minute"

    async def ready(self, key: str) -> None:
        """Return when it is known how often the key did it."""

    def wait_seconds(self, key: str) -> float:
        """Return after how many seconds the key may do it again; 0: now."""
        if not self._per_second:
            return 0.0
        return max(0.0, (self._spent_by(key) + 1 - self._burst) / self._per_second)

    def count(self, key: str) -> None:
        """Count that the key did it."""
        if not self._per_second:
            return
        self._spent[key] = self._spent_by(key) + 1, time.monotonic()
        self._spent.move_to_end(key)
        if len(self._spent) > self._most_keys:
            self._spent.popitem(last=False)

    def _spent_by(self, key: str) -> float:
        spent, at = self._spent.get(key, (0.0, 0.0))
        return max(0.0, spent - (time.monotonic() - at) * self._per_second)


class Shares:
    """The share that each caller has of one server; `rates` and `bad_tokens` may be those of several servers."""

    def __init__(self, limits: ServerLimits | None = None) -> None:
        self.limits = limits or ServerLimits()
        self.usage = Usage()
        self.calls: Counter[str] = Counter()  # running and queued, by user
        self.rates = Rates(self.limits.rate)
        self.bad_tokens = Rates(self.limits.bad_tokens)

    async def check_rate(self, user: str) -> None:
        """Count a request; raise RateLimited if the user has sent too many."""
        await self.rates.ready(user)
        if wait := self.rates.wait_seconds(user):
            problem = f"too many requests: a user may send {self.rates}"
            raise self._refuse("rate", RateLimited(problem, hint="send fewer requests", retry_after=_whole(wait)))
        self.rates.count(user)

    def is_guessing(self, address: str) -> bool:
        """Return True if an address has sent too many bad tokens."""
        return bool(self.bad_tokens.wait_seconds(address))

    async def count_bad_token(self, address: str) -> None:
        """Count a bad token; raise RateLimited if the address has sent too many."""
        await self.bad_tokens.ready(address)
        if wait := self.bad_tokens.wait_seconds(address):
            raise self.bad_tokens_refused(wait)
        self.bad_tokens.count(address)

    def bad_tokens_refused(self, wait: float = 1.0) -> RateLimited:
        """Return the error for an address that has sent too many bad tokens."""
        problem = f"too many requests with a token that is not valid: an address may send {self.bad_tokens}"
        hint = "correct the token; create one with `daypack token new USER`"
        return self._refuse("bad tokens", RateLimited(problem, hint=hint, retry_after=_whole(wait)))

    def begin_call(self, user: str) -> None:
        """Count a call in progress; raise RateLimited or ServerBusy if there is no room for it.

        A server that is nearly full refuses the users with the most calls. A twentieth of its connections is never
        used by calls, so that a new connection always finds one to replace.
        """
        mine, total = self.calls[user], self.calls.total()
        if mine >= self.limits.calls_per_user:
            problem = f"{mine:,} calls of this user are in progress, the most allowed"
            hint = "wait for an answer before the next call"
            raise self._refuse("calls of a user", RateLimited(problem, hint=hint, retry_after=_RETRY_SECONDS))
        nearly_full = total >= self.limits.connections * 4 // 5 and mine * len(self.calls) >= total
        if nearly_full or total >= self.limits.connections * 19 // 20:
            hint = "try again later"
            busy = ServerBusy("too many calls are in progress", hint=hint, retry_after=_RETRY_SECONDS)
            raise self._refuse("calls in all", busy)
        self.calls[user] += 1

    def end_call(self, user: str) -> None:
        """Count that a call has ended."""
        self.calls[user] -= 1
        if self.calls[user] <= 0:
            del self.calls[user]

    def _refuse(self, reason: str, error: RateLimited) -> RateLimited:
        self.usage.refused[reason] += 1
        return error


def caller_address(address: str) -> str:
    """Return the part of an address that one machine cannot vary: all of IPv4, the first 64 bits of IPv6."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return address if parsed.is_loopback else parsed.packed[:8].hex()


def _whole(seconds: float) -> int:
    return max(1, int(seconds + 0.999))
