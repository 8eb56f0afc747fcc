"""Long examples become one line, or are only pointed at."""

import pytest

from daypack.text.statements.passages import Document
from daypack.upkeep.lint.examples import find_examples


def short(body: str, language: str = "") -> list[str | None]:
    return [one.short for one in find_examples(Document("TOOLS.md", f"# T\n\n```{language}\n{body}\n```\n"))]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ('{\n  "a": 1,\n  "b": [2, 3]\n}', '`{"a": 1, "b": [2, 3]}`'),
        ('read_file(\n    path="a.csv",\n    start=1,\n)', '`read_file(path="a.csv", start=1)`'),
        ("ls(1)\n# Output:\n# a\n# b", "`ls(1)`"),
        ("$ make test\n$ make check", "`make test`"),
    ],
)
def test_a_call_fits_in_a_line(body: str, line: str) -> None:
    assert short(body) == [line]


def test_a_command_that_goes_on_is_one_command() -> None:
    assert short("probe \\\n  --pin 17 \\\n  --count 3", "bash") == ["`probe --pin 17 --count 3`"]


@pytest.mark.parametrize("body", ["def f():\n    return 1", "x = 1\ny = 2", "for a in b:\n    c(a)", '{"a":\n oops}'])
def test_a_program_is_pointed_at_and_left(body: str) -> None:
    assert short(body) == [None]


def test_an_example_of_one_line_is_fine() -> None:
    assert short('read_file(path="a.csv")') == []
    assert find_examples(Document("T", "no fence\n```\nnever closed\nat all\n")) == ()
