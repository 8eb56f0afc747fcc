"""Sentences of a text as people and programs write it.

- Prose is split at the ends of sentences, also Chinese and Japanese ones; a wrapped line continues its sentence.
- A bullet, a heading, a line of code, of a log or of a table is one sentence; its marker is not part of it.
- A full stop inside a path, an address, a number, a version or an abbreviation ends nothing.

`text[start:stop]` is always the sentence, so one that was wrapped has its line break in it.
"""

import re
from typing import NamedTuple


class Sentence(NamedTuple):
    """One sentence and its place."""

    text: str
    start: int
    stop: int


_MARKER = re.compile(
    r"[ \t]*+(?:>[ \t]?+)*+(?:#{1,6}+[ \t]++|(?:[-*+•‣◦]|\d{1,3}+[.)])[ \t]++(?:\[[ xX]\][ \t]++)?|\[[ xX]\][ \t]++)?+"
)
_FENCE = re.compile(r"[ \t]*+(?:```|~~~)")
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？]++[」』”’）)]*+")
_ABBREVIATIONS = """
e.g i.e etc vs cf al dr mr mrs ms prof st no fig figs eq sec ch vol pp approx ca inc ltd co corp dept est jan feb mar
apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k e.u ver resp incl excl min max z.b d.h bzw usw vgl ggf evtl nr
"""
_SHORT = frozenset(_ABBREVIATIONS.split())
_LAST_WORD = re.compile(r"[^\s(\[\"'“]{1,12}\Z")
# Programs write these lines: a time first, a prompt, a level, a call, an assignment, a brace or semicolon at the end.
_MACHINE = re.compile(
    r"\s*+(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d|[$>%#]\s|>>>|\[\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b"
    r"|[A-Za-z]{3} {1,2}\d{1,2} \d\d:|[{}<|]|at [\w$.]++\(|File \""
    r"|(?:def|class|import|from|return|const|let|var|fn|func)\s|[\w.\[\]]++\s=\s|[+-]{1,3}[^\s\d-])"
)
_MACHINE_END = re.compile(r"[;{}\\,]\s*\Z")
_WRAPPED_CHARS = range(50, 140)  # the length of a line that an editor may have wrapped
_MAX_WRAPPED_LINES = 12
_OWN_END = tuple(".!?:;…。！？|`")


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, in order; what has neither letter nor digit is none."""
    found: list[Sentence] = []
    fenced = False
    for start, stop in _lines(text):
        if _FENCE.match(text, start, stop):
            fenced = not fenced
            continue
        marked = _MARKER.match(text, start, stop)
        begin = marked.end() if marked and not fenced else start
        _split(text, begin, stop, fenced=fenced, into=found)
    return found


def _lines(text: str) -> list[tuple[int, int]]:
    """Return the lines of a text; lines that were wrapped as one."""
    lines: list[tuple[int, int]] = []
    at, joined = 0, 0
    for line in text.split("\n"):
        stop = at + len(line)
        if line[:1].islower() and joined < _MAX_WRAPPED_LINES and lines and _continues(text, lines[-1][1], at):
            lines[-1] = (lines[-1][0], stop)
            joined += 1
        elif line:
            lines.append((at, stop))
            joined = 0
        at = stop + 1
    return lines


def _continues(text: str, end: int, start: int) -> bool:
    """Return True if the sentence of the line that ends at `end` continues in the line that begins at `start`."""
    if start != end + 1:
        return False
    before = text[text.rfind("\n", 0, end) + 1 : end].rstrip()
    if len(before) not in _WRAPPED_CHARS or before.count(" ") * 12 < len(before) or before.endswith(_OWN_END):
        return False
    line = text[start : start + max(_WRAPPED_CHARS)].partition("\n")[0]
    # Programs repeat how their lines begin.
    return before.split(None, 1)[0] != line.split(None, 1)[0] and not (_is_machine(before) or _is_machine(line))


def _is_machine(line: str) -> bool:
    return _MACHINE.match(line) is not None or _MACHINE_END.search(line[-20:]) is not None


def _split(text: str, start: int, stop: int, *, fenced: bool, into: list[Sentence]) -> None:
    if not fenced:
        ends = [match for match in _END.finditer(text, start, stop) if _is_end(text, start, match)]
        if ends and not _is_machine(text[start:stop]):
            for match in ends:
                _take(text, start, match.end(), into)
                start = match.end()
    _take(text, start, stop, into)


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    if text[match.start()] != "." or match.end() - match.start() > 1:
        return True
    word = _LAST_WORD.search(text, max(start, match.start() - 12), match.start())
    if not word:
        return True
    last = word[0]
    if last.casefold() in _SHORT:
        return False
    # An initial, or the number of a list item inside a line.
    return not (len(last) == 1 and last.isupper()) and not (last.isdigit() and len(last) < 3 and word.start() == start)


def _take(text: str, start: int, stop: int, into: list[Sentence]) -> None:
    piece = text[start:stop]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if piece and _ALNUM.search(piece):
        into.append(Sentence(piece, start, start + len(piece)))


_ALNUM = re.compile(r"[^\W_]")
