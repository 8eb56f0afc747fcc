"""What goes wrong in a server and is nobody else's business: told to whoever keeps its log."""

import sys
from contextlib import suppress

from daypack.errors import DaypackError


def note(what: str, error: BaseException) -> None:
    """Write an error to standard error; one that nobody thought of with where it came from. It never fails itself."""
    with suppress(OSError, ValueError):
        if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] — a process may be started without it
            return
        print(f"daypack: {what}: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 — stdout may be a wire
        if not isinstance(error, DaypackError):
            import traceback  # noqa: PLC0415 — should not be needed

            traceback.print_exception(error)
        sys.stderr.flush()
