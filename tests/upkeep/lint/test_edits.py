"""Edits take lines out and leave every other byte; a patch applies with the usual tools."""

import subprocess
from pathlib import Path

import pytest

from daypack.text.statements.passages import Document
from daypack.upkeep.lint.edits import diff, edited, flattened
from daypack.upkeep.lint.removals import Removal


def without(text: str, *spans: tuple[int, int]) -> str:
    return edited(Document("A.md", text), [Removal("A.md", *span, "x") for span in spans])


def test_a_section_that_is_emptied_loses_its_heading() -> None:
    assert without("# A\n\n## B\n\n- b\n\n## C\n\n- c\n", (5, 5)) == "# A\n\n## C\n\n- c\n"


def test_a_heading_that_was_empty_before_stays() -> None:
    assert without("# A\n\n## B\n\n## C\n\n- c\n- d\n", (7, 7)) == "# A\n\n## B\n\n## C\n\n- d\n"


def test_the_title_of_a_list_goes_with_its_last_item() -> None:
    assert without("One.\n\nThe list:\n- a\n- b\n\nTwo.\n", (4, 5)) == "One.\n\nTwo.\n"


def test_blank_lines_that_were_there_stay() -> None:
    assert without("a\n\n\n\nb\n\nc\n", (7, 7)) == "a\n\n\n\nb\n"


def test_nothing_to_remove_changes_nothing() -> None:
    for text in ("", "\n", "a", "a\n\n\n", "a\r\nb\r\n", "# A\n\n\n\n## B"):
        assert without(text) == text


def test_a_memory_becomes_flat() -> None:
    text = "# M\n\nThe server is\nin the cellar.\n\n- Likes:\n  - tea\n  - rye\n1. One.\n"
    assert flattened(text) == "# M\n\n- The server is in the cellar.\n\n- Likes:\n- tea\n- rye\n1. One.\n"


@pytest.mark.parametrize("tool", [["git", "apply"], ["patch", "-p1", "-s"]])
@pytest.mark.parametrize(
    ("before", "after"), [("a\nb\nc\n", "a\nc\n"), ("a\nb", "a\n"), ("a\nb\nc", "b\nc"), ("a\n", "")]
)
def test_a_patch_applies(tool: list[str], before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "A.md").write_text(before)
    subprocess.run(tool, cwd=tmp_path, input=diff("A.md", before, after).encode(), check=True)
    left = (tmp_path / "A.md").read_text() if (tmp_path / "A.md").exists() else ""
    assert left == after
