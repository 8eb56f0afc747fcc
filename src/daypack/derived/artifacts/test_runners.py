"""Test runners: which commands run tests, and what their output says about the outcome."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from daypack.derived.artifacts.shell import word_set

_RUNNERS = word_set(
    "pytest py.test tox nox jest vitest mocha ava rspec phpunit ctest bats nosetests karma playwright cypress "
    "minitest busted trial green nextest"
)
# Programs that run tests under a subcommand.
_SUBCOMMANDS: dict[str, frozenset[str]] = {
    "npm": frozenset(("test", "t", "tst")),
    "yarn": frozenset(("test", "jest", "vitest")),
    "pnpm": frozenset(("test", "t", "vitest", "jest")),
    "bun": frozenset(("test",)),
    "deno": frozenset(("test",)),
    "node": frozenset(("--test",)),
    "cargo": frozenset(("test", "t", "nextest")),
    "go": frozenset(("test",)),
    "make": frozenset(("test", "tests", "check", "unittest")),
    "just": frozenset(("test", "tests", "check")),
    "mix": frozenset(("test",)),
    "dotnet": frozenset(("test",)),
    "mvn": frozenset(("test", "verify")),
    "mvnw": frozenset(("test", "verify")),
    "gradle": frozenset(("test", "check")),
    "gradlew": frozenset(("test", "check")),
    "rake": frozenset(("test", "spec")),
    "rails": frozenset(("test",)),
    "swift": frozenset(("test",)),
    "sbt": frozenset(("test",)),
    "flutter": frozenset(("test",)),
    "dart": frozenset(("test",)),
    "bazel": frozenset(("test",)),
    "composer": frozenset(("test",)),
    "php": frozenset(("artisan",)),
    "zig": frozenset(("test",)),
    "lein": frozenset(("test",)),
    "stack": frozenset(("test",)),
    "cabal": frozenset(("test",)),
    "dune": frozenset(("test", "runtest")),
    "hatch": frozenset(("test",)),
    "ng": frozenset(("test",)),
    "nx": frozenset(("test",)),
    "turbo": frozenset(("test",)),
}
_PYTHON = re.compile(r"python[\d.]*")
_SCRIPT = re.compile(r"test\b|test:")
_EVERYTHING = frozenset((".", "./...", "...", "./", "tests", "tests/", "test", "test/"))
_NARROWING = word_set(
    "-k -m -run --run -t -g --grep --filter -e -E -p --package --tests -Dtest --testNamePattern --testPathPattern"
)
_IGNORED = frozenset(("-n", "-j", "-c", "-W", "-o", "--maxfail", "--timeout", "-count", "-timeout", "--seed"))
_FILTER = re.compile(r"(?P<option>--?[\w-]+) (?P<name>.+)", re.DOTALL)
_BY_PART_OF_NAME = frozenset(("-k", "-run", "--run", "-t", "--grep"))  # with a plain word
_SHORT_NAMES = {"t": "test", "tst": "test", "tests": "test", "nextest": "test"}
_TAIL_CHARS = 6000  # of an output: summaries come last

_COUNTS = re.compile(
    r"(\d{1,9})\)? (?:tests? |examples?, )?(passed|failed|failures?|errors?|passing|failing|pass|fail)\b", re.IGNORECASE
)
_NAMED = re.compile(
    r"\b(pass(?:ed)?|fail(?:ed|ures?)?|errors?)\s?[:=] {0,8}(\d{1,9})\b|^# (pass|fail) (\d{1,9})$", re.I | re.M
)
_RAN = re.compile(
    r"(\d{1,9}) (?:tests?|examples?|runs?|specs?)\b|Ran (\d{1,9}) tests?|OK \((\d{1,9}) tests?|Tests run: (\d{1,9})"
)
_GO = re.compile(r"^(?:(ok)  ?\t|(FAIL)\t|--- (FAIL):|(PASS)$|(FAIL)$)", re.MULTILINE)
_VERDICT = re.compile(r"^(?:(OK)\b|(FAILED) \(|(?:test result: )(?:(ok)|(FAILED)))", re.MULTILINE)


class Test(NamedTuple):
    """A run of tests as a command asks for it."""

    __test__ = False  # it is not one itself

    runner: str
    targets: tuple[str, ...]  # empty: everything


class Count(NamedTuple):
    """The numbers that a test run printed."""

    passed: int | None
    failed: int | None

    @property
    def verdict(self) -> bool | None:
        """True if all tests passed; None if the output does not say."""
        if self.failed:
            return False
        return True if self.failed == 0 or self.passed else None


def find_test(words: Sequence[str]) -> Test | None:
    """Return the run of tests that a command is; None when it is none."""
    program, rest = words[0].rpartition("/")[2], tuple(words[1:])
    if _PYTHON.fullmatch(program):
        return _python(rest)
    if program in _RUNNERS:
        return Test("pytest" if program == "py.test" else program, _targets(rest))
    if known := _SUBCOMMANDS.get(program):
        at = next((at for at, word in enumerate(rest) if word in known or not word.startswith("-")), len(rest))
        word = rest[at] if at < len(rest) else ""
        if word == "run" and at + 1 < len(rest) and _SCRIPT.match(rest[at + 1]):
            return Test(f"{program} {rest[at + 1]}", _targets(rest[at + 2 :]))
        if word in known and not (program == "php" and rest[at + 1 : at + 2] != ("test",)):
            return Test(f"{program} {word}", _targets(rest[at + 1 :]))
    return None


def _python(rest: tuple[str, ...]) -> Test | None:
    if len(rest) > 1 and rest[0] == "-m" and rest[1] in ("pytest", "unittest", "nose2", "tox", "nox", "trial"):
        return Test(rest[1], _targets(rest[2:]))
    if len(rest) > 1 and rest[1] == "test" and rest[0].endswith("manage.py"):
        return Test("manage.py test", _targets(rest[2:]))
    if rest and rest[0].rpartition("/")[2] in ("runtests.py", "run_tests.py"):
        return Test(rest[0], _targets(rest[1:]))
    return None


def _targets(words: Sequence[str]) -> tuple[str, ...]:
    """Return what a run is limited to; paths that mean everything are no limit."""
    found: set[str] = set()
    option = ""
    for word in words:
        name, joined, value = word.partition("=")
        if joined and name in _NARROWING:  # -run=TestRows
            found.add(f"{name} {value}"[:200])
            option = ""
        elif word.startswith("-"):
            option = word if word in _NARROWING or word in _IGNORED else ""
        elif option:
            if option in _NARROWING and not word.startswith("no:"):  # a plugin that pytest is to do without
                found.add(f"{option} {word}"[:200])
            option = ""
        elif word not in _EVERYTHING and not word.isdecimal():
            found.add(word[:200])
    return tuple(sorted(found))


def covers(wide: Test, narrow: Test) -> bool:
    """Return True if a run includes every test of another one, as far as their commands tell."""
    if _family(wide.runner) != _family(narrow.runner):
        return False
    filters, places = _split(wide.targets)
    narrow_filters, narrow_places = _split(narrow.targets)
    if not all(any(_admits(own, other) for other in narrow_filters) for own in filters):
        return False
    return not places or (bool(narrow_places) and all(any(_has(own, at) for own in places) for at in narrow_places))


def _family(runner: str) -> str:
    program, _, subcommand = runner.partition(" ")
    return f"{program} {_SHORT_NAMES.get(subcommand, subcommand)}"


def _split(targets: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split targets into filters (option and name) and places, which are written in one way."""
    filters: list[tuple[str, str]] = []
    places: list[str] = []
    for target in targets:
        if chosen := _FILTER.fullmatch(target):
            filters.append((chosen["option"], chosen["name"].strip("'\"")))
        else:
            places.append(target.removeprefix("./").removesuffix("...").rstrip("/"))
    return filters, places


