"""Reading the files and the standard input that commands take."""

import sys

from daypack.cli.terminal import print_note
from daypack.errors import BadInput


def read_bytes(name: str, operation: str) -> bytes:
    """Return the bytes of a file; - is standard input."""
    if name == "-" and sys.stdin.isatty():
        print_note("reading from the terminal; end with Ctrl-D")
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        problem = error.strerror or str(error)
        raise BadInput(problem, operation=operation, place=_place(name), hint="name a readable file") from error


def read_text(name: str, operation: str) -> str:
    """Return the text of a UTF-8 file; - is standard input."""
    try:
        return read_bytes(name, operation).decode()
    except UnicodeDecodeError as error:
        problem = f"not UTF-8: byte {error.start}"
        raise BadInput(problem, operation=operation, place=_place(name), hint="convert it with iconv") from error


def _place(name: str) -> str:
    return "standard input" if name == "-" else name
