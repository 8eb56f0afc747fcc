"""Who may see the page: one-time tokens, cookies in memory, and the token that every write repeats in a header.

A one-time token is part of the address that the server prints; its first use is exchanged for a cookie. A browser sends
cookies to every port of a host, so the name of the cookie has the port.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from daypack.serve.http.page_requests import Pass
from daypack.serve.http.turns import Caller

_MOST_COOKIES = 20  # of one user; the one that was unused longest is forgotten
_MOST_TOKENS = 100


class _Kept(NamedTuple):
    found: Pass
    user: str  # "" for the cookies of one-time tokens


class PageAccess:
    """The tokens and cookies of one server. Used by the event loop only, once the server runs."""

    def __init__(self, owner: str) -> None:
        """`owner` is the user that a one-time token stands for."""
        self._owner = owner
        self._tokens: list[str] = []
        self._passes: OrderedDict[str, _Kept] = OrderedDict()  # by the digest of the cookie
        self._key = secrets.token_bytes(32)

    def new_token(self) -> str:
        """Return a one-time token; it is valid until it is used or the process ends."""
        token = secrets.token_urlsafe(32)
        self._tokens = [*self._tokens[-_MOST_TOKENS + 1 :], token]
        return token

    def use_token(self, sent: str) -> bool:
        """Use up a one-time token; False if it is none."""
        known = [token for token in self._tokens if _is_same(token, sent)]
        self._tokens = [token for token in self._tokens if token not in known]
        return bool(known)

    def new_cookie(self, user: str = "", secret: str = "") -> str:
        """Return the value of a new cookie: for the owner, or for a user with an access token.

        A user with too many loses the one that was unused longest; those of others stay.
        """
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
            key = _digest(value)  # looked up by its digest, so that the time it takes reveals nothing
            if found_name == name and key in self._passes:
                self._passes.move_to_end(key)
                return self._passes[key].found
        return None

    def write_token(self, key: str) -> str:
        """Return the token that writes with this cookie, or this access token, send in a header."""
        return hmac.new(self._key, key.encode(), sha256).hexdigest()

    def is_write_token(self, key: str, sent: str) -> bool:
        """Return True if `sent` is the write token of a cookie or an access token."""
        return _is_same(self.write_token(key), sent)


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
