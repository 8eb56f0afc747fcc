"""Who may see the page: one-time tokens, cookies in memory, and the token that every write repeats in a header.

A one-time token is part of the address that the server prints; its first use is exchanged for a cookie. A browser sends
cookies to every port of a host, so the name of the cookie has the port.

By default tokens and cookies are known to one process only. With a key that several processes share, they are signed
values that each of them believes: they expire, a one-time token after five minutes. Its use is noted where all of them
look, so that it works once, whichever process is asked. A cookie made from an access token has the token's id, not its
secret, and ends with the token.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple

import anyio.to_thread

from daypack.serve.http.page_requests import Pass
from daypack.serve.http.turns import Caller
from daypack.serve.page.signed import Claim, Kind, Signer

_MOST_COOKIES = 20  # of one user; the one that was unused longest is forgotten
_MOST_TOKENS = 100
ONCE_SECONDS = 5 * 60  # of a one-time token, if processes share a key
COOKIE_SECONDS = 12 * 60 * 60


class _Kept(NamedTuple):
    found: Pass
    user: str  # "" for the cookies of one-time tokens


class PageAccess:
    """The tokens and cookies of one server. Used by the event loop only, once the server runs, except `claim`."""

    def __init__(self, owner: str, key: bytes | None = None, claim: Callable[[str], bool] | None = None) -> None:
        """`owner` is the user that a one-time token stands for; `key` has 32 bytes that other processes know too.

        `claim` notes for all of them that a token is used, and returns False if it was; it may wait for a database.
        """
        self._owner = owner
        self._signer = None if key is None else Signer(key)
        self._claim = claim
        self._used: dict[str, int] = {}  # one-time tokens that were used here, and when they expire
        self._tokens: list[str] = []
        self._passes: OrderedDict[str, _Kept] = OrderedDict()  # by the digest of the cookie
        self._key = secrets.token_bytes(32) if key is None else hmac.digest(key, b"daypack page: writes", "sha256")

    def new_token(self) -> str:
        """Return a one-time token; it is valid until it is used or the process ends, a signed one for five minutes."""
        if self._signer is not None:
            return self._sign(self._signer, "once", self._owner, "", ONCE_SECONDS)
        token = secrets.token_urlsafe(32)
        self._tokens = [*self._tokens[-_MOST_TOKENS + 1 :], token]
        return token

    async def use_token(self, sent: str) -> bool:
        """Use up a one-time token; False if it is none. Raises if a database does not say whether it was used."""
        if self._signer is not None:
            return await self._use_signed(self._signer, sent)
        known = [token for token in self._tokens if _is_same(token, sent)]
        self._tokens = [token for token in self._tokens if token not in known]
        return bool(known)

    def new_cookie(self, user: str = "", secret: str = "", token_id: str = "") -> str:
        """Return the value of a new cookie: for the owner, or for a user with an access token.

        A user with too many loses the one that was unused longest; those of others stay.
        """
        if self._signer is not None:
            return self._sign(self._signer, "cookie", user or self._owner, token_id, COOKIE_SECONDS)
        value = secrets.token_urlsafe(32)
        key = _digest(value)
        found = Pass(key, None if secret else Caller(self._owner, writes=True), secret)
        own = [known for known, kept in self._passes.items() if kept.user == user]
        if len(own) >= _MOST_COOKIES:
            del self._passes[own[0]]
        self._passes[key] = _Kept(found, user)
        return value

    def find(self, cookies: Sequence[str], port: int) -> Pass | None:
        """Return the pass in the values of Cookie headers; None if there is none."""
        name = cookie_name(port)
        for pair in "; ".join(cookies).split(";"):
            found_name, _, value = pair.strip().partition("=")
            if found_name == name and (found := self._find_cookie(value)) is not None:
                return found
        return None

    def write_token(self, key: str) -> str:
        """Return the token that writes with this cookie, or this access token, send in a header."""
        return hmac.new(self._key, key.encode(), sha256).hexdigest()

    def is_write_token(self, key: str, sent: str) -> bool:
        """Return True if `sent` is the write token of a cookie or an access token."""
        return _is_same(self.write_token(key), sent)

    def _find_cookie(self, value: str) -> Pass | None:
        key = _digest(value)  # looked up by its digest, so that the time it takes reveals nothing
        if self._signer is None:
            if key not in self._passes:
                return None
            self._passes.move_to_end(key)
            return self._passes[key].found
        claim = self._signer.read("cookie", value)
        if claim is None:
            return None
        if claim.token_id:
            return Pass(key, None, token=(claim.user, claim.token_id))
        return Pass(key, Caller(claim.user, writes=True))

    async def _use_signed(self, signer: Signer, sent: str) -> bool:
        claim, now = signer.read("once", sent), time.time()
        self._used = {nonce: expires for nonce, expires in self._used.items() if expires > now}
        # The cookie will be that of the owner: another server's owner is another user.
        if claim is None or claim.nonce in self._used or claim.user != self._owner:
            return False
        if self._claim is not None and not await anyio.to_thread.run_sync(self._claim, claim.nonce):
            return False
        self._used[claim.nonce] = claim.expires
        return True

    def _sign(self, signer: Signer, kind: Kind, user: str, token_id: str, seconds: int) -> str:
        now = int(time.time())
        return signer.sign(Claim(kind, user, token_id, now, now + seconds, secrets.token_urlsafe(16)))


def cookie_name(port: int) -> str:
    """Return the name of the cookie of the server at a port."""
    return f"daypack-page-{port}"


def cookie_header(port: int, value: str, *, secure: bool) -> str:
    """Return the value of Set-Cookie: scripts cannot read it, and no other site makes the browser send it."""
    return f"{cookie_name(port)}={value}; Path=/page; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"


def _is_same(known: str, sent: str) -> bool:
    return hmac.compare_digest(known.encode(), sent.encode("utf-8", "replace"))


def _digest(value: str) -> str:
    return sha256(value.encode("utf-8", "replace")).hexdigest()
