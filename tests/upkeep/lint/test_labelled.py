"""Lint is measured on eight workspaces of different domains; the bounds hold for those it was never tuned on too."""

import pytest
from upkeep.lint.labels import Score, confused, read_half, score_duplicates, score_lines


@pytest.mark.requirement("S1-P1", "S1-P1.9", "T11")
@pytest.mark.parametrize("half", ["development", "held_out"])
def test_most_repetitions_are_found_and_little_else(half: str) -> None:
    total = Score()
    for workspace in read_half(half):
        report = workspace.report()
        total = total.plus(score_duplicates(workspace, report))
        assert confused(workspace, report) == []
    assert total.right + total.missed >= 40
    assert total.precision >= 0.95
    assert total.recall >= 0.9


@pytest.mark.requirement("S1-D4", "S1-D5.1", "S1-D5.2")
@pytest.mark.parametrize("half", ["development", "held_out"])
@pytest.mark.parametrize("label", ["s", "h"])
def test_most_stale_and_session_lines_are_found_and_little_else(half: str, label: str) -> None:
    total = Score()
    for workspace in read_half(half):
        total = total.plus(score_lines(workspace, workspace.report(), label))
    assert total.right + total.missed >= 7
    assert total.precision >= 0.85
    assert total.recall >= 0.85
