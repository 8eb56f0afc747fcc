"""The section of a reply that is no text: where it begins and ends, and what JSON object is in it.

The split is at the first separator whose whole remainder is one JSON object. If there is none, the last section counts
that can be mended (a fence, tags, comments, a few words before the JSON, words after it) or is broken; else all of the
reply is text.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from daypack.protocol.noise import NEARBY, closes_only, is_example, is_snapshot, torn_snapshot
from daypack.protocol.rules import Violation
from daypack.protocol.verdict import Verdict, scan, skip_space

SEPARATOR = "<<<CONTEXT>>>"
_LENGTH = len(SEPARATOR)
_MOST_TRIED = 16  # separators from the front and as many from the back
_MOST_OPENED = 8  # things between a separator and the JSON

# What some models put between the separator and the JSON.
_OPENING = re.compile(
    r"(?P<fence>`{3,}|~{3,})[\w+.-]*[ \t]*+(?:\r?\n|(?=\{)|\Z)|<(?P<tag>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>"
    r"|(?P<comment>//[^\n]*(?:\n|\Z)|/\*.*?\*/|<!--.*?-->)"
    r"|(?P<odd>[*_`]{1,3}(?=\s)|:(?=\s*[{`~<])|json(?=\s*\{)|[\s\ufeff\u200b-\u200d\u2060]++)",
    re.DOTALL,
)
_WRAPPER = re.compile(r"(?P<fence>`{3,}|~{3,})|<(?P<tag>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>")
_QUOTED = 100  # characters of what is cut
_CLOSING_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*+(?=[\r\n]|\Z)")
_FENCE_LINE = re.compile(r"\n[ \t]*+(?:`{3,}|~{3,})[ \t]*+(?=[\r\n]|\Z)")
_ANY_SPACE = re.compile(r"\s*+")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # an unclosed string extends to the end
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n\r]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_STRING_OR_COMMA = re.compile(rf"{_STRING}|,(?=\s*+[}}\]])", re.DOTALL)  # one before a closing bracket
_STRING_OR_BRACKET = re.compile(rf"{_STRING}|[][{{}}]", re.DOTALL)
# How a snapshot begins, even one that is no JSON; words in braces do not.
_LIKE_JSON = re.compile(r"""\{\s*(?:["'}]|//|/\*|[A-Za-z_]\w*\s*:)|\[\s*["{[]""")
_GOES_ON = re.compile(r"""[\s}\]]*+,\s*+["'{[]""")  # a bracket too many in the middle: it is JSON still
_LOOSE = re.compile(r"\s*+[}\]][\s}\]]*+")
_FENCE = "```"
_NO_JSON = ("S0-R4", "S0-R5")
_NOT_ALONE = "what follows the separator is not JSON alone"
_NO_OBJECT = "what follows the separator is JSON, but no object"


class Section(NamedTuple):
    """What is cut from a reply: from `start` to `stop`, and the object in it; None: it cannot be used."""

    start: int
    stop: int
    value: dict[str, Any] | None
    violations: tuple[Violation, ...] = ()


def find_section(reply: str, *, cut_off: bool = False) -> Section | None:
    """Return the section of a reply, None when all of it is text.

    A reply that was `cut_off` has no text in which a separator begins at its end.
    """
    at = reply.find(SEPARATOR)
    section = _Finder(reply, at).find() if at >= 0 else None
    if section is None and cut_off and (count := unfinished_separator(reply)):
        faults = tuple(Violation(rule, "the reply ends in the separator") for rule in _NO_JSON)
        return Section(len(reply) - count, len(reply), None, faults)
    return section


def unfinished_separator(text: str) -> int:
    """Return how many of the last characters could be the beginning of a separator."""
    at = text.find(SEPARATOR[0], max(0, len(text) - _LENGTH + 1))
    while at >= 0:
        if SEPARATOR.startswith(text[at:]):
            return len(text) - at
        at = text.find(SEPARATOR[0], at + 1)
    return 0


class _Opened(NamedTuple):
    """What is between the separator and the JSON: fences and the names of tags, in order."""

    at: int
    wrappers: tuple[str, ...] = ()
    comment: bool = False
    odd: bool = False  # characters that are no white space to JSON
    noise: str = ""  # words that are cut


class _Kindly(NamedTuple):
    """What was read of an object: whether comments were in it, and why it is no JSON as it is."""

    verdict: Verdict
    comments: bool = False
    problem: str = ""


class _Finder:
    """Looks for the section of one reply; what was read at a place is not read again."""

    def __init__(self, reply: str, first: int) -> None:
        self._reply = reply
        self._first = first
        self._scanned: dict[int, Verdict] = {}
        self._kindly: dict[int, _Kindly] = {}
        self._opened: dict[int, _Opened] = {}

    def find(self) -> Section | None:
        starts = list(self._separators())
        if len(starts) > 2 * _MOST_TRIED:
            starts = starts[:_MOST_TRIED] + starts[-_MOST_TRIED:]
        for start in starts:
            if section := self._whole(start):
                return section
        found = self._last(starts)
        return self._absorb(found) if found else None

    def _separators(self) -> Iterator[int]:
        at = self._first
        while at >= 0:
            yield at
            at = self._reply.find(SEPARATOR, at + _LENGTH)

    def _last(self, starts: list[int]) -> Section | None:
        """Return the last section; the sections before it may be quotations."""
        mended: Section | None = None
        torn: Section | None = None
        for start in starts:
            if mended and start < mended.stop:
                continue  # in a string of its JSON
            if section := self._mended(start):
                mended, torn = section, None
            elif broken := self._broken(start):
                torn = self._extend(broken)
        if torn or mended:
            return torn or mended
        found = (self._unusable(start) for start in reversed(starts))
        return next((section for section in found if section), None)

    def _unusable(self, start: int) -> Section | None:
        return self._empty(start) or self._no_object(start) or self._torn(start, self._open(start))

    def _scan(self, at: int) -> Verdict:
        if at not in self._scanned:
            self._scanned[at] = scan(self._reply, at)
        return self._scanned[at]

    def _whole(self, start: int) -> Section | None:
        """A separator and one JSON object, as the protocol has it."""
        reply = self._reply
        at = skip_space(reply, start + _LENGTH)
        if not reply.startswith("{", at):
            return None
        verdict = self._scan(at)
        if verdict.end < 0 or skip_space(reply, verdict.end) < len(reply):
            return None
        return Section(start, len(reply), _object(verdict), tuple(self._objections(verdict, at)))

    def _objections(self, verdict: Verdict, at: int) -> Iterator[Violation]:
        if verdict.refused:
            yield Violation("X23", f"the JSON is refused: {verdict.refused}", self._line(at))
        if verdict.mended:
            yield Violation("S0-T13", "a string holds half a character; U+FFFD stands for it", self._line(at))

    def _open(self, start: int) -> _Opened:
        """Skip the things that are known to come between a separator and the JSON."""
        if start not in self._opened:
            self._opened[start] = self._skip_openings(start + _LENGTH)
        return self._opened[start]

    def _skip_openings(self, at: int) -> _Opened:
        wrappers: list[str] = []
        comment = odd = False
        for _ in range(2 * _MOST_OPENED):
            found = _OPENING.match(self._reply, at)
            if not found:
                break
            if found["fence"] or found["tag"]:
                wrappers.append(_FENCE if found["fence"] else found["tag"])
            comment = comment or bool(found["comment"])
            odd = odd or comment or bool(found["odd"] and found["odd"].strip(" \t\r\n"))
            at = found.end()
        return _Opened(at, tuple(wrappers), comment, odd)

    def _mended(self, start: int) -> Section | None:
        """A JSON object with something around it, or with comments in it; of several, the one that is a snapshot."""
        opened = self._open(start)
        direct = self._mend(start, opened)
        if direct is None and self._no_object(start):
            return None  # an array of snapshots, or a text that quotes one: it is refused as it is
        after = self._scan_kindly(opened.at).verdict.end if direct else 0
        if (near := self._near(start, after)) and (section := self._mend(start, near)):
            return section
        return self._extend(direct, after) if direct else None

    def _extend(self, section: Section, after: int = 0) -> Section:
        """Include broken snapshots that begin near the same separator, after another object."""
        start, at = section.start, after or section.stop
        while torn := self._broken(start, at):
            section = section._replace(stop=torn.stop, violations=section.violations + torn.violations)
            at = torn.stop
        return section

    def _near(self, start: int, after: int = 0) -> _Opened | None:
        """Find the last snapshot that begins within a few characters of a separator, whatever those are."""
        reply, found, kindly = self._reply, -1, True
        at, limit = max(after, start + _LENGTH), self._limit(start, after)
        while (at := reply.find("{", at, limit)) >= 0:
            verdict = self._scan(at)
            if verdict.problem and kindly and torn_snapshot(reply, at):
                kindly = False  # once: it reads all that follows
                verdict = self._scan_kindly(at).verdict
            if is_snapshot(verdict.value):
                found = at
            at = verdict.end if verdict.end >= 0 else at + 1
        return self._behind_noise(start, found) if found >= 0 else None

    def _broken(self, start: int, after: int = 0) -> Section | None:
        """Find the first section that is no JSON, or not closed: at a separator or, for a snapshot, near it."""
        for opened in self._beginnings(start, after):
            if section := (None if after else self._no_object(start)) or self._torn(start, opened):
                return section
        return None

    def _beginnings(self, start: int, after: int) -> Iterator[_Opened]:
        reply, opened = self._reply, self._open(start)
        direct = not after and _LIKE_JSON.match(reply, opened.at)
        if direct:
            yield opened
        at, limit = max(after, start + _LENGTH), self._limit(start, after)
        while (at := reply.find("{", at, limit)) >= 0:
            if torn_snapshot(reply, at) and not (direct and at == opened.at):
                yield self._behind_noise(start, at)
            at += 1

    def _limit(self, start: int, after: int) -> int:
        """Return where the JSON of a separator has begun at the latest: before the next separator."""
        reply, at = self._reply, start + _LENGTH
        near = NEARBY.match(reply, at)
        other = reply.find(SEPARATOR, max(at, after))
        limit = max(near.end() if near else at, self._open(start).at) + 1
        return limit if other < 0 else min(limit, other)

    def _behind_noise(self, start: int, at: int) -> _Opened:
        """Say what is between a separator and an object that begins at `at`."""
        opened = self._open(start)
        if opened.at == at:
            return opened
        found = [match["tag"] or _FENCE for match in _WRAPPER.finditer(self._reply, start + _LENGTH, at)]
        return _Opened(at, tuple(found), odd=True, noise=self._reply[start + _LENGTH : at])

    def _mend(self, start: int, opened: _Opened) -> Section | None:
        reply = self._reply
        if not reply.startswith("{", opened.at):
            return None
        verdict, comments, problem = self._scan_kindly(opened.at)
        reason = f"the JSON is mended: {problem}" if problem else _NOT_ALONE
        opened = opened._replace(comment=opened.comment or comments)
        end = verdict.end
        if end < 0 or _GOES_ON.match(reply, end):
            return None
        faults = [*self._around(opened, reason), *self._objections(verdict, opened.at)]
        if loose := _LOOSE.match(reply, end):
            faults.append(Violation("S0-R6", "brackets too many follow the JSON", self._line(end)))
            end = loose.end()
        stop, behind = self._after(self._close(end, opened))
        return Section(start, stop, _object(verdict), (*faults, *behind))

    def _scan_kindly(self, at: int) -> _Kindly:
        """Read an object that may have comments, or commas too many."""
        if at not in self._kindly:
            verdict = self._scan(at)
            self._kindly[at] = self._scan_plain(at) if verdict.problem else _Kindly(verdict)
        return self._kindly[at]

    def _scan_plain(self, at: int) -> _Kindly:
        # Blanks of the same length: every place stays where it is.
        given, problem = self._reply[at:], self._scan(at).problem
        plain = _STRING_OR_COMMENT.sub(_blank, given)
        verdict = scan(_STRING_OR_COMMA.sub(_blank, plain), 0)
        end = max(0, verdict.end)
        comments = given[:end] != plain[:end]
        return _Kindly(verdict._replace(end=verdict.end + at if end else -1), comments, problem)

    def _close(self, at: int, opened: _Opened) -> int:
        """Take in the fences and tags that close what was opened before the JSON, and no others."""
        reply = self._reply
        for wrapper in reversed(opened.wrappers[-_MOST_OPENED:]):
            behind = self._skip(at)
            closing = f"</{wrapper}>"
            if wrapper == _FENCE and (found := _CLOSING_FENCE.match(reply, behind)):
                at = found.end()
            elif wrapper != _FENCE and reply.startswith(closing, behind):
                at = behind + len(closing)
            else:
                break
        return at

    def _after(self, stop: int) -> tuple[int, tuple[Violation, ...]]:
        """Return where the section ends if only space follows `stop`; report words that follow."""
        reply, rest = self._reply, self._skip(stop)
        where = self._line(rest)
        if rest < len(reply) and closes_only(reply, rest):
            return len(reply), (Violation("S0-R6", "characters that are not JSON follow it", where),)
        if rest == len(reply):
            odd = skip_space(reply, stop) < rest
            return rest, (Violation("S0-R6", "white space that JSON does not know follows it", where),) if odd else ()
        if reply.startswith(SEPARATOR, rest):
            return stop, ()  # another section, reported on its own
        problem = "words follow the JSON; they are taken as text"
        return stop, (Violation("S0-R2", problem, where), Violation("S0-R6", problem, where))

    def _skip(self, at: int) -> int:
        found = _ANY_SPACE.match(self._reply, at)
        return found.end() if found else at

    def _around(self, opened: _Opened, reason: str = _NOT_ALONE) -> Iterator[Violation]:
        where = self._line(opened.at)
        around: list[tuple[str, tuple[str, ...]]] = []
        if _FENCE in opened.wrappers:
            around.append(("a code fence surrounds the JSON", ("S0-F2", "S0-R6")))
        if any(wrapper != _FENCE for wrapper in opened.wrappers):
            around.append(("tags surround the JSON", ("S0-F3", "S0-R6")))
        if opened.odd:
            words = " ".join(opened.noise.split())[:_QUOTED]
            cut = f", and are cut: {words}" if words else ""
            around.append((f"characters that are not JSON precede it{cut}", ("S0-R6",)))
        if opened.comment:
            around.append(("there are comments", ("S0-F4",)))
        for problem, rules in around:
            yield from (Violation(rule, problem, where) for rule in rules)
        problem = around[0][0] if around else reason
        yield from (Violation(rule, problem, where) for rule in _NO_JSON)

    def _empty(self, start: int) -> Section | None:
        """A separator followed by nothing but space or a fence: the reply was cut off there."""
        opened = self._open(start)
        if opened.at < len(self._reply) or opened.comment or set(opened.wrappers) - {_FENCE}:
            return None
        problem = "nothing follows the separator"
        faults = (Violation(rule, problem, self._line(start)) for rule in _NO_JSON)
        return Section(start, len(self._reply), None, tuple(faults))

    def _no_object(self, start: int) -> Section | None:
        """A separator and JSON that is not an object, followed by nothing."""
        reply, opened = self._reply, self._open(start)
        verdict = self._scan(opened.at)
        if verdict.end < 0 or reply.startswith("{", opened.at):
            return None
        stop, behind = self._after(self._close(verdict.end, opened))
        if stop < len(reply):
            return None
        faults = [Violation(rule, _NO_OBJECT, self._line(start)) for rule in ("X23", "S0-F1")]
        faults += self._objections(verdict, opened.at)
        alone = not behind and opened == _Opened(skip_space(reply, start + _LENGTH))
        return Section(start, stop, None, (*faults, *(() if alone else self._around(opened)), *behind))

    def _torn(self, start: int, opened: _Opened) -> Section | None:
        """An object or array that is no JSON, or not closed."""
        reply = self._reply
        if not reply.startswith(("{", "["), opened.at):
            return None
        verdict, where = self._scan(opened.at), self._line(start)
        faults = list(_refusals(verdict, where))
        faults += [violation for violation in self._around(opened) if violation.rule not in _NO_JSON]
        end = _extent(reply, opened.at)
        noise = opened.at != self._open(start).at
        if end is None:
            if noise and is_example(reply[opened.at :], closed=False):
                return None
            if not verdict.problem:
                faults += [Violation(rule, "the JSON is not closed", where) for rule in _NO_JSON]
            fence = _FENCE_LINE.search(reply, opened.at) if _FENCE in opened.wrappers else None
            stop, behind = self._after(fence.end()) if fence else (len(reply), ())
            return Section(start, stop, None, (*faults, *behind))
        if _GOES_ON.match(reply, end):
            return Section(start, len(reply), None, tuple(faults))
        loose = _LOOSE.match(reply, end)
        stop, behind = self._after(self._close(loose.end() if loose else end, opened))
        if behind and not _LIKE_JSON.match(reply, opened.at) and not torn_snapshot(reply, opened.at):
            return None  # words in braces, quoted in a sentence
        if behind and noise and is_example(reply[opened.at : end], closed=True):
            return None
        return Section(start, stop, None, (*faults, *behind))

    def _absorb(self, section: Section) -> Section:
        """Include adjacent separators before, and adjacent sections and objects after: none of them is text."""
        reply, (start, stop, *_) = self._reply, section
        for _ in range(_MOST_TRIED):
            at = self._skip(stop)
            end = self._following(at)
            if end <= at:
                break
            stop = self._after(end)[0]
        while reply.endswith(SEPARATOR, 0, start):
            start -= _LENGTH
        return section._replace(start=start, stop=stop)

    def _following(self, at: int) -> int:
        """Return where another section or object ends that begins at `at`; 0: there is none."""
        reply = self._reply
        if reply.startswith(SEPARATOR, at):
            following = self._mended(at) or self._unusable(at)
            return following.stop if following else 0
        if reply.startswith("{", at):
            closed = self._scan(at).end
            return closed if closed >= 0 else len(reply) if _is_cut_off(reply, at) else 0
        return 0

    def _line(self, at: int) -> str:
        return f"line {self._reply.count(chr(10), 0, at) + 1}"


def _object(verdict: Verdict) -> dict[str, Any] | None:
    value: Any = verdict.value
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _blank(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else " " * len(found[0])


def _refusals(verdict: Verdict, where: str) -> Iterator[Violation]:
    if verdict.problem or not verdict.refused:
        problem = f"what follows the separator is no JSON object: {verdict.problem}" if verdict.problem else _NO_OBJECT
        yield from (Violation(rule, problem, where) for rule in _NO_JSON)
    if verdict.refused:
        yield Violation("X23", f"the JSON is refused: {verdict.refused}", where)


def _is_cut_off(reply: str, at: int) -> bool:
    return reply.startswith('{"', at) and _extent(reply, at) is None


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
