"""Proxies in front of a server: whose headers name the caller's address and scheme. By default, those of no proxy."""

import re
from collections.abc import Iterable, MutableMapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from daypack.errors import BadInput

_WITH_PORT = re.compile(r"\[(?P<six>[0-9A-Fa-f:.]+)\](?::[0-9]+)?|(?P<four>[0-9.]+):[0-9]+")
_SCHEMES = ("http", "https")


class Proxies:
    """The proxies that are trusted, by address or network: `10.0.0.7`, `10.0.0.0/24`, `::1`."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = [_read_network(text) for text in trusted]

    def trusts(self, address: str) -> bool:
        """Return True if the headers of this address count."""
        parsed = _read_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def apply(self, scope: MutableMapping[str, Any]) -> None:
        """Replace the client and the scheme of a request by those that a trusted proxy names.

        Each proxy appends the address that it was called from to X-Forwarded-For, so the last one that is no trusted
        proxy is the caller; those before it are whatever the caller has written.
        """
        client = scope.get("client")
        if not self._networks or not client or not self.trusts(client[0]):
            return
        caller = client[0]
        for text in reversed(_values(scope, b"x-forwarded-for")):
            address = _read_address(text)
            if address is None:  # a proxy that hides it, and no address before this one is known to be true
                break
            caller = str(address)
            if not self.trusts(caller):
                break
        scope["client"] = (caller, 0)
        schemes = _values(scope, b"x-forwarded-proto")
        if schemes and schemes[-1].lower() in _SCHEMES:
            scope["scheme"] = schemes[-1].lower()


def _values(scope: MutableMapping[str, Any], name: bytes) -> list[str]:
    """Return the elements of a list header, also if it was sent in several lines."""
    lines = [value.decode("latin-1") for header, value in scope["headers"] if header.lower() == name]
    return [text.strip() for text in ",".join(lines).split(",") if text.strip()]


def _read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, also with a port; one of IPv4 that is written as IPv6 as it is."""
    if match := _WITH_PORT.fullmatch(text):
        text = match["six"] or match["four"]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _read_network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        hint = "--trust-proxy takes the address of the proxy, as this server sees it: 10.0.0.7, 10.0.0.0/24 or ::1"
        raise BadInput(f"{text[:64]!r} is no address", operation="serve", place="--trust-proxy", hint=hint) from error
