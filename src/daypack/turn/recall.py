"""Search a session's own history by words, and recall text that left the window by its id."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import msgspec

from daypack.derived.artifacts.steps import Step, steps_of
from daypack.derived.children import read_children
from daypack.derived.documents import swap_refs
from daypack.derived.raw_history import is_recalled
from daypack.derived.swap import LARGE_TOKENS, chunk_for, id_of, range_of
from daypack.errors import BadInput, Damaged, DaypackError, SourceMissing
from daypack.files.offsets import DAMAGED
from daypack.history.layout import Layout
from daypack.history.logs.lines import UNREADABLE
from daypack.history.resolve import resolve, text_of
from daypack.history.searchable import searchable
from daypack.plain_files import open_plain
from daypack.text.literals import occurs, places
from daypack.text.redact.redact import redact, redact_message
from daypack.turn.survey.inputs import TurnInputs
from daypack.types.history import Event, Message
from daypack.types.names import MIN_ID_CHARS, complete
from daypack.types.records import HistoryHit, Ref, SwapRecord
from daypack.types.source import EventRef, Messages, Source, SwapRef, parse_source

_AROUND = 240  # characters shown on either side of a verbatim match
_CANDIDATES = 60  # results of the index that are checked for verbatim matches
_MAX_VERBATIM_CHARS = 200  # longer queries are not searched verbatim
_BATCH = 512
_CHUNK = "sha256-"
_CERTAIN_DIGITS = 8  # of an id that need not be compared with older ones: two rarely share them
_MAX_LINES = 20_000  # lines of the log that one verbatim search decodes
_PICKED = 64


class Recalled(str):
    """A recalled text, with its source and the range of its lines."""

    source: str
    start: int
    stop: int
    lines: int

    __slots__ = ("lines", "source", "start", "stop")

    @property
    def text(self) -> str:
        """The text itself."""
        return str(self)


class Lookup:
    """Search and recall in one session. Secrets are redacted from everything that is returned."""

    def __init__(self, inputs: TurnInputs) -> None:
        self._inputs = inputs
        self._history = inputs.history

    @property
    def layout(self) -> Layout:
        """The paths of the session."""
        return self._history.layout

    def search(self, query: str, k: int = 5) -> tuple[HistoryHit, ...]:
        """Return the parts of history that match a query best; verbatim matches come first."""
        if not isinstance(query, str) or not query.strip():  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
            hint = "give the words to search for"
            raise BadInput("the query is empty", operation="search history", place="query", hint=hint)
        if k < 1:
            hint = "use 1 or more"
            raise BadInput(f"k must be at least 1, got {k}", operation="search history", place="k", hint=hint)
        wanted = query.strip()
        found = self._inputs.history_search.search(query, max(_CANDIDATES, 4 * k))
        verbatim = [hit for hit in found if occurs(wanted, hit.text)]
        if not verbatim and len(query) <= _MAX_VERBATIM_CHARS and not _is_prose(query):
            verbatim = self._verbatim(wanted, k)
        sources = {hit.source for hit in verbatim}
        return tuple([*verbatim, *(hit for hit in found if hit.source not in sources)][:k])

    def recall(self, name: str, lines: "str | Sequence[int] | None" = None) -> Recalled:
        """Return the text of a swapped chunk, message, event, record, ref or child, by its id or a source reference."""
        source, text = self._find(name)
        if self._inputs.redacting:
            text = redact(text).text
        count = text.count("\n") + (not text.endswith("\n"))
        start, stop = _line_range(lines, count)
        recalled = Recalled(text if lines is None else _lines_of(text, start, stop))
        recalled.source, recalled.start, recalled.stop, recalled.lines = source, start, stop, count
        return recalled

    def extent(self, name: str) -> Messages | None:
        """Return the messages that an id of swapped or named messages refers to; None for any other id."""
        if record := self._swap_record(name.removeprefix("swap:")):
            return range_of(record)
        try:
            source = parse_source(name)
        except DaypackError:
            return None
        return source if isinstance(source, Messages) else None

    def _find(self, name: str) -> tuple[str, str]:
        if record := self._swap_record(name.removeprefix("swap:")):
            extent = range_of(record)
            if chunk_for(self._history, record) is None:
                raise Damaged(
                    f"{record.id} was {extent}, and the text there has changed",
                    operation="recall",
                    place=self._history.layout.messages,
                    hint="a message was erased or is corrupt; see `daypack doctor`",
                )
            return str(extent), self._text_of(extent)
        if steps := self._steps(name):
            return steps
        if source := self._source(name):
            found = resolve(self._history, source)
            if isinstance(found, Event):
                return str(source), self._text_of_event(found)
            extent = Messages(found[0].seq, found[-1].seq)
            del found  # it is read again below, and may be long
            return str(extent), self._text_of(extent)
        if ref := next((ref for ref in self._inputs.working_state.read().refs.values() if ref.id == name), None):
            return self._of_child(ref.path) or (ref.path, ref.summary)
        if found := self._of_child(name):
            return found
        raise SourceMissing(
            f"no message, event, record, chunk or child has the id {name!r}",
            operation="recall",
            place=self._history.layout.name,
            hint="give the id in a stub, pack or record: sha256-…, msg-12, messages:12-18, tool:<call>, f3, r2, ev-9",
        )

    def _steps(self, name: str) -> tuple[str, str] | None:
        """Return the list of the reads and writes of a ref that several messages touched."""
        ref = next((ref for ref in self._inputs.working_state.read().refs.values() if ref.id == name), None)
        extent = parse_source(ref.source) if ref and ref.source else None
        if ref is None or not isinstance(extent, Messages) or extent.start == extent.stop:
            return None
        steps = steps_of(self._history, ref, extent, redacting=self._inputs.redacting)
        return (str(extent), _listed(ref, steps)) if steps else None

    def _of_child(self, name: str) -> tuple[str, str] | None:
        """Return the result of a child, given as `child:<name>` or by the path of its result."""
        for child in read_children(self._history):
            if name in (f"child:{child.name}", f"context/child/{child.name}/result.md"):
                return f"child:{child.name}", child.result or child.handoff or ""
        return None

    def _source(self, name: str) -> Source | None:
        """Return the source reference of a message, event or record id."""
        if name.startswith("msg-") and name[4:].isdecimal():
            return Messages(int(name[4:]), int(name[4:]))
        if name.startswith("ev-"):
            return EventRef(name)
        folded = self._inputs.working_state.read()
        for records in (compaction.records for compaction in reversed(folded.accepted)):  # also superseded records
            for record in (*records.decisions, *records.facts, *records.todos, *records.errors):
                if record.id == name:
                    return parse_source(record.source)
        for ref in (*folded.refs.values(), *swap_refs(folded)):
            if ref.id == name and ref.source:
                return parse_source(ref.source)
        try:
            source = parse_source(name)
        except DaypackError:
            return None
        return None if isinstance(source, SwapRef) else source

    def _swap_record(self, name: str) -> SwapRecord | None:
        if not name.startswith(_CHUNK) or len(name) < len(_CHUNK) + MIN_ID_CHARS:
            return None
        swapped = self._inputs.working_state.read().swapped
        whole = complete(name, swapped, what="ids")
        return swapped[whole] if whole else self._unlisted(name)

    def _unlisted(self, name: str) -> SwapRecord | None:
        """Find a tool output that the tail shows as one line and that no compaction has listed yet."""
        reader = self._history.messages.reader
        found: dict[str, Message] = {}
        for stop in range(reader.count(), 0, -_BATCH):
            slots = reader.slots(max(0, stop - _BATCH), stop)
            large = [slot.seq for slot in slots if slot.tokens > LARGE_TOKENS // 2 and not slot.flags & DAMAGED]
            for message in reader.pick(large):
                if message.role == "tool" and (whole := id_of(message)).startswith(name):
                    found.setdefault(whole, message)
            if found and len(name) >= len(_CHUNK) + _CERTAIN_DIGITS:
                break
        whole = complete(name, found, what="ids")
        if whole is None:
            return None
        event = found[whole].id
        return SwapRecord(id=whole, kind="tool_output", source="messages.jsonl", event=event, summary="", tokens=0)

    def _text_of_event(self, event: Event) -> str:
        """Return the text that an event captured, or else its data."""
        if isinstance(event.data.get("blob"), str) and "digest" in event.data:
            return self._history.captured(event.data).decode("utf-8", "replace")
        return text_of(event) or msgspec.json.format(msgspec.json.encode(event.data)).decode()

    def _text_of(self, extent: Messages) -> str:
        messages = self._history.messages.records(extent.start, extent.stop)
        shown = (redact_message(message)[0] if self._inputs.redacting else message for message in messages)
        if extent.start == extent.stop:
            return "\n".join(searchable(message) for message in shown)
        return "\n\n".join(f"[{message.seq} {message.role}] {searchable(message)}" for message in shown)

    def _verbatim(self, query: str, k: int) -> list[HistoryHit]:
        """Search the bytes of the log for a string, newest first."""
        once = msgspec.json.encode(query)[1:-1]
        twice = msgspec.json.encode(once.decode())[1:-1]  # as in the arguments of a tool call
        hits: list[HistoryHit] = []
        for needle in dict.fromkeys((once, twice)):
            lines = islice(self._lines_with(needle), _MAX_LINES)
            while len(hits) < k and (seqs := list(islice(lines, _PICKED))):
                messages = self._history.messages.reader.pick(seqs)  # it verifies the lines
                hits += [hit for message in messages if (hit := self._quote(message, query, once.decode()))]
        return hits[:k]

    def _quote(self, message: Message, query: str, escaped: str) -> HistoryHit | None:
        text = searchable(redact_message(message)[0] if self._inputs.redacting else message)
        spelled = query if query in text else escaped
        at = next(places(spelled, text), -1)
        if at < 0 or is_recalled(message):
            return None
        start, stop = max(0, at - _AROUND), at + len(spelled) + _AROUND
        return HistoryHit(text=text[start:stop].strip(), source=f"messages:{message.seq}", score=1.0)

    def _lines_with(self, needle: bytes) -> Iterator[int]:
        """Yield the numbers of the messages whose lines contain the bytes, newest first."""
        import mmap  # noqa: PLC0415 — only for strings that the index does not find

        path = self._history.layout.messages
        decoder = msgspec.json.Decoder(_Numbered)
        if not os.path.getsize(path):
            return
        with open_plain(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            at = len(log)
            while (at := log.rfind(needle, 0, at)) >= 0:
                if _is_part(log[max(0, at - 2) : at], log[at + len(needle) : at + len(needle) + 1]):
                    continue
                start = log.rfind(b"\n", 0, at) + 1
                with suppress(*UNREADABLE):
                    yield decoder.decode(log[start : log.find(b"\n", at)]).seq
                at = start


def _listed(ref: Ref, steps: Sequence[Step]) -> str:
    """Return the steps of a ref, one line each, with the ids that recall them."""
    counts = Counter(step.verb for step in steps)
    sums = ", ".join(f"{verb} {count}x" if count > 1 else verb for verb, count in counts.most_common())
    ids = [f"msg-{step.seq}" for step in steps]
    width, verbs = max(map(len, ids)), max(len(step.verb) for step in steps)
    lines = [f"{ref.path}: {sums}; recall one of these ids for its text:"]
    for name, step in zip(ids, steps, strict=True):
        text = "the call" if not step.size else f"{step.size:,} lines" if step.size > 1 else "1 line"
        shown = f", lines {step.lines} of the file" if step.lines else ""
        lines.append(f"{name:<{width}}  {step.verb:<{verbs}}  {text}{shown}")
    return "\n".join(lines)


class _Numbered(msgspec.Struct):
    seq: int


def _is_part(before: bytes, after: bytes) -> bool:
    """True if a match is part of a longer word or number; an escaped line break before it does not count."""
    return after.isalnum() or (before[-1:].isalnum() and before[:1] != b"\\")


def _is_prose(query: str) -> bool:
    """True if a query is a sentence rather than a name, a path or a number."""
    return len(query.split()) > 6


def _line_range(lines: "str | Sequence[int] | None", count: int) -> tuple[int, int]:
    """Return the first and the last line, counted from 1, both inclusive."""
    if lines is None:
        return 1, count
    try:
        ends = lines.split("-") if isinstance(lines, str) else lines
        start = int(ends[0])
        stop = int(ends[-1]) if len(ends) > 1 else start
    except (ValueError, IndexError, TypeError) as error:
        raise _bad_lines(lines, count) from error
    if len(ends) > 2 or start < 1 or stop < start or start > count:
        raise _bad_lines(lines, count)
    return start, min(stop, count)


def _lines_of(text: str, start: int, stop: int) -> str:
    """Return some lines of a text, without splitting all of it, which may be long."""
    begin = 0
    for _ in range(start - 1):
        begin = text.find("\n", begin) + 1
    end = begin - 1
    for _ in range(start, stop + 1):
        end = text.find("\n", end + 1)
    return text[begin:] if end < 0 else text[begin:end]


def _bad_lines(lines: object, count: int) -> BadInput:
    problem = f"{lines!r} is not a range of lines; the text has {count:,}"
    return BadInput(problem, operation="recall", place="lines", hint="write 1-40 or 12")
