"""Requests for the page at the gate: only from itself, and for data only with a cookie or a token, on loopback too.

The page shows conversations, so its rules are stricter than those of the tools: a page of another port of this machine
is foreign, and a request without a cookie or token has no user.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from daypack.llm.addresses import is_loopback
from daypack.serve.http.address import Origin, Policy, parse_origin
from daypack.serve.http.turns import Caller

SHELL = "/"
ASSETS, DATA, ACTIONS = "/page/assets/", "/page/data/", "/page/do/"
ENTER, LIVE = "/page/enter", "/page/live"
ENTER_HINT = "open the address that `daypack view` or `daypack serve` printed, or paste a token of `daypack token new`"
_OWN_SITE = ("same-origin", "none")
# The last two: even a script of ours cannot turn a text into HTML.
_CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = [
    (b"content-security-policy", _CSP.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Pass(NamedTuple):
    """What a cookie of the page gives: a caller, or a token that is checked again; `key` identifies the cookie.

    The token is known by its `secret`, or by its user and id in `token`.
    """

    key: str
    caller: Caller | None
    secret: str = ""
    token: tuple[str, str] | None = None


class Visitors(Protocol):
    """Knows the cookies of the page."""

    def find(self, cookies: Sequence[str], port: int) -> Pass | None:
        """Return the pass in the values of Cookie headers; None if there is none. `port` is that of the address."""
        ...


def is_page(path: str) -> bool:
    """Return True for a path of the page, its shell included."""
    return path == SHELL or path.startswith("/page/")


def is_foreign(path: str, headers: Mapping[str, Sequence[str]], own: Origin, policy: Policy) -> bool:
    """Return True if a page other than ours makes a browser send this request.

    Only the shell may be opened from elsewhere, by a link: it holds no data.
    """
    allowed = [own]
    if own.host in policy.hosts and not is_loopback(own.host):  # a proxy may add TLS
        port = {80: 443}.get(own.port, own.port)
        allowed.append(Origin("https", own.host, port))
    if any(parse_origin(text) not in allowed for text in headers.get("origin", ())):
        return True
    if all(site in _OWN_SITE for site in headers.get("sec-fetch-site", ())):
        return False
    return path != SHELL or any(mode != "navigate" for mode in headers.get("sec-fetch-mode", ()))
