"""Reading the files and the standard input that commands take."""

import sys

from daypack.cli.terminal import print_note
from daypack.errors import BadInput
from daypack.plain_files import open_named

_HINT = "name a readable file"


def read_bytes(name: str, operation: str, *, hint: str = _HINT) -> bytes:
    """Return the bytes of a file; - is standard input. The hint is for a file that cannot be read."""
    if name == "-" and sys.stdin.isatty():
        print_note("reading from the terminal; end with Ctrl-D")
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open_named(name) as file:
            return file.read()
    except OSError as error:
        raise unreadable(name, error, operation, hint=hint) from error


def read_text(name: str, operation: str, *, hint: str = _HINT) -> str:
    """Return the text of a UTF-8 file; - is standard input. The hint is for a file that cannot be read."""
    try:
        return read_bytes(name, operation, hint=hint).decode()
    except UnicodeDecodeError as error:
        hint = "convert it with iconv; a file that is no text cannot be used"
        raise BadInput(f"not UTF-8: byte {error.start}", operation=operation, place=_place(name), hint=hint) from error


def unreadable(name: str, error: OSError, operation: str, *, hint: str = _HINT) -> BadInput:
    """Return the error for a file or a standard input that cannot be read."""
    problem = error.strerror or str(error)
    return BadInput(problem, operation=operation, place=_place(name), hint=hint)


def _place(name: str) -> str:
    return "standard input" if name == "-" else name or "''"
