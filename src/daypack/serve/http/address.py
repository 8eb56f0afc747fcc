"""The address a server listens on, the host names it answers to, and whether callers need a token."""

import errno
import re
import socket
import sys
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from daypack.errors import BadInput
from daypack.llm.addresses import is_loopback
from daypack.serve.http.bodies import MAX_BODY_BYTES
from daypack.serve.reach.resource import Resource

BACKLOG = 512
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[0-9A-Za-z._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)
_ALL_INTERFACES = ("0.0.0.0", "::", "")  # noqa: S104 — compared with, never bound by default


class Origin(NamedTuple):
    """The origin of a web page, or of this server as a request names it."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The origin as text, without the port that the scheme implies."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


class Policy(NamedTuple):
    """What the gate accepts. `hosts` are the names and addresses of this server besides loopback.

    `resource` describes the server to clients without a token; None: it has no /mcp.
    """

    user: str = "local"
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    token_required: bool = False
    max_body_bytes: int = MAX_BODY_BYTES
    resource: Resource | None = None

    def knows_host(self, name: str) -> bool:
        """Return True if `name` is a host name or address of this server."""
        if is_loopback(name) or name in self.hosts:
            return True
        return self.any_address and _is_address(name)  # DNS rebinding needs a name, so an address is safe

    def allows_origin(self, origin: Origin, own: Origin) -> bool:
        """Return True if a page of this origin may send requests here."""
        return origin == own or is_loopback(origin.host) or origin.host in self.hosts


def parse_origin(text: str) -> Origin | None:
    """Return the origin that a browser wrote; None for anything else: `null`, a path, userinfo, other schemes."""
    scheme, separator, place = text.partition("://")
    scheme = scheme.lower()
    host = parse_host(place) if separator and scheme in _PORTS else None
    return None if host is None else Origin(scheme, host[0], host[1] or _PORTS[scheme])


def parse_host(text: str) -> tuple[str, int | None] | None:
    """Return the name and the port of a Host header; None if it is malformed.

    A name is in lower case and without the dot of a full name, an IPv6 address without brackets.
    """
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > 65535:
        return None
    address = match["address"]
    if address is not None and not _is_address(address):
        return None
    name = address or match["name"].removesuffix(".")
    return (name.lower(), int(match["port"]) if match["port"] else None) if name else None


def choose_policy(user: str, bound: str, allowed: Iterable[str], *, require_token: bool) -> Policy:
    """Return the policy for a bound address. A server that other machines can reach always requires a token."""
    hosts = frozenset(name.strip("[]").lower() for name in allowed)
    everywhere = bound in _ALL_INTERFACES
    own = set[str]() if everywhere else {bound.lower()}
    return Policy(
        user=user,
        hosts=frozenset(own | hosts),
        any_address=everywhere,
        token_required=require_token or not is_loopback(bound) or bool(hosts),
    )


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket; port 0 picks a free port. `shared`: several processes listen at the same port.

    Called before the HTTP packages are imported, so that an address in use is reported at once.
    """
    place, options = f"{host}:{port}", [socket.SO_REUSEADDR, *([_shared_port()] if shared else ())]
    listening: socket.socket | None = None
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        # asyncio sets TCP_NODELAY only on a socket that names its protocol; without it small answers wait for 40 ms.
        listening = socket.socket(family, kind, protocol)
        for option in options:
            listening.setsockopt(socket.SOL_SOCKET, option, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        hint = "--host must be an address of this machine"
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            hint = "is a server already running there? use --port N for another port, --port 0 for a free one"
            if shared:
                hint = "a process that was started without --share-port listens there"
        elif isinstance(error, PermissionError):
            hint = "use a port above 1023"
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot listen: {problem}", operation="serve", place=place, hint=hint) from error
    return listening


def _shared_port() -> int:
    option = getattr(socket, "SO_REUSEPORT", None)
    if option is None or sys.platform != "linux":  # elsewhere only one of them gets the connections
        hint = "start each process at a port of its own, with a proxy in front of them"
        raise BadInput("this system cannot share a port", operation="serve", place="--share-port", hint=hint)
    return option


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
