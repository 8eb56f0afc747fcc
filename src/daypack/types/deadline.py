"""The deadline of a turn or a request: one value, passed to everything that waits."""

import time
from collections.abc import Callable
from math import inf

from msgspec import Struct


class Deadline(Struct, frozen=True):
    """A number of seconds after a moment, measured with a clock that is never set back."""

    begin: float = 0.0
    seconds: float = inf
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """Return the deadline so many seconds from now."""
        return cls(clock(), seconds, clock)

    def remaining(self) -> float:
        """Return the remaining seconds, 0 if there are none."""
        return max(0.0, self.begin + self.seconds - self.clock())

    def require(self) -> float:
        """Return the remaining seconds; raise TimeoutError if there are none."""
        seconds = self.remaining()
        if not seconds:
            raise TimeoutError("the deadline has passed")
        return seconds

    def spent(self) -> float:
        """Return the seconds since it was set."""
        return max(0.0, self.clock() - self.begin)

    def within(self, seconds: float) -> "Deadline":
        """Return this deadline, or the one so many seconds from now if that is earlier."""
        return self if self.remaining() <= seconds else Deadline(self.clock(), seconds, self.clock)

    def part(self, share: float) -> "Deadline":
        """Return the deadline after a share of its time."""
        return Deadline(self.begin, self.seconds * share, self.clock)

    @property
    def has_passed(self) -> bool:
        """True if no time remains."""
        return not self.remaining()


NO_DEADLINE = Deadline()
