"""Settled calls: whether a tool call succeeded, as far as its result shows it."""

import re
from typing import NamedTuple

from daypack.derived.artifacts.observations import TestOutcome
from daypack.derived.artifacts.outcomes import Outcome, error_line, is_benign, read_outcome, shows_failure
from daypack.derived.artifacts.test_runners import Count, count_tests
from daypack.derived.artifacts.tool_arguments import speaks_for_itself
from daypack.derived.artifacts.tool_calls import CallRead
from daypack.types.history import Message

_CLASS = re.compile(r"(?:^|[\s(])((?:[a-z_]\w{0,60}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Panic|Interrupt))\b")


class SettledCall(NamedTuple):
    """A call and its result; without a result it counts as made."""

    outcome: Outcome
    failed: bool | None  # None: unknown
    tried: bool = False  # it ran to an end
    tests: TestOutcome = "unknown"
    test_count: Count | None = None

    @property
    def error_class(self) -> str | None:
        """The class of the error, when the line that describes it names one."""
        found = _CLASS.search(error_line(self.outcome.text)) if self.failed else None
        return found[1] if found else None


def settle_call(name: str, read: CallRead, result: Message | None) -> SettledCall:
    """Judge a call by its result."""
    if result is None:
        return SettledCall(Outcome(""), failed=None)
    shell = bool(read.command)
    speaks = not (read.urls or read.opened) and speaks_for_itself(name, names_files=bool(read.touches))
    outcome = read_outcome(result.text, result.meta, shell=shell, speaks=speaks)
    tried = not outcome.cancelled and not outcome.running
    return _settle_command(read, outcome, tried=tried) if shell else SettledCall(outcome, outcome.failed, tried)


def _settle_command(read: CallRead, outcome: Outcome, *, tried: bool) -> SettledCall:
    done, failed = read.done, outcome.failed
    if is_benign(done.programs, outcome.exit):
        failed = False
    elif not failed and (outcome.exit is None or done.piped) and not outcome.running:
        failed = shows_failure(outcome.text, done.programs) or failed
    count = count_tests(outcome.text) if done.tests and tried else None
    good = count.verdict if count else None
    if count and good is None and outcome.exit is not None and not (done.piped and outcome.exit == 0):
        good = outcome.exit == 0
    tests: TestOutcome = "unknown" if good is None else "passed" if good else "failed"
    return SettledCall(outcome, True if good is False else failed, tried, tests, count)
