"""What `daypack serve` and `daypack view` share: the packages they need, ports and addresses."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from daypack.errors import ExtraMissing

if TYPE_CHECKING:
    from daypack.serve.page.access import PageAccess


def check_packages(names: Sequence[str], operation: str) -> None:
    """Raise ExtraMissing if a package of the extra `serve` is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415

    if missing := [name for name in names if find_spec(name) is None]:
        problem = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        raise ExtraMissing(problem, operation=operation, hint="pip install 'daypack[serve]'")


def port(text: str) -> int:
    """Parse a port; 0 picks a free one."""
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text!r}")


def address_of(host: str, port: int) -> str:
    """Return the address of a server."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def page_address(address: str, access: "PageAccess", fragment: str = "") -> str:
    """Return the address of the page with a new one-time token."""
    return f"{address}/?token={access.new_token()}{fragment}"
