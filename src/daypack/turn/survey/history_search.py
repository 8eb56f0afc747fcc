"""The past: what has left the window is searched with the newest user message, and the best excerpts are offered."""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from daypack.derived.raw_history import OWN_TOOLS, is_recalled
from daypack.errors import StorageFailed
from daypack.history.session import History
from daypack.search.indexing import Doc
from daypack.search.lexical import Hit, Lexical
from daypack.text.redact.redact import redact
from daypack.turn.items import Item, Missing, Scales
from daypack.types.history import Message
from daypack.types.records import HistoryHit

if TYPE_CHECKING:
    from daypack.turn.survey.best_lines import Query

MAX_HITS = 120
WHOLE = (0, 0)  # the span of an excerpt that is all of its message
_BATCH = 2000
_PICKED = 32
_MOST_TOKENS = 4096  # twice what a window takes: some of it may stand in the tail
_MOST_ITEMS = 64  # each is a part of the event
_AROUND = 240  # characters shown on either side of the line that says most
_INDEX_WEIGHT = 0.5  # of what the index found, beside the words of one line
_RELEVANT = 0.2  # of the best score; what is below is noise
_SEEN = ("model", "reviewer", "evidence_export")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_MARKER = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")


class Past:
    """The search index of one session: derived, brought up to date when something is looked for."""

    def __init__(self, history: History, *, redacting: bool) -> None:
        self._history = history
        self._redacting = redacting
        self._index: Lexical | None = None

    def find(
        self, query: Message, extent: tuple[int, int], scales: Scales, in_time: Callable[[], bool]
    ) -> tuple[list[Item], list[Missing]]:
        """Return excerpts from messages numbered below the first of `extent`, best first, and what was not searched.

        The second is the newest message there is: all are indexed, also those in the window, because what the index
        holds decides how rare a word is, and a deleted index must come back with the same answers.
        """
        below, last = extent
        if self._index is None and not in_time() and not os.path.exists(self._history.layout.derived("search")):
            return [], [_untold(1, below)]
        try:
            index = self._open()
            missed = self._catch_up(index, below, last + 1, in_time)
            hits = index.search(query.text, limit=MAX_HITS, below=below)
        except StorageFailed as error:
            question = f"What was said before? The index failed: {error}"
            return [], [Missing(id="past", question=question, severity="low", requested=f"messages:1-{below - 1}")]
        hits = [hit for hit in hits if hit.id != query.seq]
        relevant = [hit for hit in hits if hit.score >= hits[0].score * _RELEVANT]
        return self._quote(relevant, scales), missed

    def search(self, query: str, limit: int) -> list[HistoryHit]:
        """Return the places that say most about a query, best first, from all of history."""
        reader = self._history.messages.reader
        end = reader.newest().seq + 1
        if end == 1:
            return []
        index = self._open()
        self._catch_up(index, end, end, lambda: True)
        hits = {hit.id: hit for hit in index.search(query, limit=limit, below=end)}
        from daypack.turn.survey.best_lines import Query  # noqa: PLC0415 — 5 ms that a turn need not pay

        most = max((hit.score for hit in hits.values()), default=0.0) or 1.0
        asked = Query(query)
        found = [self._found(hits[one.seq], one, asked, most) for one in reader.pick(list(hits))]
        return sorted(found, key=lambda hit: -hit.score)

    def _found(self, hit: Hit, message: Message, query: "Query", most: float) -> HistoryHit:
        """Return a hit with the line that says most, also where the index found another part of the message."""
        span = (hit.start, hit.stop)
        best = query.best_line(searchable(message))
        if best.score and not (span[0] <= best.start and best.stop <= span[1]):
            span = (max(0, best.start - _AROUND), best.stop + _AROUND)
        text = _cut(message, span, redacting=self._redacting)[0]
        score = best.score + _INDEX_WEIGHT * hit.score / most
        return HistoryHit(text=text.strip(), source=f"messages:{message.seq}", score=round(score, 3))

    def _quote(self, hits: list[Hit], scales: Scales) -> list[Item]:
        """Read the messages of hits, a few at a time, until there is more than a window takes."""
        items: list[Item] = []
        tokens = 0
        for start in range(0, len(hits), _PICKED):
            few = {hit.id: hit for hit in hits[start : start + _PICKED]}
            for message in self._history.messages.reader.pick(list(few)):
                hit = few[message.seq]
                span = (hit.start, hit.stop)
                items.append(excerpt(message, span, round(hit.score, 3), scales, redacting=self._redacting))
                tokens += items[-1].tokens
                if tokens > _MOST_TOKENS or len(items) == _MOST_ITEMS:
                    return items
        return items

    def close(self) -> None:
        """Close the index; a search opens it again."""
        if self._index:
            self._index.close()
            self._index = None

    def _open(self) -> Lexical:
        if self._index is None:
            from daypack.files import atomic  # noqa: PLC0415 — only those who search make the folder

            atomic.make_folders(self._history.layout.context, durable=False)
            self._index = Lexical(self._history.layout.derived("search"))
        return self._index

    def _catch_up(self, index: Lexical, below: int, end: int, in_time: Callable[[], bool]) -> list[Missing]:
        start = index.newest + 1
        while start < end:
            if not in_time():
                if start >= below:
                    return []
                return [_untold(start, below)]
            stop = min(start + _BATCH, end)
            newest = index.add(_doc(message) for message in self._history.messages.records(start, stop - 1))
            # An index that another process threw away begins anew; a stretch of lost lines is passed over.
            start = newest + 1 if newest < start - 1 else stop
        return []


