"""Commands that notes and errors suggest. They name the home and the database that this command was given."""

import argparse
import re
from shlex import quote

from daypack.types.names import one_line

_COMMAND = re.compile(r"`(daypack [^`]+)`")
_PLACE = ("--home", "--uid", "--store")
NOT_TAKEN = {  # by command; all others take these options
    "copy": ("--home", "--store"),
    **dict.fromkeys(("mcp", "model", "setup"), ("--store",)),
    **dict.fromkeys(("audit", "check-reply", "conform", "help", "hook"), _PLACE),
}
_given: dict[str, str] = {}  # of the command that runs


def place_given(args: argparse.Namespace) -> dict[str, str]:
    """Return the options that say where sessions and memories are; an address that may not be shown is "URL"."""
    given = {name: value for name in _PLACE if (value := getattr(args, name.removeprefix("--"), None))}
    if url := given.get("--store"):
        from daypack.postgres.address import shown  # noqa: PLC0415 — few commands are given one

        given["--store"] = url if url == shown(url) else "URL"
    return given


def repeat_place(args: argparse.Namespace) -> None:
    """Have all suggested commands name the place that this command was given."""
    _given.update(place_given(args))


def forget_place() -> None:
    """Suggest commands as they are written."""
    _given.clear()


def with_place(text: str) -> str:
    """Return a text whose commands, such as `daypack log`, name the place that this command was given."""
    return _COMMAND.sub(lambda found: f"`{_completed(found[1])}`", text) if _given else text


def _completed(command: str) -> str:
    not_taken = NOT_TAKEN.get(command.split()[1], ())
    missing = (name for name in _given if name not in not_taken and f"{name} " not in command)
    return " ".join((command, *(f"{name} {quote(one_line(_given[name]))}" for name in missing)))