def _admits(wide: tuple[str, str], narrow: tuple[str, str]) -> bool:
    """Return True if a filter lets through what another one does: the same, or a plain part of its plain name."""
    (option, part), (other, name) = wide, narrow
    plain = option in _BY_PART_OF_NAME and part.isidentifier() and name.isidentifier()
    return option == other and (part == name or (plain and part in name))


def _has(place: str, inner: str) -> bool:
    return inner == place or inner.startswith((f"{place}/", f"{place}::"))


def count_tests(output: str) -> Count:
    """Read how many tests passed and failed off the end of an output, in the words of any runner."""
    tail = output[-_TAIL_CHARS:]
    passed: int | None = None
    failed: int | None = None
    named = [(number, word) for number, word in _COUNTS.findall(tail)]
    named += [(groups[1] or groups[3], groups[0] or groups[2]) for groups in _NAMED.findall(tail)]
    for number, word in named:
        if word.lower().startswith("pass"):
            passed = max(passed or 0, int(number))
        else:
            failed = max(failed or 0, int(number))
    for ok, bad, lost, fine, ended in _GO.findall(tail):
        if bad or lost or ended:
            failed = max(failed or 0, 1)
        elif ok or fine:
            failed = failed or 0
    for good, bad, well, ill in _VERDICT.findall(tail):
        failed = max(failed or 0, 1) if bad or ill else (failed or 0) if good or well else failed
    if passed is None and failed is not None and (ran := _RAN.findall(tail)):
        total = sum(int(number) for numbers in ran[-2:] for number in numbers if number)
        passed = max(total - failed, 0)
    return Count(passed, failed)
