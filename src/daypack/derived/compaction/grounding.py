"""Grounding: a bullet stays only if history says it.

- Every path, number, id, address and quoted name of a bullet occurs in the messages verbatim.
- At least `MIN_SHARE` of its content words come from one sentence of one message, or nearly all from two that follow
  each other; its numbers occur in the same place, and so does the word with which a decision or an open task begins,
  which says what to do.
- It does not say the opposite of that sentence, is no answer made of a question, and no certainty made of a guess.

A bullet that fails is dropped and reported as a loss: a missing fact can be looked up, an invented one misleads.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from daypack.derived.raw_history import Raw
from daypack.text.english import stem
from daypack.text.literals import FoundLiteral, literals, places
from daypack.text.sentences import sentences
from daypack.text.words import NO_NEGATION, content_words, count_negations, is_negation, stems_of
from daypack.types.compaction import SECTIONS, Bullet, Loss, Section
from daypack.types.history import File, Image, Message, Text
from daypack.types.records import ContextDoc
from daypack.types.source import Messages

MIN_SHARE = 0.7
MIN_SHARE_OF_TWO = 0.85  # two sentences have many words between them: it is easier to be made up of both
_COUNTS = ("number", "version")
_MAX_SPOTS = 2000  # of one literal: who is everywhere need not be followed everywhere
_NEAR_BEST = 0.15  # sentences that say it nearly as well as the best: the newest of them counts

# What a summary adds to the words of a conversation without saying more.
_FRAME_TEXT = """
user users assistant ask asked asks want wants wanted decide decided decision agreed task fact error pending todo
resolved resolution fixed message messages currently still need needs
"""
_REFERENCE = re.compile(r"\s*+[(\[]?\bmessages?:?\s?(\d{1,9})(?:\s?[-–]\s?(\d{1,9}))?[)\]]?[.\s]*\Z", re.IGNORECASE)
_RESOLUTION = re.compile(
    r"\s*+(?:->|→|=>|[;,(—–-]\s*(?:now )?(?:fixed|resolved|solved)(?: by| with| in)?:?|\b(?:resolution|fix):)\s++",
    re.IGNORECASE,
)
_GUESS = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|presumably|unsure|not sure|not certain|i guess|i think|seems?|could be"
    r"|may be|i suspect|likely)\b|可能|也许|大概",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()—–，；：、]|\s-\s|\b(?:but|because|so that|instead of|rather than|although|while)\b", re.IGNORECASE
)


class _Piece(NamedTuple):
    """A sentence of a message and its position in the whole text."""

    message: int
    text: str
    start: int


class _Support(NamedTuple):
    """Sentences that support a bullet."""

    share: float
    message: int
    text: str
    first: int


def ground(doc: ContextDoc, raw: Raw) -> tuple[tuple[Bullet, ...], tuple[Loss, ...]]:
    """Return the bullets of a filled template that the messages say, each with its source, and the others as losses."""
    offered = list(_offered(doc))
    history = _History(raw, [text for _, text in offered])
    bullets: list[Bullet] = []
    losses: list[Loss] = []
    for section, text in offered:
        found = _ground_one(section, text, history)
        if isinstance(found, Loss):
            losses.append(found)
            continue
        bullet, loss = found
        bullets.append(bullet)
        losses += [loss] if loss else []
    return tuple(bullets), tuple(losses)


def _offered(doc: ContextDoc) -> Iterator[tuple[Section, str]]:
    if doc.task:
        yield "task", doc.task
    for section in SECTIONS[1:]:
        for text in cast(tuple[str, ...], getattr(doc, section)):
            yield section, text


def _ground_one(section: Section, text: str, history: "_History") -> tuple[Bullet, Loss | None] | Loss:
    # Prompts for large readers ask for the message a bullet was read from; its true place is found here.
    text = _REFERENCE.sub("", text).rstrip() or text
    parts = _RESOLUTION.split(text, maxsplit=1) if section == "errors" else [text]
    what = parts[0].rstrip(" ,;")
    found = history.find(what, section)
    if isinstance(found, str):
        whole = history.find(text, section) if len(parts) > 1 else found
        if isinstance(whole, str):
            return Loss(text, "ungrounded", found)
        return Bullet(section, text, history.source(whole)), None
    if len(parts) == 1 or not parts[1].strip():
        return Bullet(section, what, history.source(found)), None
    resolution = parts[1].strip(" ()")
    resolved = history.find(resolution, section)
    if isinstance(resolved, str):
        return Bullet(section, what, history.source(found)), Loss(resolution, "ungrounded", resolved)
    return Bullet(section, what, history.source((*found, *resolved)), resolution), None


class _History:
    """The messages of a range, indexed once by the words that some bullet has."""

    def __init__(self, raw: Raw, bullets: Sequence[str]) -> None:
        self._raw = raw
        self._numbers = _numbers(raw)
        self._whole = ""
        self._starts: list[int] = []
        self._pieces: list[_Piece] = []
        self._known: dict[str, list[int]] = {}
        self._postings: dict[str, list[int]] = {root: [] for text in bullets for root in stems_of(text)}
        texts: list[str] = []
        at = 0
        for index, message in enumerate(raw.messages):
            self._starts.append(at)
            for text in _texts(message):
                self._index(index, text, at)
                texts.append(text)
                at += len(text) + 1
        self._whole = "\n".join(texts)

    def _index(self, message: int, text: str, offset: int) -> None:
        postings = self._postings
        for sentence in sentences(text):
            number = len(self._pieces)
            self._pieces.append(_Piece(message, sentence.text, offset + sentence.start))
            for root in stems_of(sentence.text) & postings.keys():
                postings[root].append(number)

    def source(self, messages: Iterable[int]) -> str:
        """Return the range of messages as a reference."""
        numbers = [self._numbers[message] for message in messages]
        return str(Messages(min(numbers), max(numbers)))

    def find(self, text: str, section: Section) -> tuple[int, ...] | str:
        """Return the messages that say a text, or what speaks against it."""
        found = literals(text)
        for literal in found:
            if not self._spots(literal.text):
                return literal.text
        numbers = [literal for literal in found if literal.kind in _COUNTS]
        names = {literal.text for literal in found if literal.kind not in _COUNTS}
        key, value = _split_key(text)
        bare = _without(value, [literal for literal in literals(value) if literal.kind not in _COUNTS])
        supports = self._supports(sorted(stems_of(bare) - _FRAME) or sorted(stems_of(value)), sorted(names))
        if key:
            supports = self._near_key(key, supports)
        if not supports:
            return "no supporting sentence"
        grounded = [candidate for candidate in supports if not _missing(numbers, candidate.text)]
        if not grounded:
            return _missing(numbers, supports[0].text)
        support = max(grounded, key=lambda sentence: (sentence.share >= grounded[0].share - _NEAR_BEST, sentence.first))
        if against := _speaks_against(value, support.text, section):
            return against
        if section in ("decisions", "pending") and (other := _other_deed(bare, support.text)):
            return other
        messages = [support.message]
        for name in names:
            owners = [bisect_right(self._starts, at) - 1 for at in self._spots(name)]
            messages.append(min(owners, key=lambda owner: abs(owner - support.message)))
        return tuple(messages)

    def _spots(self, literal: str) -> list[int]:
        """Return where a literal occurs; a call matches with any arguments."""
        found = self._known.get(literal)
        if found is None:
            name = literal.removesuffix(")") if literal.endswith("()") else literal
            found = list(islice(places(name, self._whole), _MAX_SPOTS))
            if not found and " " in name:  # a line break may stand for the blank
                pattern = r"\s+".join(map(re.escape, name.split()))
                found = [match.start() for match in re.finditer(pattern, self._whole)]
            self._known[literal] = found
        return found

    def _supports(self, words: Sequence[str], names: Sequence[str]) -> list[_Support]:
        """Return the sentences, alone or two in a row, that have enough of the words and names; best first."""
        masks = self._masks(words, names)
        count = len(words) + len(names)
        found: list[_Support] = []
        for number, mask in masks.items():
            piece = self._pieces[number]
            share = mask.bit_count() / count
            if share >= MIN_SHARE:
                found.append(_Support(share, piece.message, piece.text, number))
                continue
            after = number + 1
            if after in masks and self._pieces[after].message == piece.message:
                share = (mask | masks[after]).bit_count() / count
                if share >= MIN_SHARE_OF_TWO:
                    both = f"{piece.text}\n{self._pieces[after].text}"
                    found.append(_Support(share, piece.message, both, number))
        return sorted(found, key=lambda support: (-support.share, -support.first))

    def _masks(self, words: Sequence[str], names: Sequence[str]) -> dict[int, int]:
        """Return the sentences that have any of some words and names, with a bit for each that they have."""
        masks: dict[int, int] = {}
        for bit, word in enumerate(words):
            for number in self._postings.get(word, ()):
                masks[number] = masks.get(number, 0) | 1 << bit
        for bit, name in enumerate(names, len(words)):
            for at in self._spots(name):
                number = bisect_right(self._pieces, at, key=lambda piece: piece.start) - 1
                if number >= 0:
                    masks[number] = masks.get(number, 0) | 1 << bit
        return masks

    def _near_key(self, key: str, found: list[_Support]) -> list[_Support]:
        """Return the places where at least half of the words of a key occur in the message that has its value."""
        words = stems_of(key)
        per_message: dict[int, set[str]] = {}
        for word in words:
            for number in self._postings.get(word, ()):
                per_message.setdefault(self._pieces[number].message, set()).add(word)
        return [piece for piece in found if len(per_message.get(piece.message, ())) * 2 >= len(words)]


def _numbers(raw: Raw) -> list[int]:
    """Return the number of each message; a message without a number has its position in the range."""
    return [min(max(message.seq or raw.start + at, raw.start), raw.stop) for at, message in enumerate(raw.messages)]


def _texts(message: Message) -> Iterator[str]:
    """Yield all that a message says: its words, what it attaches, and what it calls tools with."""
    if isinstance(message.content, str):
        yield message.content
    else:
        for part in message.content:
            if isinstance(part, Text):
                yield part.text
            elif isinstance(part, Image | File):
                yield part.source
    for call in message.tool_calls:
        yield call.name
        try:
            value: Any = msgspec.json.decode(call.arguments)
        except (msgspec.DecodeError, UnicodeEncodeError):
            yield call.arguments
        else:
            yield "\n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, dict):
        for key, item in cast(dict[str, Any], value).items():
            for text in _strings(item):
                yield f"{key}: {text}"
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _strings(item)
    elif value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)


def _split_key(text: str) -> tuple[str, str]:
    """Return key and value of a line key=value, as prompts for small readers ask for; otherwise no key."""
    key, sign, value = text.partition("=")
    plain = sign and value.strip() and 0 < len(key.split()) <= 4 and key.replace(" ", "").isalpha()
    return (key, value) if plain else ("", text)


def _without(text: str, found: Sequence[FoundLiteral]) -> str:
    """Return a text without some of its literals."""
    for literal in reversed(found):
        text = f"{text[: literal.start]} {text[literal.stop :]}"
    return text


def _missing(numbers: Sequence[FoundLiteral], text: str) -> str:
    """Return the first of the numbers that does not occur in a text."""
    return next((number.text for number in numbers if next(places(number.text, text), None) is None), "")


def _speaks_against(text: str, source: str, section: Section) -> str:
    """Return how a bullet contradicts its source: a lost negation, question or guess."""
    source_line = source.rstrip()
    if section in ("decisions", "facts") and source_line.endswith(("?", "？")) and not text.endswith(("?", "？")):
        return "question"
    guess = None if section in ("task", "pending") else _GUESS.search(source)
    # Who decides says "I think" too.
    if guess and not _GUESS.search(text) and not (section == "decisions" and guess[0].casefold() == "i think"):
        return "uncertain"
    if content_words(text) == content_words(source):
        return ""  # word for word
    source = NO_NEGATION.sub("", source)
    clauses = [
        (stems, count_negations(part))
        for part in _CLAUSE.split(source)
        if (stems := stems_of(part)) or count_negations(part)
    ]
    bare = sum(count for stems, count in clauses if not stems)  # "Never, under any …" is about all that follows
    for part in _CLAUSE.split(text):
        words = stems_of(part)
        same = [count for stems, count in clauses if stems and 2 * len(words & stems) >= len(stems)]
        if not same and words:
            best = max(clauses, key=lambda clause: len(words & clause[0]), default=(words, 0))
            same = [best[1]] if 2 * len(words & best[0]) >= len(words) else []
        if same and sum(same) + bare != count_negations(part):
            return "negation"
    return ""


def _other_deed(text: str, source: str) -> str:
    """Return the first word of a bullet if the source does not contain it."""
    first = next((word for word in content_words(text) if not is_negation(word) and stem(word) not in _FRAME), "")
    return first if first and stem(first) not in stems_of(source) else ""


_FRAME = frozenset(stem(word) for word in _FRAME_TEXT.split())
