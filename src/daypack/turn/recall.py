"""Looking things up in a session's own history: search it with words, and bring back what left the window by its id."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import msgspec

from daypack.derived.children import read_children
from daypack.derived.documents import swap_refs
from daypack.derived.raw_history import is_recalled
from daypack.derived.swap import LARGE_TOKENS, chunk_for, id_of, range_of
from daypack.errors import BadInput, Damaged, DaypackError, SourceMissing
from daypack.files.offsets import DAMAGED
from daypack.history.lines import UNREADABLE
from daypack.history.resolve import resolve, text_of
from daypack.text.literals import occurs, places
from daypack.text.redact.messages import clear
from daypack.text.redact.redact import redact
from daypack.turn.survey.history_search import searchable
from daypack.turn.survey.inputs import TurnInputs
from daypack.types.history import Event, Message
from daypack.types.records import HistoryHit, SwapRecord
from daypack.types.source import EventRef, Messages, Source, SwapRef, parse_source

_AROUND = 240  # characters shown on either side of a verbatim find
_CANDIDATES = 60  # places the index names; of these the lines decide
_MOST_VERBATIM = 200  # characters of a query that is looked for word for word
_LEAST_PREFIX = 8  # hexadecimal digits that name a swapped chunk
_BATCH = 512
_MOST_LINES = 20_000  # of the log that are looked at for one string
_PICKED = 64


class Recalled(str):
    """A text that was brought back, with where it is from and which of its lines these are."""

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
    """Search and recall. Secrets are out of whatever is returned."""

    def __init__(self, inputs: TurnInputs) -> None:
        self._inputs = inputs
        self._history = inputs.history

    def search(self, query: str, k: int = 5) -> tuple[HistoryHit, ...]:
        """Return the places of history that say most about a query; those that say it word for word go first."""
        if not isinstance(query, str) or not query.strip():  # pyright: ignore[reportUnnecessaryIsInstance] — the edge
            hint = "give words to look for"
            raise BadInput("there is nothing to search for", operation="search history", place="query", hint=hint)
        if k < 1:
            hint = "ask for at least 1"
            raise BadInput(f"{k} results were asked for", operation="search history", place="k", hint=hint)
        wanted = query.strip()
        found = self._inputs.past.search(query, max(_CANDIDATES, 4 * k))
        verbatim = [hit for hit in found if occurs(wanted, hit.text)]
        if not verbatim and len(query) <= _MOST_VERBATIM and not _is_prose(query):
            verbatim = self._verbatim(wanted, k)
        said = {hit.source for hit in verbatim}
        return tuple([*verbatim, *(hit for hit in found if hit.source not in said)][:k])

    def recall(self, name: str, lines: "str | Sequence[int] | None" = None) -> Recalled:
        """Return what an id stands for: of a swapped chunk, message, event, record, ref or child, or a reference."""
        source, text = self._find(name)
        if self._inputs.redacting:
            text = redact(text).text
        whole = text.split("\n")
        if len(whole) > 1 and not whole[-1]:
            whole.pop()  # the end of the last line, not a line
        start, stop = _line_range(lines, len(whole))
        recalled = Recalled(text if lines is None else "\n".join(whole[start - 1 : stop]))
        recalled.source, recalled.start, recalled.stop, recalled.lines = source, start, stop, len(whole)
        return recalled

    def _find(self, name: str) -> tuple[str, str]:
        if record := self._swap_record(name.removeprefix("swap:")):
            extent = range_of(record)
            if chunk_for(self._history, record) is None:
                raise Damaged(
                    f"{record.id} stood for {extent}, and these say something else now",
                    operation="recall",
                    place=self._history.layout.messages,
                    hint="a message was erased or damaged since; see `daypack doctor`",
                )
            return str(extent), self._words(extent)
        if source := self._source(name):
            found = resolve(self._history, source)
            if isinstance(found, Event):
                return str(source), text_of(found) or msgspec.json.format(msgspec.json.encode(found.data)).decode()
            extent = Messages(found[0].seq, found[-1].seq)
            return str(extent), self._words(extent)
        if ref := next((one for one in self._inputs.working.read().refs.values() if one.id == name), None):
            return self._of_child(ref.path) or (ref.path, ref.summary)
        if found := self._of_child(name):
            return found
        raise SourceMissing(
            f"nothing here is called {name!r}",
            operation="recall",
            place=self._history.layout.name,
            hint="give an id of a stub, pack or record: sha256-…, msg-12, messages:12-18, tool:<call>, f3, r2, ev-9",
        )

    def _of_child(self, name: str) -> tuple[str, str] | None:
        """Return what a child answered, by `child:<name>` or by the path of its result."""
        for child in read_children(self._history):
            if name in (f"child:{child.name}", f"context/child/{child.name}/result.md"):
                return f"child:{child.name}", child.result or child.handoff or ""
        return None

    def _source(self, name: str) -> Source | None:
        """Return the reference a name stands for: a message or event by its id, a record by its source."""
        if name.startswith("msg-") and name[4:].isdecimal():
            return Messages(int(name[4:]), int(name[4:]))
        if name.startswith("ev-"):
            return EventRef(name)
        folded = self._inputs.working.read()
        for records in (one.records for one in reversed(folded.accepted)):  # also one that gave way since
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
        if not name.startswith("sha256-") or len(name) < 7 + _LEAST_PREFIX:
            return None
        swapped = self._inputs.working.read().swapped
        found = [swapped[name]] if name in swapped else [one for key, one in swapped.items() if key.startswith(name)]
        if len(found) > 1:
            hint = f"give more of it: {', '.join(one.id[:24] for one in found[:4])}"
            raise BadInput(f"{name} stands for {len(found)} chunks", operation="recall", place="id", hint=hint)
        return found[0] if found else self._unlisted(name)

    def _unlisted(self, name: str) -> SwapRecord | None:
        """Find an output that stands in a tail as one line, and that no compaction has listed yet."""
        reader = self._history.messages.reader
        for stop in range(reader.count(), 0, -_BATCH):
            slots = reader.slots(max(0, stop - _BATCH), stop)
            large = [slot.seq for slot in slots if slot.tokens > LARGE_TOKENS // 2 and not slot.flags & DAMAGED]
            for message in reader.pick(large):
                if message.role == "tool" and id_of(message).startswith(name):
                    found = id_of(message)
                    return SwapRecord(
                        id=found, kind="tool_output", source="messages.jsonl", event=message.id, summary="", tokens=0
                    )
        return None

    def _words(self, extent: Messages) -> str:
        messages = self._history.messages.records(extent.start, extent.stop)
        cleared = (clear(one)[0] if self._inputs.redacting else one for one in messages)
        if extent.start == extent.stop:
            return "\n".join(searchable(one) for one in cleared)
        return "\n\n".join(f"[{one.seq} {one.role}] {searchable(one)}" for one in cleared)

    def _verbatim(self, query: str, k: int) -> list[HistoryHit]:
        """Look for a string as it stands, newest first, in the bytes of the log."""
        once = msgspec.json.encode(query)[1:-1]
        twice = msgspec.json.encode(once.decode())[1:-1]  # as arguments spell it
        hits: list[HistoryHit] = []
        for needle in dict.fromkeys((once, twice)):
            lines = islice(self._lines_with(needle), _MOST_LINES)
            while len(hits) < k and (few := list(islice(lines, _PICKED))):
                messages = self._history.messages.reader.pick(few)  # which believes no damaged line
                hits += [hit for one in messages if (hit := self._quote(one, query, once.decode()))]
        return hits[:k]

    def _quote(self, message: Message, query: str, escaped: str) -> HistoryHit | None:
        text = searchable(clear(message)[0] if self._inputs.redacting else message)
        spelled = query if query in text else escaped
        at = next(places(spelled, text), -1)
        if at < 0 or is_recalled(message):
            return None
        start, stop = max(0, at - _AROUND), at + len(spelled) + _AROUND
        return HistoryHit(text=text[start:stop].strip(), source=f"messages:{message.seq}", score=1.0)

    def _lines_with(self, needle: bytes) -> Iterator[int]:
        """Yield the numbers of the messages whose lines hold some bytes, newest first."""
        import mmap  # noqa: PLC0415 — only for what the index does not know

        path = self._history.layout.messages
        decoder = msgspec.json.Decoder(_Numbered)
        if not os.path.getsize(path):
            return
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            at = len(log)
            while (at := log.rfind(needle, 0, at)) >= 0:
                if _is_part(log[max(0, at - 2) : at], log[at + len(needle) : at + len(needle) + 1]):
                    continue
                start = log.rfind(b"\n", 0, at) + 1
                with suppress(*UNREADABLE):
                    yield decoder.decode(log[start : log.find(b"\n", at)]).seq
                at = start


class _Numbered(msgspec.Struct):
    seq: int


def _is_part(before: bytes, after: bytes) -> bool:
    """Whether what was found goes on in a longer word or number; an escaped line end before it is none of it."""
    return after.isalnum() or (before[-1:].isalnum() and before[:1] != b"\\")


def _is_prose(query: str) -> bool:
    """Whether a query is a sentence rather than a name, a path or a number."""
    return len(query.split()) > 6


def _line_range(lines: "str | Sequence[int] | None", count: int) -> tuple[int, int]:
    """Return the first and the last line that is wanted, both from 1 and included."""
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


def _bad_lines(lines: object, count: int) -> BadInput:
    problem = f"{lines!r} names no lines of a text of {count:,}"
    return BadInput(problem, operation="recall", place="lines", hint="write 1-40 or 12")
