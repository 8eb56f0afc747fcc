"""The section of a reply that is no text: where it begins and ends, and what JSON object is in it.

The split is at the first separator whose whole remainder is one JSON object. If there is none, a section that can be
mended counts (a fence, tags, comments, words behind the JSON), then one that is broken; else all of the reply is text.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from daypack.protocol.rules import Violation
from daypack.protocol.verdict import Verdict, scan, skip_space

SEPARATOR = "<<<CONTEXT>>>"
_LENGTH = len(SEPARATOR)
_MOST_TRIED = 16  # separators from the front and as many from the back

# What some models put between the separator and the JSON.
_OPENING = re.compile(
    r"(?P<fence>`{3,}|~{3,})[^\n`{]*(?:\n|(?=\{)|\Z)|<(?P<tag>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>"
    r"|(?P<comment>//[^\n]*(?:\n|\Z)|/\*.*?\*/|<!--.*?-->)|(?P<odd>[*_`]{1,3}(?=\s)|[\s\ufeff]+)",
    re.DOTALL,
)
_CLOSING_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[ \t]*(?=[\r\n]|\Z)")
_ANY_SPACE = re.compile(r"\s*")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # one that is not closed goes on to the end
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n\r]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|[][{{}}]", re.DOTALL)
# How a snapshot begins, even one that is no JSON; words in braces do not.
_LIKE_JSON = re.compile(r"""\{\s*(?:["'}]|//|/\*|[A-Za-z_]\w*\s*:)|\[\s*["{[]""")
_GOES_ON = (",", "}", "]")
_LOOSE = re.compile(r"[\s,}\]]*+(?=`{3,}|~{3,}|</|\Z)")
_NO_JSON = ("S0-R4", "S0-R5")
_NO_OBJECT = "what follows the separator is JSON, but no object"


class Section(NamedTuple):
    """What is cut from a reply: from `start` to `stop`, and the object in it; None: it cannot be used."""

    start: int
    stop: int
    value: dict[str, Any] | None
    violations: tuple[Violation, ...] = ()


def find_section(reply: str) -> Section | None:
    """Return the section of a reply, None when all of it is text."""
    at = reply.find(SEPARATOR)
    if at < 0:
        return None
    starts = list(_separators(reply, at))
    if len(starts) > 2 * _MOST_TRIED:
        starts = starts[:_MOST_TRIED] + starts[-_MOST_TRIED:]
    for find in (_whole, _mended, _broken):
        for start in starts:
            if section := find(reply, start):
                return section if find is _whole else _absorb(reply, section)
    return None


def _separators(reply: str, at: int) -> Iterator[int]:
    while at >= 0:
        yield at
        at = reply.find(SEPARATOR, at + _LENGTH)


def _whole(reply: str, start: int) -> Section | None:
    """A separator and one JSON object, as the protocol has it."""
    at = skip_space(reply, start + _LENGTH)
    if not reply.startswith("{", at):
        return None
    verdict = scan(reply, at)
    if verdict.end < 0 or skip_space(reply, verdict.end) < len(reply):
        return None
    return Section(start, len(reply), _object(verdict), tuple(_objections(verdict, reply, at)))


def _object(verdict: Verdict) -> dict[str, Any] | None:
    value: Any = verdict.value
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _objections(verdict: Verdict, reply: str, at: int) -> Iterator[Violation]:
    if verdict.refused:
        yield Violation("X23", f"the JSON is refused: {verdict.refused}", _line(reply, at))
    if verdict.mended:
        yield Violation("S0-T13", "a string holds half a character; U+FFFD stands for it", _line(reply, at))


class _Opened(NamedTuple):
    """What stands between the separator and the JSON: fences and the names of tags, in their order."""

    at: int
    wrappers: tuple[str, ...] = ()
    comment: bool = False
    odd: bool = False  # characters that are no white space to JSON


_FENCE = "```"


def _open(reply: str, start: int) -> _Opened:
    at = start + _LENGTH
    wrappers: list[str] = []
    comment = odd = False
    while found := _OPENING.match(reply, at):
        if found["fence"] or found["tag"]:
            wrappers.append(_FENCE if found["fence"] else found["tag"])
        comment = comment or bool(found["comment"])
        odd = odd or bool(found["odd"] and found["odd"].strip(" \t\r\n"))
        at = found.end()
    return _Opened(at, tuple(wrappers), comment, odd)


def _mended(reply: str, start: int) -> Section | None:
    """A JSON object with something around it, or with comments in it."""
    opened = _open(reply, start)
    if not reply.startswith("{", opened.at):
        return None
    plain = verdict = scan(reply, opened.at)
    if plain.problem:
        # Blanks of the same length: every place stays where it is.
        verdict = scan(_STRING_OR_COMMENT.sub(_blank, reply[opened.at :]), 0)
        verdict = verdict._replace(end=verdict.end + opened.at if verdict.end >= 0 else -1)
        opened = opened._replace(comment=True)
    if verdict.end < 0:
        return None
    end = verdict.end
    faults = [*_around(reply, opened), *_objections(verdict, reply, opened.at)]
    if reply.startswith(_GOES_ON, _skip_any_space(reply, end)):
        if not (loose := _LOOSE.match(reply, end)):
            return None  # a bracket too many in the middle: it is JSON still, and the half of it is no snapshot
        faults.append(Violation("S0-R6", "brackets too many follow the JSON", _line(reply, end)))
        end = loose.end()
    stop, behind = _behind(reply, _close(reply, end, opened))
    return Section(start, stop, _object(verdict), (*faults, *behind))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " " * len(found[0])


def _close(reply: str, at: int, opened: _Opened) -> int:
    """Take in the fences and tags that close what was opened before the JSON, and no others."""
    for wrapper in reversed(opened.wrappers):
        if wrapper == _FENCE:
            found = _CLOSING_FENCE.match(reply, at)
            at = found.end() if found else at
        else:
            behind = _skip_any_space(reply, at)
            closing = f"</{wrapper}>"
            at = behind + len(closing) if reply.startswith(closing, behind) else at
    return at


def _behind(reply: str, stop: int) -> tuple[int, tuple[Violation, ...]]:
    """Return where the section ends when nothing but space is behind `stop`, else that there are words."""
    rest = _skip_any_space(reply, stop)
    where = _line(reply, rest)
    if rest == len(reply):
        odd = skip_space(reply, stop) < rest
        return rest, (Violation("S0-R6", "white space that JSON does not know follows it", where),) if odd else ()
    if reply.startswith(SEPARATOR, rest):
        return stop, ()  # another section: it is told of as such
    problem = "words follow the JSON; they are taken as text"
    return stop, (Violation("S0-R2", problem, where), Violation("S0-R6", problem, where))


def _skip_any_space(reply: str, at: int) -> int:
    found = _ANY_SPACE.match(reply, at)
    return found.end() if found else at


def _around(reply: str, opened: _Opened) -> Iterator[Violation]:
    where = _line(reply, opened.at)
    around: list[tuple[str, tuple[str, ...]]] = []
    if _FENCE in opened.wrappers:
        around.append(("a code fence stands around the JSON", ("S0-F2", "S0-R6")))
    if any(one != _FENCE for one in opened.wrappers):
        around.append(("tags stand around the JSON", ("S0-F3", "S0-R6")))
    if opened.odd:
        around.append(("characters that are no JSON stand before it", ("S0-R6",)))
    if opened.comment:
        around.append(("there are comments", ("S0-F4",)))
    for problem, rules in around:
        yield from (Violation(rule, problem, where) for rule in rules)
    problem = around[0][0] if around else "what follows the separator is not JSON alone"
    yield from (Violation(rule, problem, where) for rule in _NO_JSON)


def _broken(reply: str, start: int) -> Section | None:
    """What was meant as a snapshot and is none: empty, cut off, no JSON, or no object."""
    opened = _open(reply, start)
    where = _line(reply, start)
    if opened.at >= len(reply):
        problem = "nothing follows the separator"
        return Section(start, len(reply), None, tuple(Violation(rule, problem, where) for rule in _NO_JSON))
    verdict = scan(reply, opened.at)
    if verdict.end >= 0 and not reply.startswith("{", opened.at):
        stop, behind = _behind(reply, _close(reply, verdict.end, opened))
        if stop == len(reply):
            faults = [Violation(rule, _NO_OBJECT, where) for rule in ("X23", "S0-F1")]
            faults += _objections(verdict, reply, opened.at)
            alone = not behind and opened == _Opened(skip_space(reply, start + _LENGTH))
            return Section(start, stop, None, (*faults, *(() if alone else _around(reply, opened)), *behind))
    return _torn(reply, start, opened, verdict) if reply.startswith(("{", "["), opened.at) else None


def _torn(reply: str, start: int, opened: _Opened, verdict: Verdict) -> Section | None:
    """An object or array that is no JSON, or not closed."""
    faults = list(_refusals(verdict, _line(reply, start)))
    faults += [one for one in _around(reply, opened) if one.rule not in _NO_JSON]
    end = _extent(reply, opened.at)
    if end is None:
        if not verdict.problem:
            faults += [Violation(rule, "the JSON is not closed", _line(reply, start)) for rule in _NO_JSON]
        return Section(start, len(reply), None, tuple(faults))
    stop, behind = _behind(reply, _close(reply, end, opened))
    if stop < len(reply) and not reply.startswith(SEPARATOR, _skip_any_space(reply, stop)):
        if not _LIKE_JSON.match(reply, opened.at):
            return None  # words in braces, quoted in a sentence
        if reply.startswith(_GOES_ON, _skip_any_space(reply, stop)):
            stop, behind = len(reply), ()  # a bracket too many: it is JSON still
    return Section(start, stop, None, (*faults, *behind))


def _refusals(verdict: Verdict, where: str) -> Iterator[Violation]:
    if verdict.problem or not verdict.refused:
        problem = f"what follows the separator is no JSON object: {verdict.problem}" if verdict.problem else _NO_OBJECT
        yield from (Violation(rule, problem, where) for rule in _NO_JSON)
    if verdict.refused:
        yield Violation("X23", f"the JSON is refused: {verdict.refused}", where)


def _extent(reply: str, at: int) -> int | None:
    """Return where the bracket that opens at `at` is closed, None when it is not."""
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(reply, at):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return None


def _absorb(reply: str, section: Section) -> Section:
    """Take in the sections and objects that follow at once: nobody is to read the JSON of a second one."""
    for _ in range(_MOST_TRIED):
        at = _skip_any_space(reply, section.stop)
        stop = -1
        if reply.startswith(SEPARATOR, at):
            following = _mended(reply, at) or _broken(reply, at)
            stop = following.stop if following else -1
        elif reply.startswith("{", at):
            stop = scan(reply, at).end
        if stop < 0:
            break
        section = section._replace(stop=_behind(reply, stop)[0])
    return section


def _line(reply: str, at: int) -> str:
    return f"line {reply.count(chr(10), 0, at) + 1}"
