"""How long a database has not answered: all calls of a process share one patience with it.

A call that fails after its whole patience is often followed by others for the same caller, such as the line of the
audit log about it. If each waited as long again, the caller would wait for their sum. So patience counts from the first
failure: a call that begins later waits for the rest of it, or not at all. A restart that is shorter than the patience
is waited for.
"""

import time

from daypack.postgres.refusals import is_passing

_GAP_SECONDS = 10.0  # without any attempt for so long, the next failure is a new outage
_CONFLICTS = ("40", "25", "0A", "53", "XX")  # classes of errors that a server which answers has sent


class Outage:
    """The current outage of a database, if there is one; threads share it, and the last to write wins."""

    def __init__(self) -> None:
        self._known: tuple[float, float] | None = None  # its first and its last failure

    def note(self, error: BaseException) -> None:
        """Take note that an attempt failed; errors of a server that answers are no outage."""
        if not is_passing(error) or (getattr(error, "sqlstate", None) or "").startswith(_CONFLICTS):
            return
        if "connections are in use" in str(error):  # ours
            return
        now = time.monotonic()
        self._known = self._since(now) or now, now

    def end(self) -> None:
        """Take note that the database has answered."""
        self._known = None

    def until(self, patience: float) -> float:
        """Return when a call that begins now gives up."""
        now = time.monotonic()
        return (self._since(now) or now) + patience

    def has_lasted(self, patience: float) -> bool:
        """Return True if an outage has used up a patience."""
        since = self._since(now := time.monotonic())
        return since is not None and now - since > patience

    def _since(self, now: float) -> float | None:
        known = self._known
        return known[0] if known is not None and now - known[1] < _GAP_SECONDS else None
