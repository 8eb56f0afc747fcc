"""Lines that libraries write with `logging`: the log gets their origin, not their text, which may quote requests."""

import logging
import os

from daypack.serve.observe.log import Level, log

_SILENT = ("psycopg",)  # its errors are raised too, and a pool repeats them as long as a database does not answer


class LibraryLines(logging.Handler):
    """Logs the name of the library, the line of code and the class of the exception."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record of a library."""
        if record.name.partition(".")[0] in _SILENT:
            return
        level: Level = "error" if record.levelno >= logging.ERROR else "warning"
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        at = f"{os.path.basename(record.pathname)}:{record.lineno} {record.funcName}"
        log.limited(record.name, level, "library", library=record.name, error=error, at=at)


def redirect_libraries() -> None:
    """Replace what libraries would write to standard error by lines of the server's log."""
    root = logging.getLogger()
    for other in list(root.handlers):
        root.removeHandler(other)
    root.addHandler(LibraryLines())
    root.setLevel(logging.WARNING)
