"""`daypack find` over the sessions of two years, beside grep and ripgrep on the same files."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from bench import data
from bench.histories import Histories
from bench.measure import alternate, run, say, settle
from bench.past_sessions import REWORDED, Needle, PastSessions, write_recorded, write_sessions
from bench.table import Row, Section, compare, duration
from daypack.history.layout import Home
from daypack.text.words import content_words
from daypack.upkeep.find import find
from daypack.upkeep.find.index import FindIndex, size_of
from daypack.upkeep.find.update import update

SESSIONS, MESSAGES = 1_000, 300_000
QUICK_SESSIONS, QUICK_MESSAGES = 200, 12_000
ROUNDS = 7
ASKED, QUICK_ASKED = 120, 30  # questions of each kind at most
MOST_MS, LEAST_PER_SECOND, MOST_BYTES = 300, 20_000, 1.2
_FIRST = (5, 10)
_QUERY = "where did we fix the port the server listens on?"
_WORD = "listens"  # into a pipe: without a reader, grep stops at the first line of a file
_TITLE = "Find, over all sessions of all agents"
_NOTES = (
    "find, grep and rg are CPU times of a whole process on the same files; beside find: grep -r -i -F for one word",
    "LoCoMo and BEAM: their questions, and the messages that answer them; reworded: a sentence of a recorded session",
    "with every third word left out, the others in other forms and backwards. found: such a message is among the first",
    "5 / 10 results. grep finds it if all content words of the question are in its line, or the question itself,",
    "and fewer than 5 / 10 other lines come first. session: a message of the same session is among the results",
)


def measure(histories: Histories) -> Section:
    """Write the sessions, index them, search them, and ask for what is in them."""
    home = Home(os.path.join(histories.folder, "past"), "bench")
    count, messages = (QUICK_SESSIONS, QUICK_MESSAGES) if histories.quick else (SESSIONS, MESSAGES)
    say(f"find: writing {count:,} sessions with {messages:,} messages")
    past = write_sessions(home, count, messages)
    if past is None:
        return Section(_TITLE, (Row("sessions", ours=data.ABSENT),))
    settle()
    rows = [*_index_rows(home, past), *_time_rows(home, past), *_found_rows(home, past, quick=histories.quick)]
    shutil.rmtree(home.root)
    rows += _absent_rows(home, past, quick=histories.quick)
    return Section(_TITLE, tuple(rows), _NOTES)


def _index_rows(home: Home, past: PastSessions) -> Iterator[Row]:
    say("find: indexing")
    started, index = time.process_time(), FindIndex(home)
    update(home, index)
    index.close()
    spent = time.process_time() - started
    rate, size = past.messages / spent, size_of(home) / past.text_bytes
    yield Row(
        f"index, messages of {past.text_bytes / past.messages:,.0f} bytes per CPU second",
        past.messages,
        f"{rate:,.0f}",
        target=f"≥ {LEAST_PER_SECOND:,}",
        met=rate >= LEAST_PER_SECOND,
    )
    yield Row("  bytes of index per byte of text", ours=f"{size:.2f}", target=f"≤ {MOST_BYTES}", met=size <= MOST_BYTES)


def _time_rows(home: Home, past: PastSessions) -> Iterator[Row]:
    say(f"find: {ROUNDS} rounds")
    os.environ |= {"DAYPACK_HOME": home.root, "DAYPACK_UID": home.uid}
    folder = os.path.join(home.folder, "agent")
    blocks = {
        "bare": run([sys.executable, "-c", "pass"]),
        "find": run([sys.executable, "-m", "daypack", "find", _QUERY]),
        "grep -r": run(["sh", "-c", f'grep -r -i -F {_WORD} "$0" | wc -l', folder]),
    }
    if shutil.which("rg"):
        blocks["rg"] = run(["sh", "-c", f'rg -i -F {_WORD} "$0" | wc -l', folder])
    series = alternate(blocks, rounds=ROUNDS, operations=1)
    own, grep = series["find"], series["grep -r"]
    ratios, spent = compare("", own, grep), own.middle("cpu")
    yield Row(
        "find, whole process",
        past.messages,
        duration(spent),
        duration(grep.middle("cpu")),
        ratios.wall,
        ratios.quiet,
        ratios.cpu,
        target=f"CPU ≤ {MOST_MS} ms",
        met=spent <= MOST_MS * 1e6,
    )
    yield Row("  bare Python", ours=duration(series["bare"].middle("cpu")))
    yield Row("  ripgrep", beside=duration(series["rg"].middle("cpu")) if "rg" in series else "not installed")


class _Asked(NamedTuple):
    """How often the answers to questions were found among the first 5 and the first 10 results."""

    kind: str
    questions: int
    found: tuple[int, ...]
    session: tuple[int, ...]
    words: tuple[int, ...]  # by grep, all content words in one line
    phrase: tuple[int, ...]  # by grep, word for word


def _found_rows(home: Home, past: PastSessions, *, quick: bool) -> Iterator[Row]:
    for kind in dict.fromkeys(needle.kind for needle in past.needles):
        needles = [needle for needle in past.needles if needle.kind == kind]
        most = QUICK_ASKED if quick else ASKED
        chosen = needles[:: -(-len(needles) // most)]
        say(f"find: {len(chosen)} questions of {kind}")
        asked = _ask(home, kind, chosen)
        yield Row(
            f"{kind}: {asked.questions} questions, found among the first 5 / 10; beside: grep, all words",
            ours=_shares(asked.found, asked.questions),
            beside=_shares(asked.words, asked.questions),
        )
        yield Row(
            "  its session; beside: grep, word for word",
            ours=_shares(asked.session, asked.questions),
            beside=_shares(asked.phrase, asked.questions),
        )


def _absent_rows(home: Home, past: PastSessions, *, quick: bool) -> Iterator[Row]:
    """Ask for what is not there: the questions of the dialogues, of a home that has only sessions of agents."""
    write_recorded(home, QUICK_MESSAGES)
    most = QUICK_ASKED if quick else ASKED
    for kind in dict.fromkeys(needle.kind for needle in past.needles if needle.kind != REWORDED):
        needles = [needle for needle in past.needles if needle.kind == kind]
        chosen = needles[:: -(-len(needles) // most)]
        say(f"find: {len(chosen)} questions of {kind} about what is not there")
        counts = [len(find(home, needle.query, limit=max(_FIRST)).hits) for needle in chosen]
        yield Row(
            f"{kind}: {len(chosen)} questions of sessions without it: nothing found",
            QUICK_MESSAGES,
            f"{counts.count(0) / max(1, len(counts)):.2f}",
        )
        yield Row("  results each, of 10", ours=f"{sum(counts) / max(1, len(counts)):.1f}")
    shutil.rmtree(home.root)


def _ask(home: Home, kind: str, needles: Sequence[Needle]) -> _Asked:
    ranks = [_rank(home, needle) for needle in needles]
    greps = [
        (_grep_rank(home, needle, content_words(needle.query)), _grep_rank(home, needle, [needle.query]))
        for needle in needles
    ]
    return _Asked(
        kind,
        len(needles),
        _within(message for message, _ in ranks),
        _within(session for _, session in ranks),
        _within(words for words, _ in greps),
        _within(phrase for _, phrase in greps),
    )


def _within(ranks: Iterable[float]) -> tuple[int, ...]:
    known = list(ranks)
    return tuple(sum(rank < first for rank in known) for first in _FIRST)


def _rank(home: Home, needle: Needle) -> tuple[float, float]:
    """Return at which place the answer is, and the first result of its session."""
    places = [(hit.agent, hit.session, hit.seq) for hit in find(home, needle.query, limit=max(_FIRST)).hits]
    sessions = {gold[:2] for gold in needle.gold}
    message = (at for at, place in enumerate(places) if place in needle.gold)
    session = (at for at, place in enumerate(places) if place[:2] in sessions)
    return next(message, inf), next(session, inf)


def _grep_rank(home: Home, needle: Needle, texts: Sequence[str]) -> float:
    """Return how many lines grep prints before an answer; without end if the answer lacks one of the texts."""
    folded = [text.casefold() for text in texts]
    if not any(all(text in answer.casefold() for text in folded) for answer in needle.texts):
        return inf
    rarest = max(texts, key=len)
    found = subprocess.run(
        ["grep", "-r", "-i", "-h", "-F", "--", rarest, os.path.join(home.folder, "agent")],
        capture_output=True,
        check=False,
    )
    lines = found.stdout.decode("utf-8", "replace").casefold().split("\n")
    matching = [line for line in lines if all(text in line for text in folded)]
    answers = [at for at, line in enumerate(matching) if any(_escaped(text) in line for text in needle.texts)]
    return answers[0] if answers else inf


def _escaped(text: str) -> str:
    """Return the beginning of a text as it is in a line of a log."""
    return msgspec.json.encode(text).decode()[1:60].casefold()


def _shares(counts: Sequence[int], whole: int) -> str:
    return " / ".join(f"{count / max(1, whole):.2f}" for count in counts)
