"""The filled template: what a small model made of it, read as far as it can be read.

Other headings, other bullets, JSON, loops. Each thing that is left out is a loss with a reason.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS, one_line
from daypack.text.clean import find_talk
from daypack.text.sentences import sentences
from daypack.text.words import content_words
from daypack.types.compaction import SECTIONS, Loss, LossReason, Section
from daypack.types.records import ContextDoc

_NAMES_TEXT = """
task: task, current task, main task, user task, the task, goal, objective, focus, current focus, aim, 任务, aufgabe
decisions: decision, decisions, decisions made, key decisions, decided, choices, agreements, 决定, 决策, entscheidungen
facts: fact, facts, key facts, important facts, findings, key findings, discoveries, discovered, key points, facts found
facts: facts discovered, information, key information, 事实, fakten
pending: pending, pending items, pending tasks, pending work, todo, todos, to do, to-do, to-dos, to do list, todo list
pending: next steps, next step, next actions, open issues, open items, open tasks, open work, open questions, remaining
pending: remaining work, remaining tasks, action items, outstanding, still to do, 待办, 待处理, 待办事项, offen
errors: error, errors, errors and resolutions, error and resolution, errors encountered, errors found, issues, failures
errors: problems, bugs, known issues, what went wrong, went wrong, 错误, 问题, fehler
"""
_NAMES: dict[str, Section] = {
    name.strip(): cast(Section, line.partition(":")[0])
    for line in _NAMES_TEXT.strip().splitlines()
    for name in line.partition(":")[2].split(",")
}
_HEADING = re.compile(
    r"\s{0,8}(?P<marks>#{1,6}+\s*+)?(?P<bold>\*\*|__)?\s*+(?:\d{1,2}[.)]\s++)?(?P<name>[^\W\d_][^\n:：*#]{0,40}+)"
    r"(?:\*\*|__)?\s*+(?P<colon>[:：]?)\s*+(?:\*\*|__)?\s*+#*+\s*+(?P<rest>.*)"
)
_BULLET = re.compile(
    r"(?P<indent>\s*+)(?:(?:[-*+•‣◦–—]|\(?\d{1,3}+[.)]|[a-z][.)])(?:\s++|\Z))?+(?P<box>\[[ xX✓]?\](?=\s|\Z))?+\s*+"
)
_BOLD = re.compile(r"(?<![\w*/])(\*\*|__)(?=\S)([^*\n]{1,300}?)(?<=\S)\1(?![\w*/])")
_NOTHING = re.compile(
    r"\W*|(?:none|n/?a|nil|null|nothing|not applicable|empty|unknown|tbd|无|没有|keine?)\b.{0,24}"
    r"|(?:no|there (?:are|were|is|was) no) (?:\w+ ){0,2}(?:tasks?|decisions?|facts?|pending|items?|errors?|issues?)\b"
    r".{0,40}",
    re.IGNORECASE,
)
_NONE = re.compile(r"\b(?:none|nothing|n/a)\b", re.I)
_BRACKETED = re.compile(r"\[[^\]]*\][.:]?|<[^>]*>[.:]?|\{[^}]*\}[.:]?|\[[^\]]*|\(?(?:\.{3}|…)\)?")
_ECHOED_TEXT = """
what is the user doing|what was decided|what was discovered|what's still to do|what is still to do|what went wrong
what went wrong, and what resolved it|one sentence: what the user is working on right now|important fact discovered
error and resolution|decision 1|decision 2|decision 3|fact 1|fact 2|fact 3|error 1|error 2|bullet 1|bullet 2
"""
_ECHOED = frozenset(part for line in _ECHOED_TEXT.split("\n") for part in line.split("|") if part)
_ENDS = tuple(".!?。！？…)]\"'`”」")
_TEXT_KEYS = ("text", "fact", "decision", "task", "description", "item", "content", "summary", "title")
_MAX_LOSSES = 60
_MAX_LOSS_CHARS = 160
_LOOP = 4  # so many bullets that differ in their numbers alone are a loop


def read_filled(text: str) -> tuple[ContextDoc, tuple[Loss, ...]]:
    """Read what a model made of the template, as far as it can be read, and say what was left out."""
    taken = _Taken()
    given = _read_json(text)
    lines = _json_lines(given) if given is not None else _markdown_lines(text, taken)
    ends: list[bool] = []
    for section, line in lines:
        if line:
            taken.offer(section, line)
            ends.append(line.endswith(_ENDS))
    if given is None and len(ends) > 2 and all(ends[:-1]) and not ends[-1]:
        taken.drop_last("unfinished", "the text breaks off")
    taken.collapse_loops()
    doc = taken.doc()
    if not taken.losses and (not ends or (doc == ContextDoc() and not _NONE.search(text))):
        taken.lose(text.strip(), "unreadable", "nothing was filled in")
    return doc, taken.all_losses()


class _Taken:
    """The bullets and losses read so far."""

    def __init__(self) -> None:
        self.texts: dict[Section, list[str]] = {section: [] for section in SECTIONS}
        self.losses: list[Loss] = []
        self._more = 0
        self._seen: set[str] = set()
        self._last: Section | None = None

    def lose(self, what: str, reason: LossReason, detail: str | None = None) -> None:
        self._record(Loss(one_line(what)[:_MAX_LOSS_CHARS], reason, detail))

    def _record(self, loss: Loss) -> None:
        if len(self.losses) < _MAX_LOSSES:
            self.losses.append(loss)
        else:
            self._more += 1

    def offer(self, section: Section, line: str) -> None:
        """Take a bullet, sentence by sentence, unless there is a reason against it."""
        self._last = None
        text = _BOLD.sub(r"\2", line).strip()
        if _NOTHING.fullmatch(text):
            return
        if _BRACKETED.fullmatch(text) or text.casefold().rstrip(".?!:") in _ECHOED:
            self.lose(text, "placeholder", "echoes the template")
            return
        for sentence in sentences(text):
            # Headings and lists are not the only places for it: JSON has been through no cleaning by lines.
            if talk := find_talk(sentence.text):
                self._record(talk)
            else:
                self._take(section, one_line(sentence.text))

    def _take(self, section: Section, text: str) -> None:
        key = " ".join(content_words(text)) or text.casefold()
        most = 1 if section == "task" else MAX_BULLETS
        words = text.split()
        if len(words) > 12 and len(set(words)) * 3 < len(words):
            self.lose(text, "repeated", "repeats the same words")
        elif key in self._seen:
            self.lose(text, "repeated")
        elif len(text) > MAX_BULLET_CHARS:
            self.lose(text, "over_limit", f"more than {MAX_BULLET_CHARS} characters")
        elif len(self.texts[section]) >= most * (_LOOP if section != "task" else 1):
            self.lose(text, "over_limit", "more than one sentence" if most == 1 else f"more than {most} bullets")
        else:
            self._seen.add(key)
            self.texts[section].append(text)
            self._last = section

    def drop_last(self, reason: LossReason, detail: str) -> None:
        if self._last and self.texts[self._last]:
            self.lose(self.texts[self._last].pop(), reason, detail)

    def collapse_loops(self) -> None:
        """Drop bullets that differ from each other in their numbers alone, when they are many; then hold the limit."""
        for section in SECTIONS[1:]:
            shapes = [_DIGITS.sub("#", text).casefold() for text in self.texts[section]]
            kept: list[str] = []
            for at, text in enumerate(self.texts[section]):
                if shapes.count(shapes[at]) >= _LOOP and shapes.index(shapes[at]) < at:
                    self.lose(text, "repeated", "differs only in its numbers")
                elif len(kept) >= MAX_BULLETS:
                    self.lose(text, "over_limit", f"more than {MAX_BULLETS} bullets")
                else:
                    kept.append(text)
            self.texts[section] = kept

    def doc(self) -> ContextDoc:
        return ContextDoc("".join(self.texts["task"]), *(tuple(self.texts[section]) for section in SECTIONS[1:]))

    def all_losses(self) -> tuple[Loss, ...]:
        more = (Loss(f"{self._more} more", "over_limit", "not listed"),) if self._more else ()
        return (*self.losses, *more)


_DIGITS = re.compile(r"\d+")


def _markdown_lines(text: str, taken: _Taken) -> Iterator[tuple[Section, str]]:
    """Yield the bullets of a text with headings, each with its section; a bullet without a heading is a loss."""
    section: Section | None = None
    outside: list[str] = []
    pending: tuple[Section, str] | None = None
    listed = blank = False
    for line in text.splitlines():
        found = _read_heading(line)
        bullet = _BULLET.match(line)
        body = line[bullet.end() :].strip() if bullet else line.strip()
        is_bullet = bullet is not None and bullet.end() > len(bullet["indent"])
        if found or not body or is_bullet or blank or not pending:
            if pending:
                yield pending
            pending = None
        if found:
            section, rest = found
            listed = blank = False
            if section:
                yield section, rest.strip()
        elif not body:
            blank = True
        elif section is None or (blank and listed and not is_bullet and section != "task"):
            outside.append(body)
        elif bullet and bullet["box"] and bullet["box"] in "[x][X][✓]":
            taken.lose(body, "superseded", "ticked off")
            blank, listed = False, True
        else:
            pending = (section, f"{pending[1]} {body}" if pending else body)
            blank, listed = False, listed or is_bullet
    if pending:
        yield pending
    if outside:
        taken.lose(outside[0], "unreadable", f"outside the template, lines: {len(outside)}")


def _read_heading(line: str) -> tuple[Section | None, str] | None:
    """Return the section a line opens and what it says of it, None as section for another heading."""
    if len(line) > 2 * MAX_BULLET_CHARS or not (match := _HEADING.match(line)):
        return None
    name = match["name"].strip(" \t*_#.").casefold()
    section = _NAMES.get(name)
    marked = bool(match["marks"] or match["bold"])
    if section and (marked or match["colon"] or not match["rest"]):
        return section, match["rest"] if match["colon"] or not match["marks"] else ""
    return (None, "") if match["marks"] else None


def _read_json(text: str) -> dict[str, Any] | None:
    """Return the object a model wrote instead of the template, with the names of sections as keys."""
    start, stop = text.find("{"), text.rfind("}")
    if start < 0 or not text.lstrip(" \n`json[").startswith("{"):
        return None
    try:
        value: Any = msgspec.json.decode(text[start : stop + 1].encode("utf-8", "replace"))
    except msgspec.DecodeError:
        return None
    if not isinstance(value, dict):
        return None
    given = cast(dict[str, Any], value)
    if len(given) == 1 and isinstance(inner := next(iter(given.values())), dict):
        given = cast(dict[str, Any], inner)  # {"context": {…}}
    named = {_NAMES.get(key.replace("_", " ").strip().casefold(), ""): item for key, item in given.items()}
    return named if all(section in named for section in SECTIONS) else None


def _json_lines(given: dict[str, Any]) -> Iterator[tuple[Section, str]]:
    for section in SECTIONS:
        value = given[section]
        for item in cast(Sequence[Any], value) if isinstance(value, list) else (value,):
            yield section, _json_text(item)


def _json_text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, dict):
        given = cast(dict[str, Any], value)
        error, resolution = given.get("error"), given.get("resolution")
        if isinstance(error, str):
            return f"{error} -> {resolution}" if isinstance(resolution, str) and resolution else error
        value = next((given[key] for key in _TEXT_KEYS if isinstance(given.get(key), str)), "")
    return one_line(value) if isinstance(value, str) else ""
