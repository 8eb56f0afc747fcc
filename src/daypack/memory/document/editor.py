"""Applies findings to a context document: each is added, replaces a line, ticks a task, or is dropped."""

import re
from collections.abc import Iterator
from typing import Literal

from daypack.memory.document.compare import completes, read_line, repeats, supersedes
from daypack.memory.document.findings import Finding
from daypack.memory.document.markdown import Heading, Section, Sections, bullet_of, is_ticked
from daypack.memory.document.patterns import TENTATIVE

_BOX = re.compile(r"\[ \]")
_TICK = re.compile(r"\[[xX]\]")
_DETAIL = re.compile(r"[(:,–—]")
_CONFIRMED = "**confirmed**"


class Editor:
    """The sections of a document while findings are applied; other lines stay as they are."""

    def __init__(self, sections: Sections) -> None:
        self._headings = [section.heading for section in sections]
        self._names: list[Heading | Literal[""]] = [section.name for section in sections]
        self._lines = [list(section.lines) for section in sections]
        self.changed = False

    @property
    def sections(self) -> Sections:
        """The sections with all findings so far."""
        parts = zip(self._headings, self._names, self._lines, strict=True)
        return tuple(Section(heading, name, tuple(lines)) for heading, name, lines in parts)

    def apply(self, finding: Finding) -> None:
        """Replace the line that a finding updates, append it to its section, or drop it as a repetition."""
        if finding.heading == "Participants":
            self._apply_person(finding)
        elif finding.heading == "Open tasks":
            self._apply_task(finding)
        else:
            self._apply_statement(finding)

    def _apply_person(self, finding: Finding) -> None:
        name = _DETAIL.split(finding.text)[0].strip()
        for number, at, line in self._under("Participants"):
            known = read_line(line).text
            if _DETAIL.split(known)[0].strip().casefold() == name.casefold():
                if known == name and finding.text != name:
                    self._write(number, at, f"{bullet_of(line)}{finding.text}")
                return
        self._add(finding.heading, finding.text)

    def _apply_task(self, finding: Finding) -> None:
        for number, at, line in self._under("Open tasks"):
            if finding.done == "stated":
                if not is_ticked(line) and completes(finding.text, line):
                    self._tick(number, at, line)
            elif repeats(finding, line):
                if finding.done and not is_ticked(line):
                    self._tick(number, at, line)
                elif is_ticked(line) and not finding.done:
                    self._write(number, at, _TICK.sub("[ ]", line, count=1))
                return
        if not finding.done:
            self._add(finding.heading, f"[ ] {finding.text}")

    def _apply_statement(self, finding: Finding) -> None:
        lines = list(self._statements())
        if any(repeats(finding, line) for _, _, line in lines):
            return
        scored = [(supersedes(finding, line), number, at, line) for number, at, line in lines]
        best = max((score for score, *_ in scored), default=0.0)
        candidates = [candidate for candidate in scored if candidate[0] == best] if best else []
        # If several lines match equally well, none is replaced: the finding is added.
        if len(candidates) != 1:
            self._add(finding.heading, _as_line(finding, finding.heading))
            return
        _, number, at, line = candidates[0]
        new, old = read_line(finding.text), read_line(line)
        if new.numbers and new.numbers <= old.numbers and new.negated == old.negated:
            if TENTATIVE.search(line) and not TENTATIVE.search(finding.text):
                self._write(number, at, TENTATIVE.sub(_CONFIRMED, line, count=1))
            return
        self._write(number, at, f"{bullet_of(line)}{_as_line(finding, self._names[number] or finding.heading)}")

    def _statements(self) -> Iterator[tuple[int, int, str]]:
        """Yield the lines that an update may replace: facts, dates, decisions, and bullets under custom headings."""
        for number, name in enumerate(self._names):
            if name in ("Participants", "Open tasks"):
                continue
            for at, line in enumerate(self._lines[number]):
                if bullet_of(line):
                    yield number, at, line

    def _under(self, heading: Heading) -> Iterator[tuple[int, int, str]]:
        for number, name in enumerate(self._names):
            if name == heading:
                yield from [(number, at, line) for at, line in enumerate(self._lines[number]) if line.strip()]

    def _tick(self, number: int, at: int, line: str) -> None:
        boxed = _BOX.sub("[x]", line, count=1)
        if boxed == line:
            bullet = bullet_of(line)
            boxed = f"{bullet or '- '}[x] {line[len(bullet) :].lstrip()}"
        self._write(number, at, boxed)

    def _write(self, number: int, at: int, line: str) -> None:
        if self._lines[number][at] != line:
            self._lines[number][at] = line
            self.changed = True

    def _add(self, heading: Heading, text: str) -> None:
        """Append a line to a section; a missing section is added at the end of the document."""
        self.changed = True
        if heading not in self._names:
            last = self._lines[-1]
            while last and not last[-1].strip():
                last.pop()
            last.append("")
            self._headings.append(f"## {heading}")
            self._names.append(heading)
            self._lines.append([""])
        lines = self._lines[len(self._names) - 1 - self._names[::-1].index(heading)]
        end = len(lines)
        while end and not lines[end - 1].strip():
            end -= 1
        bullet = next((mark for line in reversed(lines) if (mark := bullet_of(line)) and not mark[0].isspace()), "- ")
        lines.insert(end, f"{'- ' if bullet.strip()[:1].isdigit() else bullet}{text}")
        if end == len(lines) - 1:
            lines.append("")


def _as_line(finding: Finding, heading: str) -> str:
    dated = heading == "Timeline" and finding.date and not finding.text.startswith(finding.date)
    return f"{finding.date} – {finding.text}" if dated else finding.text
