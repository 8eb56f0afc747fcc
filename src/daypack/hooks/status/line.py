"""`daypack status --line`, without the modules of commands: a host starts it after every turn.

It always prints a line and ends with 0: what fails is shown in the line.
"""

import os
import sys
from collections.abc import Sequence

from daypack.hooks.status.standard_input import read_waiting

_OTHERWISE_COLUMNS = 100  # where neither a terminal nor COLUMNS says how many there are
_VALUES = ("--home", "--uid", "--width")


def run(arguments: Sequence[str]) -> int | None:
    """Print the line; return None if the arguments are not only those of a line."""
    values = _values(arguments)
    if values is None:
        return None
    try:
        text = _line(values)
    except Exception as error:  # a status line shows its own failure
        text = f"daypack: {type(error).__name__}: {error}".partition("\n")[0][: _width(values.get("--width"))]
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except (OSError, UnicodeError):  # the host closed its end, or the stream cannot show it
        return 0
    return 0


def _values(arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the values of the options; None if there is another argument, or a value is missing."""
    values: dict[str, str] = {}
    given = iter(arguments)
    for argument in given:
        name, equals, value = argument.partition("=")
        if argument == "--line":
            continue
        if name not in _VALUES:
            return None
        if not equals:
            value = next(given, "")
        if not value or (name == "--width" and not value.isdecimal()):
            return None
        values[name] = value
    return values


def _line(values: dict[str, str]) -> str:
    from daypack.history.home import find_home  # noqa: PLC0415 — a failure of it is shown in the line
    from daypack.hooks.status.drawing import draw_line, look_at  # noqa: PLC0415
    from daypack.hooks.status.gathering import gather  # noqa: PLC0415
    from daypack.hooks.status.host import read_host  # noqa: PLC0415
    from daypack.hooks.status.recorded import LINE_BYTES  # noqa: PLC0415

    host = read_host(read_waiting(0))
    home = find_home(values.get("--home"), values.get("--uid"))
    # A host waits for the line: of sessions in a database, what is here is shown.
    status = gather(home.here, _here(), host, max_bytes=LINE_BYTES)
    # A host that sends its state shows colours, though its end of the pipe is no terminal.
    colour = (host is not None or sys.stdout.isatty()) and not os.environ.get("NO_COLOR")
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    width = _width(values.get("--width"))
    return draw_line(status, look_at(width, colour=colour and os.environ.get("TERM") != "dumb", blocks=utf8))


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return os.environ.get("PWD") or "/"


def _width(given: str | None) -> int:
    """Return the columns of the line: as given, COLUMNS, or those of the terminal."""
    for text in (given, os.environ.get("COLUMNS")):
        if text and text.isascii() and text.isdecimal() and int(text):
            return int(text)
    for fd in (1, 2):
        try:
            return os.get_terminal_size(fd).columns or _OTHERWISE_COLUMNS
        except OSError:
            continue
    return _OTHERWISE_COLUMNS
