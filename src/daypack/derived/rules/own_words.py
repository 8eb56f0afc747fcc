"""The user's own words in a message: its sentences, without what was pasted, quoted, injected or listed as work."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from daypack.derived.compaction.utterances import user_words
from daypack.derived.rules.headers import MATERIAL, RULES_HEADER, is_rules_header
from daypack.text.injected import strip_blocks
from daypack.text.sentences import Sentence, sentences
from daypack.types.authority import users_part
from daypack.types.history import Message

_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
# A block between tags is a pasted document, unless its tag says that it holds rules.
_TAG_OPEN = re.compile(r"<([A-Za-z][\w-]{0,40})(?: [^<>\n]{0,200})?>")
_TAG_CLOSE = re.compile(r"</([A-Za-z][\w-]{0,40})>")
_RULE_TAG = re.compile(r"rule|instruction|guideline|preference|convention", re.IGNORECASE)
# Four words or more between quotation marks are the words of others; fewer are a name or a keyword.
_QUOTATION = re.compile(r"[\"“„«](?=\S)([^\"“”„«»\n]*(?:\n[^\"“”„«»\n]+)*)[\"”“»]")
_QUOTED_WORDS = 4
_HEADING = re.compile(r"[ \t]*(?:#{1,6}[ \t]+(.+)|\*\*([^*]+)\*\*:?|([A-Z][A-Z ]{3,40}):)[ \t]*\Z")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦]|\(?\d{1,3}[.)]|\(?[a-z]\))[ \t]+(?=\S)")
_LONG_CHARS = 3000  # of a longer message only the first and last paragraph are the user's own
_MAX_ITEMS = 20


class Passage(NamedTuple):
    """A sentence as it was written, and as it is judged: long quotations are blank."""

    text: str
    judged: str
    paragraph: int
    start: int
    stop: int
    listed: bool = False  # an item of a list that is not one of rules


class _Line(NamedTuple):
    start: int
    stop: int
    text: str


def own_words(message: Message) -> tuple[str, list[Passage], list[tuple[int, int]]]:
    """Return what the user wrote, its sentences, and the places of lists of rules."""
    part = users_part(message)
    if part is None:
        return "", [], []
    text = strip_blocks(part.text)
    text = _without_documents(text) if "</" in text else text
    text = user_words(replace(part, content=_QUOTED_LINE.sub("", text)))
    judged = _blank_quotations(text)
    lines = _lines(text)
    if len(text) > _LONG_CHARS:
        lines = _first_and_last_paragraph(lines)
    lines = _before_material(lines)
    lists = list(_lists(lines))
    blocks = [(start, stop) for start, stop, ruling in lists if ruling]
    listed = [(start, stop) for start, stop, ruling in lists if not ruling]
    passages = [
        Passage(
            text[sentence.start : sentence.stop],
            judged[sentence.start : sentence.stop],
            text.count("\n\n", 0, sentence.start),
            sentence.start,
            sentence.stop,
            _inside(sentence, listed),
        )
        for sentence in sentences(judged)
        if _inside(sentence, [(line.start, line.stop) for line in lines]) and not _inside(sentence, blocks)
    ]
    return text, passages, blocks


def _without_documents(text: str) -> str:
    """Return a text without the blocks between tags, apart from rules; read once, however many tags stay open."""
    closed = {match[1]: match.end() for match in _TAG_CLOSE.finditer(text)}
    kept: list[str] = []
    at = done = 0
    for opened in _TAG_OPEN.finditer(text):
        if done <= opened.start() and closed.get(opened[1], 0) > opened.end():
            close = f"</{opened[1]}>"
            done = text.index(close, opened.end()) + len(close)
            if not _RULE_TAG.search(opened[1]):
                kept.append(text[at : opened.start()])
                at = done
    return "\n\n".join((*kept, text[at:]))


def _blank_quotations(text: str) -> str:
    def blank(quoted: re.Match[str]) -> str:
        if len(quoted[1].split()) < _QUOTED_WORDS:
            return quoted[0]
        return quoted[0][0] + "_" * len(quoted[1]) + quoted[0][-1]

    return _QUOTATION.sub(blank, text)


def _inside(sentence: Sentence, places: list[tuple[int, int]]) -> bool:
    return any(start <= sentence.start < stop for start, stop in places)


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    at = 0
    for line in text.split("\n"):
        lines.append(_Line(at, at + len(line), line))
        at += len(line) + 1
    return lines


def _first_and_last_paragraph(lines: list[_Line]) -> list[_Line]:
    blank = [at for at, line in enumerate(lines) if not line.text.strip()]
    if not blank:
        return []
    last = [line for line in lines[blank[-1] :] if line.text.strip()]
    return [*lines[: blank[0]], _Line(lines[blank[0]].start, lines[blank[0]].start, ""), *last]


def _before_material(lines: list[_Line]) -> list[_Line]:
    """Return the lines before a document that the message only carries: after "Review this:", or below a heading."""
    kept: list[_Line] = []
    for at, line in enumerate(lines):
        heading = _HEADING.match(line.text)
        if heading and not RULES_HEADER.search(line.text.lower()):
            return kept
        words = line.text.lower().rstrip()
        kept.append(line)
        if words.endswith(":") and MATERIAL.search(words) and any(rest.text.strip() for rest in lines[at + 1 :]):
            if is_rules_header(words):
                continue
            return kept
    return kept


def _lists(lines: list[_Line]) -> Iterator[tuple[int, int, bool]]:
    """Yield where lists begin and end, a list of rules with its header, and whether it is one."""
    at = 0
    while at < len(lines):
        if not _ITEM.match(lines[at].text):
            at += 1
            continue
        header = next((line for line in reversed(lines[:at]) if line.text.strip()), None)
        first = last = at
        while at < len(lines) and (_ITEM.match(lines[at].text) or lines[at].text.startswith("  ")):
            last = at
            at += 1
            if at + 1 < len(lines) and not lines[at].text.strip() and _ITEM.match(lines[at + 1].text):
                at += 1
        words = header.text.lower().rstrip() if header else ""
        titled = bool(header) and (words.endswith(":") or _HEADING.match(words) is not None)
        ruling = titled and is_rules_header(words) and last - first < _MAX_ITEMS
        if ruling and header:
            yield header.start, lines[last].stop, True
        elif titled or last > first + 1:
            yield lines[first].start, lines[last].stop, False
