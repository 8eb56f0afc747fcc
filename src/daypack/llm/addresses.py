"""Web addresses: their origin, and whether they are on this machine or encrypted."""

from urllib.parse import urlsplit


def origin(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def is_loopback(host: str) -> bool:
    """Return True for a name or address of this machine. Only whole addresses count: 127.example.org is remote."""
    if host.lower() == "localhost":
        return True
    from ipaddress import ip_address  # noqa: PLC0415 — few endpoints are named by an address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Return True if requests to this address cannot be read on the network."""
    scheme, host, _ = origin(url)
    return scheme == "https" or is_loopback(host)
