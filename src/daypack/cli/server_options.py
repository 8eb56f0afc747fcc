"""What `daypack serve` and `daypack view` share: the packages they need, ports and addresses."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import BadInput, ExtraMissing

if TYPE_CHECKING:
    from daypack.serve.http.address import Policy
    from daypack.serve.page.access import PageAccess
    from daypack.serve.reach.proxies import Proxies
    from daypack.serve.reach.tls import Tls


def add_reach_options(parser: argparse.ArgumentParser) -> None:
    """Add how other machines reach the server."""
    group = parser.add_argument_group("for other machines")
    hosts = "another host name of this server, for instance behind a proxy; may be repeated"
    group.add_argument("--allow-host", metavar="NAME", action="append", default=[], help=hosts)
    certificate = "serve https with this certificate (PEM, with those between it and the root)"
    group.add_argument("--tls-cert", metavar="FILE", help=certificate)
    group.add_argument("--tls-key", metavar="FILE", help="the private key of --tls-cert (PEM, without a password)")
    shared = "several processes may listen at this address and port, and share the connections (Linux)"
    group.add_argument("--share-port", action="store_true", help=shared)
    drain = "after SIGTERM, accept connections for N seconds while /health/ready answers 503 (default: %(default)s)"
    group.add_argument("--drain-seconds", metavar="N", type=_seconds, default=0, help=drain)
    proxies = "address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto count; may be repeated"
    group.add_argument("--trust-proxy", metavar="ADDRESS", action="append", default=[], help=proxies)
    public = "the origin under which clients know this server, for instance https://memory.example"
    group.add_argument("--public-url", metavar="URL", type=_origin, help=public)
    issuers = "an OAuth authorization server that issues tokens for this server; may be repeated"
    group.add_argument(
        "--authorization-server", metavar="URL", type=_private_url, action="append", default=[], help=issuers
    )


def read_tls(args: argparse.Namespace) -> "Tls | None":
    """Return the TLS of the options; None: the server speaks plain http."""
    files = tls_files(args)
    if files is None:
        return None
    from daypack.serve.reach.tls import open_tls  # noqa: PLC0415 — ssl takes 20 ms

    return open_tls(*files)


def tls_files(args: argparse.Namespace) -> tuple[str, str] | None:
    """Return the files of certificate and key: both or none."""
    if args.tls_cert is None and args.tls_key is None:
        return None
    if args.tls_cert is None or args.tls_key is None:
        given, missing = ("--tls-cert", "--tls-key") if args.tls_key is None else ("--tls-key", "--tls-cert")
        hint = f"add {missing} FILE"
        raise BadInput(f"{given} needs {missing}", operation="serve", place="arguments", hint=hint)
    return args.tls_cert, args.tls_key


def check_packages(names: Sequence[str], operation: str) -> None:
    """Raise ExtraMissing if a package of the extra `serve` is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415

    if missing := [name for name in names if find_spec(name) is None]:
        problem = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        raise ExtraMissing(problem, operation=operation, hint="pip install 'daypack[serve]'")


def _origin(text: str) -> str:
    """Parse an origin: no path, because the page needs the paths of its own."""
    from daypack.serve.http.address import parse_origin  # noqa: PLC0415 — only with the option

    origin = parse_origin(_private_url(text).removesuffix("/"))
    if origin is None:
        raise argparse.ArgumentTypeError(f"must be like https://memory.example, without a path, got {text!r}")
    return origin.url


def _private_url(text: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 — only with the option

    from daypack.llm.addresses import is_private  # noqa: PLC0415

    try:
        parts = urlsplit(text)
        valid = is_private(text) and bool(parts.hostname) and parts.scheme in ("http", "https")
    except ValueError:
        valid = False
    if not valid or not text.isascii() or not text.isprintable() or any(mark in text for mark in '@?#"\\ '):
        raise argparse.ArgumentTypeError(f"must be an https address, got {text!r}")
    return text


def _seconds(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:9]) <= 3600:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 3600, got {text!r}")


class ChosenReach(NamedTuple):
    """Who may call: the policy of the options; `others`: other machines could reach the server."""

    policy: "Policy"
    proxies: "Proxies"
    others: bool


def choose_reach(args: argparse.Namespace) -> ChosenReach:
    """Return the policy of the options of `daypack serve`, and the proxies that are trusted."""
    from daypack.serve.http.address import choose_policy  # noqa: PLC0415 — not for --help
    from daypack.serve.reach.proxies import Proxies  # noqa: PLC0415
    from daypack.serve.reach.resource import Resource  # noqa: PLC0415

    hosts = [*args.allow_host, *_public_hosts(args.public_url)]
    policy = choose_policy(args.user, args.host, hosts, require_token=False)
    resource = Resource(args.public_url or "", tuple(args.authorization_server))
    others = policy.token_required
    policy = policy._replace(token_required=others or args.require_token, resource=resource)
    return ChosenReach(policy, Proxies(args.trust_proxy), others)


def _public_hosts(url: str | None) -> list[str]:
    from daypack.llm.addresses import is_loopback, origin  # noqa: PLC0415 — not for --help

    host = origin(url or "")[1]
    return [host] if host and not is_loopback(host) else []


def port(text: str) -> int:
    """Parse a port; 0 picks a free one."""
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text!r}")


def address_of(host: str, port: int, scheme: str = "http") -> str:
    """Return the address of a server."""
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def page_address(address: str, access: "PageAccess", fragment: str = "") -> str:
    """Return the address of the page with a new one-time token."""
    return f"{address}/?token={access.new_token()}{fragment}"