def _untold(start: int, below: int) -> Missing:
    question = f"What was said in messages {start} to {below - 1}? There was no time to index them."
    return Missing(id="past", question=question, severity="info", requested=f"messages:{start}-{below - 1}")


def _doc(message: Message) -> Doc:
    # What was brought back is in the index already, where it was said.
    text = "" if is_recalled(message) else searchable(message)
    return Doc(message.seq, text, message.name or "", message.role, message.ts)


def searchable(message: Message) -> str:
    """Return what is indexed of a message: its words, and the names and arguments of its calls."""
    if not message.tool_calls:
        return message.text
    # A search for something is no place where it was said.
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls if call.name not in OWN_TOOLS)
    return "\n".join([message.text, *calls]).strip()


def excerpt(message: Message, span: tuple[int, int], score: float | None, scales: Scales, *, redacting: bool) -> Item:
    """Return a part of a message as an item; the same message and span always give the same words."""
    if span[0] == 0 and span[1] >= len(searchable(message)):
        span = WHOLE
    text, kinds = _cut(message, span, redacting=redacting)
    who = message.name or message.role
    if redacting and message.name:
        who, more = redact(message.name)
        kinds = tuple(sorted({*kinds, *more}))
    # A line of its text must not look like another quotation.
    words = "\n  ".join(text.strip().splitlines())
    line = f"[{message.seq} {' '.join(who.split())}] {words}"
    return Item(
        id=f"past:{message.seq}",
        kind="memory_entries",
        context_kind="retrieval_result",
        source="messages.jsonl",
        range=str(message.seq),
        text=line,
        title=message.ts[:10] if _DAY.match(message.ts) else "",  # excerpts of one day stand under its date
        authority="tool",
        visibility=_SEEN,
        order=50,
        priority=0.3,
        span=span,
        score=score,
        tokens=scales.tokens(line) + 1,
        bytes=len(line.encode("utf-8", "replace")) + 1,
        redacted=kinds,
    )


def _cut(message: Message, span: tuple[int, int], *, redacting: bool) -> tuple[str, tuple[str, ...]]:
    """Return a part of a message's words without secrets, and the kinds of those that were in it."""
    text = searchable(message)
    cut = (0, len(text)) if span == WHOLE else span
    if not redacting:
        return text[cut[0] : cut[1]], ()
    # All of it, before it is cut: half a secret would not be recognised.
    shown, kinds = redact(text)
    if kinds:
        cut = (0, len(shown)) if span == WHOLE else (_moved(cut[0], text, shown), _moved(cut[1], text, shown))
    return shown[cut[0] : cut[1]], kinds


def _moved(at: int, text: str, redacted: str) -> int:
    """Return where a place of a text is in the text without its secrets; inside one, where its marker begins."""
    before = done = 0  # of the text, of the redacted text: up to here they say the same
    for marker in _MARKER.finditer(redacted):
        kept = redacted[done : marker.start()]
        if at <= before + len(kept):
            return done + at - before
        after = _MARKER.search(redacted, marker.end())
        following = redacted[marker.end() : after.start() if after else None]
        before, done = before + len(kept), marker.start()
        secret = text.find(following, before) if after else len(text) - len(following)
        if at < secret or secret < before:
            return done
        before, done = secret, marker.end()
    return done + at - before
