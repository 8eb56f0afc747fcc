"""Who asks for a view, and with which arguments: texts of a query string, or of a JSON body."""

from collections.abc import Mapping
from typing import NamedTuple

from daypack.errors import AccessDenied, BadInput

_MOST_DIGITS = 15


class Viewer(NamedTuple):
    """The user that looks at the page. Only the `owner` of the home sees its sessions; others see their memories."""

    user: str
    owner: bool
    writes: bool


class Asked:
    """The arguments of one view or action."""

    def __init__(self, view: str, arguments: Mapping[str, str], viewer: Viewer) -> None:
        self.view = view
        self.viewer = viewer
        self._arguments = arguments

    def text(self, name: str, default: str | None = None) -> str:
        """Return an argument; BadInput if it is missing and has no default."""
        value = self._arguments.get(name)
        if value:
            return value
        if default is None:
            raise BadInput(f"{name} is missing", operation=self.view, place=name, hint=f"add {name}=…")
        return default

    def number(self, name: str, default: int | None = None, *, least: int = 0, most: int = 10**_MOST_DIGITS) -> int:
        """Return a whole number; BadInput if it is none, or outside the limits."""
        value = self.text(name, "" if default is not None else None)
        if not value and default is not None:
            return default
        valid = value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS and least <= int(value) <= most
        if not valid:
            problem = f"must be a number from {least:,} to {most:,}, got {value[:40]!r}"
            raise BadInput(problem, operation=self.view, place=name, hint=f"{name}={default or least}")
        return int(value)

    def require_owner(self) -> None:
        """Raise AccessDenied unless the owner of the home asks."""
        if not self.viewer.owner:
            hint = "open the address that `daypack view` or `daypack serve` printed"
            raise AccessDenied("sessions are shown to their owner only", operation=self.view, hint=hint)

    def require_write(self) -> None:
        """Raise AccessDenied for a viewer that may only read."""
        if not self.viewer.writes:
            raise AccessDenied("this page is read-only", operation=self.view, hint="use a token with scope write")
