"""Labelled workspaces: what a person would call a repetition, a near miss, out of date, or session history.

    - Run the tests before every commit. {d1}      with every other d1: one rule, said twice
    - Retry a failed webhook three times. {n1}     with every other n1: alike, and not the same
    {x1} a reference and the section it points to; {p} repeats the provenance block, {i} the identity
    {s} about something that no longer exists; {h} belongs to one session

A file holds one workspace. Lines without a label are to be left alone.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from daypack.history.layout import Layout
from daypack.text.statements.passages import Document, Role
from daypack.text.tokens import counter_for
from daypack.upkeep.lint.duplicates import Row
from daypack.upkeep.lint.prompt_texts import BLOCKS, injected
from daypack.upkeep.lint.report import Report, examine
from daypack.upkeep.lint.stale_references import Declared, read_declared

LABELLED = Path(__file__).parent / "labelled"
_LABELS = re.compile(r"\s*\{([a-z]\d*)\}(?=\s*\|?$)")
_ROLES: dict[str, Role] = {"MEMORY.md": "memory", "CONTEXT.md": "state"}

Place = tuple[str, int]


class Workspace(NamedTuple):
    """The texts of a workspace without labels, and the lines of each label."""

    name: str
    texts: dict[str, str]
    declared: Declared
    labels: dict[str, set[Place]]

    def documents(self) -> list[Document]:
        """Return all texts of the prompt."""
        own = [Document(name, text, _ROLES.get(name, "instruction")) for name, text in self.texts.items()]
        return own + injected("/w", Layout("/w", "/w/a/b/c/d/e"), None, {})

    def report(self) -> Report:
        """Lint the workspace."""
        return examine(self.documents(), counter_for(None), declared=self.declared, unused=BLOCKS)


class Score(NamedTuple):
    """Found and true, false, and missed findings."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """The share of findings that are right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of labels that are found."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    def plus(self, other: "Score") -> "Score":
        """Return both together."""
        return Score(*map(sum, zip(self, other, strict=True)))


def read(path: Path) -> Workspace:
    """Parse a labelled workspace."""
    texts: dict[str, list[str]] = {}
    labels: dict[str, set[Place]] = defaultdict(set)
    name = ""
    for line in path.read_text().split("\n"):
        if line.startswith("=== "):
            name = line[4:]
            texts[name] = []
            continue
        texts[name].append(_LABELS.sub("", line))
        for label in _LABELS.findall(line):
            labels[label].add((name, len(texts[name])))
    whole = {name: "\n".join(rows).rstrip("\n") + "\n" for name, rows in texts.items()}
    return Workspace(path.stem, whole, read_declared(whole.pop("declares.txt")), labels)


def read_half(name: str) -> list[Workspace]:
    """Return the workspaces of one half: development or held_out."""
    return [read(path) for path in sorted((LABELLED / name).glob("*.txt"))]


def score_duplicates(workspace: Workspace, report: Report) -> Score:
    """Count the labels whose lines are in one row, and the rows without any label."""
    rows = [set(_places(row)) for row in report.duplicates if row.kind != "stale"]
    groups = [places for label, places in workspace.labels.items() if label[0] in "dx"]
    found = sum(any(_is_found(places, row) for row in rows) for places in groups)
    wrong = sum(not any(_is_found(places, row) for places in groups) for row in rows)
    for label, source in (("p", "provenance"), ("i", "identity")):
        places = workspace.labels.get(label, set())
        hits = [row for row in rows if row & places and any(name == source for name, _ in row)]
        groups += [places] if places else []
        found += bool(hits)
        wrong -= sum(not any(_is_found(group, row) for group in groups[:-1]) for row in hits)
    return Score(found, wrong, len(groups) - found)


def _is_found(places: set[Place], row: set[Place]) -> bool:
    return len({name for name, _ in places & row}) > 1


def confused(workspace: Workspace, report: Report) -> list[str]:
    """Return the near misses that share a row."""
    rows = [set(_places(row)) for row in report.duplicates]
    return [
        label for label, places in workspace.labels.items() if label[0] == "n" and any(places <= row for row in rows)
    ]


def score_lines(workspace: Workspace, report: Report, label: str) -> Score:
    """Compare the lines of stale references (s) or session history (h) with the labels."""
    entries = report.stale if label == "s" else report.history
    found = {(entry.source, number) for entry in entries for number in range(entry.first, entry.last + 1)}
    found = {(name, number) for name, number in found if workspace.texts[name].split("\n")[number - 1].strip()}
    places = workspace.labels.get(label, set())
    return Score(len(found & places), len(found - places), len(places - found))


def _places(row: Row) -> Iterator[Place]:
    for place in row.places:
        for first, last in place.spans:
            yield from ((place.source, number) for number in range(first, last + 1))


def main() -> None:
    """Print precision and recall of both halves."""
    import sys

    for half in sys.argv[1:] or ["development", "held_out"]:
        total = {key: Score() for key in ("duplicates", "s", "h")}
        near: list[str] = []
        for workspace in read_half(half):
            report = workspace.report()
            total["duplicates"] = total["duplicates"].plus(score_duplicates(workspace, report))
            near += [f"{workspace.name}:{label}" for label in confused(workspace, report)]
            for label in "sh":
                total[label] = total[label].plus(score_lines(workspace, report, label))
        for key, score in total.items():
            print(f"{half:12} {key:10} precision {score.precision:.2f} recall {score.recall:.2f} {tuple(score)}")
        print(f"{half:12} near misses confused: {near}")


if __name__ == "__main__":
    main()
