"""History search: excerpts of earlier messages, found with the newest user message or with a query."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from daypack.derived.history_index import HistoryIndex, Unindexed
from daypack.errors import StorageFailed
from daypack.history.searchable import searchable
from daypack.history.session import History
from daypack.search.floor import relevant
from daypack.search.lexical import Hit
from daypack.text.outline import names_in
from daypack.text.redact.excerpts import redact_excerpt
from daypack.text.redact.redact import redact
from daypack.turn.items import UNSEARCHED, Excerpt, Missing, TokenMeter, message_range
from daypack.turn.policy import MAX_HITS, MAX_QUOTED_EXCERPTS, QUOTED_PARTS, STEP_TOKENS
from daypack.types.deadline import Deadline
from daypack.types.history import Message
from daypack.types.names import one_line
from daypack.types.records import HistoryHit

if TYPE_CHECKING:
    from daypack.turn.survey.best_lines import Words

WHOLE = (0, 0)  # the span of an excerpt that is its whole message
_PICKED = 32
_STEP_NAMES = 12  # of the calls, and of their results
_STEP_CHARS = 2000  # of each result
_AROUND = 240  # characters shown on either side of the best line
_INDEX_WEIGHT = 0.5  # weight of the index's score against that of the best line
_VISIBILITY = ("model", "reviewer", "evidence_export")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_BRACKETS = str.maketrans("[]", "()")  # a name ends where daypack ends it


class Query(NamedTuple):
    """What to search for, and the messages that ask for it."""

    text: str
    seqs: frozenset[int]
    step: bool = False  # what the agent does, not the user's words


class HistorySearch:
    """Search in one session; the index is brought up to date before each search."""

    def __init__(self, history: History, excerpt_tokens: int, *, redacting: bool) -> None:
        self._history = history
        self._max_quoted_tokens = QUOTED_PARTS * excerpt_tokens
        self._redacting = redacting
        self.index = HistoryIndex(history)

    def find(
        self, query: Query, bounds: Sequence[int], last: int, meter: TokenMeter, deadline: Deadline
    ) -> tuple[dict[int, list[Excerpt]], list[Missing]]:
        """Return for each bound the excerpts of messages before it, best first, and what was not searched.

        All messages up to `last` are indexed: the index decides how rare a word is, and a rebuilt one must give the
        same answers.
        """
        below = max(bounds)
        if not self.index.exists and deadline.has_passed:
            return {}, [_not_searched(Unindexed(1, below), building=False)]
        try:
            unindexed = self.index.catch_up(last + 1, deadline)
            building = self.index.request_build(unindexed)
            hits = {bound: self.index.search(query.text, limit=MAX_HITS, below=bound) for bound in bounds}
        except StorageFailed as error:
            question = f"What was said before? The search index failed: {error}"
            place = message_range(1, below - 1)
            return {}, [Missing(id=UNSEARCHED, question=question, severity="low", requested=place)]
        gaps = [gap.before(below) for gap in unindexed if gap.start < below]
        missing = [_not_searched(gap, building=building, first=gap is gaps[0]) for gap in gaps]
        return {bound: self._quote(_relevant(found, query), query, meter) for bound, found in hits.items()}, missing

    def search(self, query: str, limit: int) -> list[HistoryHit]:
        """Return the places in all of history that match a query best."""
        reader = self._history.messages.reader
        end = reader.newest().seq + 1
        if end == 1:
            return []
        self.index.build()
        hits = {hit.id: hit for hit in self.index.search(query, limit=limit, below=end)}
        from daypack.turn.survey.best_lines import Words  # noqa: PLC0415 — 5 ms that a turn need not pay

        best = max((hit.score for hit in hits.values()), default=0.0) or 1.0
        parsed = Words(query)
        places = [self._place(hits[message.seq], message, parsed, best) for message in reader.pick(list(hits))]
        return sorted(places, key=lambda place: -place.score)

    def close(self) -> None:
        """Close the index; a search opens it again."""
        self.index.close()

    def _place(self, hit: Hit, message: Message, query: "Words", best_score: float) -> HistoryHit:
        """Return a hit with its best line, even if the index matched another part of the message."""
        span = (hit.start, hit.stop)
        line = query.best_line(searchable(message))
        if line.score and not (span[0] <= line.start and line.stop <= span[1]):
            span = (max(0, line.start - _AROUND), line.stop + _AROUND)
        text = _cut(message, span, redacting=self._redacting)[0]
        score = line.score + _INDEX_WEIGHT * hit.score / best_score
        return HistoryHit(text=text.strip(), source=f"messages:{message.seq}", score=round(score, 3))

    def _quote(self, hits: list[Hit], query: Query, meter: TokenMeter) -> list[Excerpt]:
        """Read the messages of hits, a few at a time, until there is more than a window takes."""
        excerpts: list[Excerpt] = []
        tokens = 0
        most_tokens = STEP_TOKENS if query.step else self._max_quoted_tokens
        for start in range(0, len(hits), _PICKED):
            picked = {hit.id: hit for hit in hits[start : start + _PICKED]}
            for message in self._history.messages.reader.pick(list(picked)):
                hit = picked[message.seq]
                span = (hit.start, hit.stop)
                quoted = excerpt(message, span, round(hit.score, 3), meter, redacting=self._redacting)
                if query.step and tokens + quoted.tokens > most_tokens:
                    continue
                excerpts.append(replace(quoted, step=query.step))
                tokens += quoted.tokens
                if tokens > most_tokens or len(excerpts) == MAX_QUOTED_EXCERPTS:
                    return excerpts
        return excerpts


def _relevant(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Return the hits above the floor; no user asked for those of a step, so each has to reach it."""
    found = relevant([hit for hit in hits if hit.id not in query.seqs])
    return [hit for hit in found if hit.relevance >= 1] if query.step else found


