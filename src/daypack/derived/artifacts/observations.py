"""Observations from tool calls and results: small values that can be merged range by range."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from daypack.text.trim import trim

Seqs = tuple[int, ...]  # numbers of messages, ascending
TestOutcome = Literal["passed", "failed", "unknown"]
RESOLUTION_CHARS = 120


class FileTouch(Struct, frozen=True, omit_defaults=True):
    """A path as the agent wrote it, and the messages that did something to it."""

    path: str
    read: Seqs = ()
    written: Seqs = ()
    created: Seqs = ()
    deleted: Seqs = ()
    listed: Seqs = ()  # searched, listed or looked up, not read
    failed: Seqs = ()  # named by a call that did not succeed
    digest: str | None = None  # of the last content that is known
    lines: tuple[tuple[int, int], ...] = ()  # that were read, both ends included

    @property
    def seqs(self) -> Seqs:
        """All messages that touch it."""
        every = self.read + self.written + self.created + self.deleted + self.listed + self.failed
        return tuple(sorted(set(every)))


class CommandRun(Struct, frozen=True, omit_defaults=True):
    """A shell command on one line; `does` names what it runs, for comparison with later runs."""

    command: str
    seq: int
    result: int = 0  # the message with its output; 0 when there is none
    exit: int | None = None
    failed: bool = False
    does: tuple[str, ...] = ()


class TestRun(Struct, frozen=True, omit_defaults=True):
    """A run of tests; without targets it was the whole suite."""

    __test__ = False  # it is not one itself

    runner: str
    command: str
    seq: int
    result: int = 0
    outcome: TestOutcome = "unknown"
    passed: int | None = None
    failed: int | None = None
    targets: tuple[str, ...] = ()


class UrlSeen(Struct, frozen=True, omit_defaults=True):
    """An address that a call fetched, a search found, or a message contains."""

    url: str
    fetched: Seqs = ()
    named: Seqs = ()


class ToolUse(Struct, frozen=True, omit_defaults=True):
    """A tool that is neither a shell nor about files."""

    name: str
    done: Seqs = ()  # the messages with its results
    failed: Seqs = ()


class ErrorSeen(Struct, frozen=True, omit_defaults=True):
    """An error on one line, as a result words it; `keys` name what has to succeed for it to be resolved."""

    text: str
    seq: int  # of the message that words it
    tool: str
    command: str = ""  # what failed: a command, a path or an address
    keys: tuple[str, ...] = ()
    resolved_by: int | None = None
    resolution: str | None = None


class Artifacts(Struct, frozen=True, omit_defaults=True):
    """Everything that is known for certain about what was done in a range of messages."""

    files: tuple[FileTouch, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    tests: tuple[TestRun, ...] = ()
    urls: tuple[UrlSeen, ...] = ()
    errors: tuple[ErrorSeen, ...] = ()
    tools: tuple[ToolUse, ...] = ()


def merge(earlier: Artifacts, later: Artifacts) -> Artifacts:
    """Add up two neighbouring ranges; errors of the first may be resolved by the second."""
    files = {file.path: file for file in earlier.files}
    for file in later.files:
        files[file.path] = _join_files(files[file.path], file) if file.path in files else file
    urls = {url.url: url for url in earlier.urls}
    for url in later.urls:
        urls[url.url] = _join(urls[url.url], url, "fetched", "named") if url.url in urls else url
    tools = {tool.name: tool for tool in earlier.tools}
    for tool in later.tools:
        tools[tool.name] = _join(tools[tool.name], tool, "done", "failed") if tool.name in tools else tool
    return resolve(
        Artifacts(
            tuple(files.values()),
            earlier.commands + later.commands,
            earlier.tests + later.tests,
            tuple(urls.values()),
            earlier.errors + later.errors,
            tuple(sorted(tools.values(), key=lambda tool: tool.name)),
        )
    )


def resolve(artifacts: Artifacts) -> Artifacts:
    """Return the errors with the later step that resolved each, if any."""
    if not artifacts.errors:
        return artifacts
    successes = _Successes(artifacts)
    return replace(artifacts, errors=tuple(map(successes.judge, artifacts.errors)))


def resolving_step(artifacts: Artifacts, error: ErrorSeen) -> ErrorSeen:
    """Return an error of an earlier range with the step of this one that resolved it, if any."""
    return _Successes(artifacts).judge(error)


def key_of_tests(runner: str, target: str = "") -> str:
    """Name a target of a runner; without one, its whole suite."""
    return f"test {runner}|{target}"


class _Successes:
    """The successful steps, by key."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._times: dict[str, list[tuple[int, str]]] = {}
        for run in artifacts.commands:
            if not run.failed and run.result:
                self._add((f"run {what}" for what in run.does), [run.result], run.command)
        for test in artifacts.tests:
            if test.outcome == "passed":
                keys = [key_of_tests(test.runner, target) for target in test.targets or ("",)]
                self._add(keys, [test.result], test.command)
        for file in artifacts.files:
            self._add([f"write {file.path}"], file.written + file.created, f"{file.path} was written")
            found = file.read + file.written + file.created
            self._add([f"read {file.path}"], found, f"{file.path} was found")
        for url in artifacts.urls:
            self._add([f"fetch {url.url}"], url.fetched, f"{url.url} was fetched")
        for tool in artifacts.tools:
            self._add([f"tool {tool.name}"], tool.done, f"{tool.name} succeeded")
        for times in self._times.values():
            times.sort()

    def _add(self, keys: Iterable[str], seqs: Sequence[int], words: str) -> None:
        for key in keys:
            self._times.setdefault(key, []).extend((seq, words) for seq in seqs)

    def judge(self, error: ErrorSeen) -> ErrorSeen:
        """Return an error with the step that resolved it."""
        # Every target of a run of tests must have passed since, or the whole suite.
        own = [self._after(key, error.seq) for key in error.keys]
        found = max(filter(None, own)) if own and all(own) else None
        if error.keys and error.keys[0].startswith("test "):
            whole = self._after(error.keys[0].partition("|")[0] + "|", error.seq)
            found = min(filter(None, (found, whole)), default=None)
        if found is None:
            return replace(error, resolved_by=None, resolution=None) if error.resolved_by else error
        return replace(error, resolved_by=found[0], resolution=_clip(found[1]))

    def _after(self, key: str, seq: int) -> tuple[int, str] | None:
        times = self._times.get(key, [])
        at = bisect_right(times, seq, key=lambda time: time[0])
        return times[at] if at < len(times) else None


def _clip(words: str) -> str:
    return trim(words, RESOLUTION_CHARS)


def _join_files(earlier: FileTouch, later: FileTouch) -> FileTouch:
    joined = _join(earlier, later, "read", "written", "created", "deleted", "listed", "failed")
    # A change whose outcome is not known makes the old digest a wrong one.
    changed = later.written or later.created or later.deleted or later.digest
    digest = later.digest if changed else earlier.digest
    return replace(joined, digest=digest, lines=join_lines(earlier.lines + later.lines))


def _join(earlier: Any, later: Any, *fields: str) -> Any:  # noqa: ANN401 — two of one type
    return replace(
        earlier, **{name: tuple(sorted({*getattr(earlier, name), *getattr(later, name)})) for name in fields}
    )


def join_lines(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges of lines in order, neighbours as one."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)
