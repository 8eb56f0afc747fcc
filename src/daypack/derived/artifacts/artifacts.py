"""Artifacts: what tool calls and their results show for certain. No model, no guess: the same messages, the same value.

Files read, written, created and deleted; commands and exit codes; tests; addresses; errors, and what resolved them.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from msgspec.structs import replace

from daypack.derived.artifacts.file_texts import FileTexts, lines_shown
from daypack.derived.artifacts.observations import (
    Artifacts,
    CommandRun,
    ErrorSeen,
    FileTouch,
    TestRun,
    ToolUse,
    UrlSeen,
    join_lines,
    key_of_tests,
    merge,
    resolve,
)
from daypack.derived.artifacts.outcomes import Outcome, error_line, one_line
from daypack.derived.artifacts.patches import Touch
from daypack.derived.artifacts.settled_calls import SettledCall, settle_call
from daypack.derived.artifacts.tool_arguments import Verb
from daypack.derived.artifacts.tool_calls import CallRead, read_action, read_call, urls_in
from daypack.derived.raw_history import Raw
from daypack.types.history import Message
from daypack.types.records import Ref
from daypack.types.source import Messages, parse_source

__all__ = [
    "Artifacts",
    "CommandRun",
    "ErrorSeen",
    "FileTouch",
    "TestRun",
    "ToolUse",
    "UrlSeen",
    "join_refs",
    "merge",
    "read_artifacts",
    "refs_of",
]

_VERBS = ("deleted", "created", "written", "read", "listed", "failed", "fetched", "named")
_COUNTED = re.compile(rf"\b({'|'.join(_VERBS)})\b(?: (\d{{1,9}})x)?")
_MOST_LINKS = 50  # of one message
_OPEN = re.compile(r"\(Open file: ([^\n]{1,4096}?)\)$", re.MULTILINE)
_SHOWN = re.compile(r"\[File: ([^\n]{1,4096}?) \(\d+ lines total\)\]")
_CREATED = re.compile(r"(?:New )?[Ff]ile created|Created file|Successfully created|File has been created")


def read_artifacts(raw: Raw) -> Artifacts:
    """Return what the calls and results of a range show."""
    reader = _Reader()
    for message in raw.messages:
        reader.take(message)
    return reader.finish()


def refs_of(artifacts: Artifacts) -> tuple[Ref, ...]:
    """Return one ref for each path and address, in order of their first appearance; numbering is left to others."""
    refs: list[tuple[int, Ref]] = []
    for file in artifacts.files:
        seqs = file.seqs
        source = Messages(seqs[0], seqs[-1])
        refs.append((seqs[0], Ref("", file.path, "file", _summary(file, seqs[-1]), str(source), file.digest)))
    for url in artifacts.urls:
        seqs = sorted({*url.fetched, *url.named})
        summary = _summarise_counts({"fetched": len(url.fetched), "named": len(url.named)}, seqs[-1])
        refs.append((seqs[0], Ref("", url.url, "artifact", summary, str(Messages(seqs[0], seqs[-1])))))
    return tuple(ref for _, ref in sorted(refs, key=lambda entry: entry[0]))


def join_refs(former: Ref, later: Ref) -> Ref:
    """Join the refs that two neighbouring ranges have for one path."""
    counts: dict[str, int] = dict.fromkeys(_VERBS, 0)
    for verb, number in _COUNTED.findall(f"{former.summary.partition(';')[0]}, {later.summary.partition(';')[0]}"):
        counts[verb] += int(number or 1)
    sources = [at for at in (_range(former.source), _range(later.source)) if at]
    if not sources:
        return later
    whole = Messages(min(source.start for source in sources), max(source.stop for source in sources))
    # A change whose outcome is not known makes the old digest a wrong one.
    changed = any(verb in later.summary for verb in ("written", "created", "deleted"))
    digest = later.hash if later.hash or changed else former.hash
    return replace(later, summary=_summarise_counts(counts, whole.stop), source=str(whole), hash=digest)


def _range(source: str | None) -> Messages | None:
    found = parse_source(source) if source else None
    return found if isinstance(found, Messages) else None


def _summary(file: FileTouch, last: int) -> str:
    return _summarise_counts({verb: len(getattr(file, verb, ())) for verb in _VERBS}, last)


def _summarise_counts(counts: dict[str, int], last: int) -> str:
    words = [verb if count == 1 else f"{verb} {count}x" for verb, count in counts.items() if count]
    return f"{', '.join(words)}; last {Messages(last, last)}"


class _Call(NamedTuple):
    """A call that waits for its result."""

    seq: int
    name: str
    read: CallRead


class _File:
    """The touches of one path so far."""

    def __init__(self) -> None:
        self.seqs: dict[str, set[int]] = {}
        self.lines: set[tuple[int, int]] = set()


class _Reader:
    """Takes messages in order and adds up what they show."""

    def __init__(self) -> None:
        self._pending: dict[str, _Call] = {}
        self._action: _Call | None = None  # of an agent whose calls are words and whose results come as a user
        self._files: dict[str, _File] = {}
        self._texts = FileTexts()
        self._commands: list[CommandRun] = []
        self._tests: list[TestRun] = []
        self._urls: dict[str, tuple[set[int], set[int]]] = {}  # fetched, named
        self._tools: dict[str, tuple[set[int], set[int]]] = {}  # done, failed
        self._errors: list[ErrorSeen] = []
        self._opened = ""  # the file in the editor of an agent that has one
        self._spelled: dict[str, str] = {}  # absolute -> as the agent wrote it

    def take(self, message: Message) -> None:
        """Read one message."""
        if message.role == "tool":
            call = self._pending.pop(message.tool_call_id or "", None)
            if call:
                self._settle(call, message)
            return
        if message.role == "user" and self._action:
            call, self._action = self._action, None
            self._settle(call, message)
            return
        if message.role != "system":
            self._name_urls(message.text, message.seq)
        for tool in message.tool_calls:
            if waiting := self._pending.pop(tool.id, None):
                self._settle(waiting, None)
            self._pending[tool.id] = _Call(message.seq, tool.name, read_call(tool.name, tool.arguments))
        action = message.meta.get("action") if message.meta and message.role == "assistant" else None
        if isinstance(action, str) and action.strip() and not message.tool_calls:
            self._action = _Call(message.seq, action.split(None, 1)[0], read_action(action))

    def finish(self) -> Artifacts:
        """Return what was read; calls without a result count as made."""
        for call in (*self._pending.values(), *([self._action] if self._action else ())):
            self._settle(call, None)
        digests = self._texts.digests()
        files = [_file(path, file, digests.get(path)) for path, file in self._files.items()]
        urls = [UrlSeen(url, _seqs(fetched), _seqs(named)) for url, (fetched, named) in self._urls.items()]
        tools = [ToolUse(name, _seqs(done), _seqs(failed)) for name, (done, failed) in self._tools.items()]
        return resolve(
            Artifacts(
                tuple(sorted(files, key=lambda file: (file.seqs[0], file.path))),
                tuple(sorted(self._commands, key=lambda command: (command.seq, command.result))),
                tuple(sorted(self._tests, key=lambda test: (test.seq, test.result))),
                tuple(sorted(urls, key=lambda fetch: (min(fetch.fetched + fetch.named), fetch.url))),
                tuple(sorted(self._errors, key=lambda error: error.seq)),
                tuple(sorted(tools, key=lambda tool: tool.name)),
            )
        )

    def _settle(self, call: _Call, result: Message | None) -> None:
        read = call.read
        text = result.text if result else ""
        settled = settle_call(call.name, read, result)
        if read.command:
            self._run(call, settled, result)
        else:
            self._use(call, settled.outcome, result)
        if result and (read.opened or self._opened or "(Open file: " in text[-600:]):
            self._follow_editor(text)

    # Files and other tools

    def _use(self, call: _Call, outcome: Outcome, result: Message | None) -> None:
        read, text = call.read, outcome.text
        failed = bool(outcome.failed)
        touches = read.touches
        if read.opened:
            shown = _SHOWN.search(text, 0, 6000)
            path = self._opened or (self._spelled.get(shown[1], shown[1]) if shown else "")
            touches = (Touch(read.shape.verb or "read", path),) if path else ()
        if touches and result and not failed and _CREATED.match(text):
            touches = tuple(
                written._replace(verb="created") if written.verb == "written" else written for written in touches
            )
        for touch in touches:
            self._touch(touch, _seq_of(touch, call, None if failed else result), failed=failed)
            if not failed and touch.verb == "read" and len(touches) == 1:
                self._read_text(touch, read, text)
        seq = result.seq if result else call.seq
        for url in read.urls:
            self._seen(url)[1 if failed else 0].add(call.seq)
        if read.shape.finds and not failed:
            self._name_urls(text, seq)
        if not touches and not read.urls and result and not outcome.cancelled:
            self._tools.setdefault(call.name, (set(), set()))[1 if failed else 0].add(seq)
        if failed and result and not outcome.cancelled:
            keys, about = _keys(call, touches)
            self._errors.append(ErrorSeen(error_line(text), seq, call.name, one_line(about), keys))

    def _touch(self, touch: Touch, seq: int, *, failed: bool) -> None:
        if not touch.path:
            return
        file = self._files.setdefault(touch.path, _File())
        verb: Verb | str = "failed" if failed else touch.verb
        file.seqs.setdefault(verb, set()).add(seq)
        if failed:
            return
        self._texts.apply(touch)
        if touch.verb == "read" and touch.start and touch.stop >= touch.start:
            file.lines.add((touch.start, touch.stop))

    def _read_text(self, touch: Touch, read: CallRead, text: str) -> None:
        """Take from a result what it shows of a file: lines, and the whole text when it is that."""
        lines = lines_shown(text)
        if lines:
            self._files[touch.path].lines.discard((touch.start, touch.stop))
            self._files[touch.path].lines.add(lines)
        if not read.limited:
            if read.shape.says_content:
                self._texts.record(touch.path, text)
            else:
                self._texts.read(touch.path, text)

    def _follow_editor(self, text: str) -> None:
        """Record the file that is open after a command."""
        found = _OPEN.findall(text[-600:])
        if not found:
            return
        path = found[-1]
        if path != "n/a" and path not in self._spelled:
            newest = next(reversed(self._files), "")
            ending = newest.removeprefix("./")
            same = ending and (path == ending or path.endswith(f"/{ending}"))
            self._spelled[path] = newest if same else path
        self._opened = "" if path == "n/a" else self._spelled[path]

    # Commands

    def _run(self, call: _Call, settled: SettledCall, result: Message | None) -> None:
        read, done = call.read, call.read.done
        outcome, verdict, count = settled.outcome, settled.tests, settled.test_count
        text, seq, failed = outcome.text, result.seq if result else 0, bool(settled.failed)
        for test in done.tests:
            numbers = (count.passed, count.failed) if count else (None, None)
            self._tests.append(TestRun(test.runner, read.command, call.seq, seq, verdict, *numbers, test.targets))
        for touch in read.touches:
            # Of several commands it is not known which one failed.
            undone = outcome.cancelled or (failed and len(done.programs) == 1)
            self._touch(touch, _seq_of(touch, call, None if undone else result), failed=undone)
        for url in read.urls:
            self._seen(url)[1 if failed else 0].add(call.seq)
        if not outcome.cancelled:
            self._commands.append(CommandRun(read.command, call.seq, seq, outcome.exit, failed, done.does))
        if failed and settled.tried:
            keys = tuple(f"run {what}" for what in done.does[-1:])
            if verdict == "failed":
                keys = tuple(key_of_tests(run.runner, target) for run in done.tests for target in run.targets or ("",))
            self._errors.append(ErrorSeen(error_line(text), seq, call.name, read.command, keys))

    # Addresses

    def _seen(self, url: str) -> tuple[set[int], set[int]]:
        return self._urls.setdefault(url, (set(), set()))

    def _name_urls(self, text: str, seq: int) -> None:
        for url in urls_in(text, _MOST_LINKS):
            self._seen(url)[1].add(seq)


def _keys(call: _Call, touches: Sequence[Touch]) -> tuple[tuple[str, ...], str]:
    """Return what has to succeed for a failed call to be made good, and what the call was about."""
    if touches:
        reads = all(touch.verb in ("read", "listed") for touch in touches)
        return tuple(f"{'read' if reads else 'write'} {touch.path}" for touch in touches), touches[0].path
    if call.read.urls:
        return tuple(f"fetch {url}" for url in call.read.urls), call.read.urls[0]
    return (f"tool {call.name}",), ""


def _seq_of(touch: Touch, call: _Call, result: Message | None) -> int:
    """Return the message that shows what was done: the result for a read, the call for a write."""
    return result.seq if result and touch.verb == "read" else call.seq


def _file(path: str, file: _File, digest: str | None) -> FileTouch:
    found = {verb: _seqs(seqs) for verb, seqs in file.seqs.items()}
    make = cast(Callable[..., FileTouch], FileTouch)
    return make(path, **found, digest=digest, lines=join_lines(file.lines))


def _seqs(found: set[int]) -> tuple[int, ...]:
    return tuple(sorted(found))
