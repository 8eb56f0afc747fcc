"""Lint is measured on single pairs too: paraphrases, statements that only look alike, and lines of sessions."""

from pathlib import Path

import pytest

from daypack.text.statements.narrative import session_reason
from daypack.text.statements.passages import Document
from daypack.text.tokens import counter_for
from daypack.upkeep.lint.report import Report, examine


def read_groups() -> dict[str, list[str]]:
    """Return the lines of each group: pairs that are the same and different, lines of a session and lasting ones."""
    text = (Path(__file__).parent / "labelled" / "pairs.txt").read_text()
    groups = (group.splitlines() for group in text.split("=== ")[1:])
    return {name: lines for name, *lines in groups}


GROUPS = read_groups()


def lint(pair: str) -> Report:
    one, two = pair.split(" | ")
    rules = Document("AGENTS.md", f"# A\n\n- Be kind to visitors.\n- {one}\n- Paint the fence green.\n")
    memory = Document("MEMORY.md", f"# M\n\n- Tea is at four.\n- {two}\n- The bus stops at the mill.\n", "memory")
    return examine([rules, memory], counter_for(None))


@pytest.mark.requirement("S1-P1", "T11")
def test_most_paraphrases_are_found() -> None:
    found = [pair for pair in GROUPS["same"] if lint(pair).duplicates]
    assert len(GROUPS["same"]) == 30
    assert len(found) >= 28  # 24 before opposites and word families were compared


@pytest.mark.requirement("S1-P1", "S1-L1.3")
@pytest.mark.parametrize("pair", GROUPS["different"])
def test_statements_that_only_look_alike_are_kept(pair: str) -> None:
    report = lint(pair)
    assert (report.duplicates, report.removals) == ((), ())


@pytest.mark.requirement("S1-P1")
def test_a_workspace_of_all_pairs_repeats_the_paraphrases_only() -> None:
    pairs = [pair.split(" | ") for pair in GROUPS["same"] + GROUPS["different"]]
    rules, memory = ("".join(f"- {pair[at]}\n\n" for pair in pairs) for at in (0, 1))
    report = examine([Document("AGENTS.md", rules), Document("MEMORY.md", memory, "memory")], counter_for(None))
    rows = [[place.spans for place in row.places] for row in report.duplicates]
    wrong = [row for row in rows if len(row) != 2 or row[0] != row[1] or row[0][0][0] > 2 * len(GROUPS["same"])]
    assert wrong == []
    assert len(rows) >= 28


@pytest.mark.requirement("S1-D4")
@pytest.mark.parametrize("line", GROUPS["session"])
def test_what_happened_on_a_day_belongs_to_a_session(line: str) -> None:
    assert session_reason(f"- {line}")


@pytest.mark.requirement("S1-D4")
@pytest.mark.parametrize("line", GROUPS["lasting"])
def test_what_holds_on_a_day_of_the_week_lasts(line: str) -> None:
    assert session_reason(f"- {line}") is None
