"""Search quality: dialogues hidden among 100,000 entries with the same vocabulary."""

import os
import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import mean, median

from bench import data
from bench.corpora import Said, Talk, read_corpora
from bench.histories import Histories
from bench.measure import say
from bench.table import Row, Section, duration
from daypack.memory.search.index import Index
from daypack.memory.search.index_files import index_files
from daypack.search import lexical
from daypack.search.lexical import Lexical
from daypack.types.memory import ContextDocument, Entry

ENTRIES, QUICK_ENTRIES = 100_000, 10_000
MOST_NANOSECONDS = 25_000_000
MOST_LOST = 0.01
_TOP = 10
_EVERY = 4  # of the questions, for the search that reads all: it takes half a second
_ALL = 1 << 40
_ALL_SEEDS = 2_000
_NAMES = "Alex Priya Tom Lena Marco Yuki Omar Ines Paul Greta Sam Nora"
_MONTHS = "January February March April May June July August September October November December"
_TITLE = "A haystack: one memory, searched by words alone"
_NOTES = (
    "five dialogues of LoCoMo (CC BY-NC 4.0, read by path, no part of this project), their sessions among others",
    "made by a chain of the dialogues' own words, so that no word of a question is rare because nobody else uses it",
    "beside: the same search without a limit to what it reads; recall@10, mean share of the turns a question needs",
)


class _Feed:
    """A memory as a list."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    def newest(self) -> tuple[int, int]:
        return len(self._entries), 0

    def entries(self, after: int, limit: int) -> Sequence[Entry]:
        return self._entries[after : after + limit]

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument]:
        del after, limit
        return ()


def measure(histories: Histories) -> Section:
    """Hide the dialogues, ask every question."""
    path = data.find("locomo", "locomo_dev5.json")
    if path is None:
        return Section(_TITLE, (Row("LoCoMo", ours="skipped"),), (data.ABSENT,))
    talks = list(read_corpora(path))
    size = ENTRIES if max(histories.sizes) >= ENTRIES else QUICK_ENTRIES
    say(f"haystack of {size:,} entries")
    hidden, entries = _strew(talks, size)
    folder = os.path.join(histories.folder, "haystack")
    index = Index(index_files(folder), _Feed(entries))
    start = time.perf_counter()
    index.catch_up()
    built = time.perf_counter() - start
    ours, spent = _ask(lambda query: [one.seq for one in index.search(query, _TOP)], talks, hidden, 1)
    few = [share for number, share in enumerate(ours) if number % _EVERY == 0]
    with _reading_all(folder) as words:
        every, of_every = _ask(lambda query: [hit.id for hit in words.search(query, limit=_TOP)], talks, hidden, _EVERY)
    lost = mean(every) - mean(few)
    middle = median(spent)
    quick = size < ENTRIES
    rows = (
        Row(
            f"time of a search, p50 of {len(spent):,}",
            size,
            duration(middle),
            duration(median(of_every)),
            target="" if quick else f"≤ {duration(MOST_NANOSECONDS)}",
            met=None if quick else middle <= MOST_NANOSECONDS,
        ),
        Row("  p95", size, duration(sorted(spent)[int(len(spent) * 0.95)])),
        Row(
            f"recall@{_TOP} of {len(few):,} questions",
            size,
            f"{mean(few):.3f}",
            f"{mean(every):.3f}",
            target=f"≥ beside − {MOST_LOST}",
            met=lost <= MOST_LOST,
        ),
        Row(f"  of all {len(ours):,}", size, f"{mean(ours):.3f}"),
        Row("  entries indexed in a second", size, f"{size / built:,.0f}"),
    )
    index.close()
    return Section(_TITLE, rows, _NOTES)


def _ask(
    search: Callable[[str], list[int]], talks: list[Talk], hidden: dict[int, tuple[str, str]], every: int
) -> tuple[list[float], list[int]]:
    shares: list[float] = []
    spent: list[int] = []
    questions = [(talk.name, question) for talk in talks for question in talk.questions]
    for talk, question in questions[::every]:
        start = time.perf_counter_ns()
        found = search(question.text)
        spent.append(time.perf_counter_ns() - start)
        names = {hidden[one] for one in found if one in hidden}
        shares.append(mean((talk, name) in names for name in question.gold))
    return shares, spent


@contextmanager
def _reading_all(folder: str) -> Generator[Lexical]:
    """Give the same words to searches that read every posting, and look around far more matches."""
    words, seeds = Lexical(os.path.join(folder, "words.sqlite"), postings=_ALL), lexical.SEEDS
    lexical.SEEDS = _ALL_SEEDS
    try:
        yield words
    finally:
        lexical.SEEDS = seeds
        words.close()


def _strew(talks: list[Talk], size: int) -> tuple[dict[int, tuple[str, str]], list[Entry]]:
    """Return all entries, and which of them are turns of which dialogue; a session stays together."""
    chance = random.Random(11)
    sessions: dict[tuple[str, str], list[tuple[str, Said]]] = {}
    for talk in talks:
        for said in talk.entries:
            sessions.setdefault((talk.name, said.session), []).append((talk.name, said))
    blocks = list(sessions.values())
    missing = size - sum(map(len, blocks))
    blocks += _invent([said for talk in talks for said in talk.entries], missing, chance)
    chance.shuffle(blocks)
    hidden: dict[int, tuple[str, str]] = {}
    entries: list[Entry] = []
    for name, said in (one for block in blocks for one in block):
        seq = len(entries) + 1
        if name:
            hidden[seq] = name, said.id
        entries.append(
            Entry(
                entry_id=str(seq),
                memory_id="haystack",
                seq=seq,
                created_at="2026-01-01T00:00:00.000Z",
                raw_entry=said.text,
                summary="",
                session=f"{name}/{said.session}",
                role=said.role,
                author=said.author,
                at=said.when,
            )
        )
    return hidden, entries


def _invent(told: list[Said], count: int, chance: random.Random) -> Iterator[list[tuple[str, Said]]]:
    """Yield sessions of other people, in words that follow each other as they do in what was told."""
    after: dict[str, list[str]] = {}
    for said in told:
        for one, other in pairwise(["", *said.text.split(), ""]):
            after.setdefault(one, []).append(other)
    lengths = [len(said.text.split()) for said in told]
    number = 0
    while count > 0:
        number += 1
        turns = min(count, chance.randint(10, 30))
        count -= turns
        who = chance.sample(_NAMES.split(), 2)
        day = f"{chance.randint(1, 28)} {chance.choice(_MONTHS.split())}, {chance.choice((2022, 2023))}"
        when = f"{chance.randint(1, 12)}:{chance.randint(10, 59)} pm on {day}"
        texts = (_say(after, chance.choice(lengths), chance) for _ in range(turns))
        yield [("", Said("", text, who[turn % 2], "person", str(number), when)) for turn, text in enumerate(texts)]


def _say(after: dict[str, list[str]], length: int, chance: random.Random) -> str:
    words: list[str] = []
    word = ""
    while len(words) < length:
        word = chance.choice(after[word])
        if word:
            words.append(word)
    return " ".join(words)