def step_query(messages: Sequence[Message]) -> Query | None:
    """Return a query for what the agent does now: the names in its newest calls and in their results."""
    step: list[Message] = []
    for message in reversed(messages):
        step.insert(0, message)
        if message.role != "tool":
            break
    if not step or not step[0].tool_calls:
        return None
    called = dict.fromkeys(names_in(searchable(step[0])))
    answered = dict.fromkeys(name for message in step[1:] for name in names_in(message.text[:_STEP_CHARS]))
    names = [*list(called)[:_STEP_NAMES], *[name for name in answered if name not in called][:_STEP_NAMES]]
    return Query(" ".join(names), frozenset(message.seq for message in step), step=True) if names else None


def _not_searched(gap: Unindexed, *, building: bool, first: bool = True) -> Missing:
    place = message_range(gap.start, gap.stop - 1)
    reason = "It is not searched yet: its index is being built." if building else "There was no time to index it."
    question = f"What was said in {place}? {reason}"
    name = UNSEARCHED if first else f"{UNSEARCHED}:{gap.start}"
    return Missing(id=name, question=question, severity="info", requested=place)


def excerpt(
    message: Message, span: tuple[int, int], score: float | None, meter: TokenMeter, *, redacting: bool
) -> Excerpt:
    """Return a part of a message as an excerpt; the same message and span always give the same text."""
    if span[0] == 0 and span[1] >= len(searchable(message)):
        span = WHOLE
    text, kinds = _cut(message, span, redacting=redacting)
    speaker = message.name or message.role
    if redacting and message.name:
        speaker, more = redact(message.name)
        kinds = tuple(sorted({*kinds, *more}))
    # Continuation lines are indented, so that none of them looks like another excerpt.
    content = "\n  ".join(text.strip().splitlines())
    line = f"[{message.seq} {one_line(speaker).translate(_BRACKETS)}] {content}"
    return Excerpt(
        id=f"excerpt:{message.seq}",
        seq=message.seq,
        span=span,
        kind="memory_entries",
        context_kind="retrieval_result",
        source="messages.jsonl",
        range=str(message.seq),
        text=line,
        title=message.ts[:10] if _DAY.match(message.ts) else "",  # excerpts of one day are under its date
        authority="tool",
        visibility=_VISIBILITY,
        placement="tail",
        order=50,
        priority=0.3,
        score=score,
        tokens=meter.tokens(line) + 1,
        bytes=len(line.encode("utf-8", "replace")) + 1,
        redacted=kinds,
    )


def _cut(message: Message, span: tuple[int, int], *, redacting: bool) -> tuple[str, tuple[str, ...]]:
    """Return a part of a message's searchable text, redacted, and the kinds of secrets in the message."""
    text = searchable(message)
    cut = (0, len(text)) if span == WHOLE else span
    if not redacting:
        return text[cut[0] : cut[1]], ()
    return redact(text) if span == WHOLE else redact_excerpt(text, *cut)
