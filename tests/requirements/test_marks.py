"""The scanner finds every mark in the tests, and names the place of one it cannot read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from requirements.manifest import ManifestError, marked

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write one test file of a small project and return its tests folder."""

    def write_test_file(source: str) -> Path:
        path = tmp_path / "tests" / "text" / "test_trim.py"
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
        return tmp_path / "tests"

    return write_test_file


def test_the_scan_finds_marks_on_functions(write: Write):
    tests = write("""
import pytest
from pytest import mark

@pytest.mark.requirement("X1", "X2")
@pytest.mark.parametrize("n", [1])
def test_one(n): ...

@mark.requirement("X2")
async def test_two(): ...

def test_three(): ...
""")
    one, two = "tests/text/test_trim.py::test_one", "tests/text/test_trim.py::test_two"
    assert marked(tests) == {"X1": [one], "X2": [one, two]}


def test_the_scan_gives_a_class_mark_to_the_tests_of_the_class(write: Write):
    tests = write("""
@pytest.mark.requirement("X1")
class TestTrim:
    pytestmark = pytest.mark.requirement("X2")

    @pytest.mark.requirement("X3")
    def test_one(self): ...

    def aside(self): ...

    class TestInner:
        def test_two(self): ...

def test_outside(): ...
""")
    one = "tests/text/test_trim.py::TestTrim::test_one"
    two = "tests/text/test_trim.py::TestTrim::TestInner::test_two"
    assert marked(tests) == {"X1": [two, one], "X2": [two, one], "X3": [one]}


@pytest.mark.parametrize(
    "mark",
    [
        'pytestmark = pytest.mark.requirement("X1")',
        'pytestmark = [pytest.mark.slow, pytest.mark.requirement("X1")]',
        'pytestmark: list[pytest.MarkDecorator] = [pytest.mark.requirement("X1")]',
    ],
)
def test_the_scan_gives_a_module_mark_to_every_test_of_the_module(write: Write, mark: str):
    tests = write(f"if True:\n    def test_one(): ...\n\nclass TestTwo:\n    def test_two(self): ...\n\n{mark}\n")
    name = "tests/text/test_trim.py::"
    assert marked(tests) == {"X1": [f"{name}TestTwo::test_two", f"{name}test_one"]}


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("@pytest.mark.requirement(ID)\ndef test_a(): ...", 1),
        ("import a\n@pytest.mark.requirement(f'X{1}')\ndef test_a(): ...", 2),
        ("@pytest.mark.requirement(\n    'X1',\n    *IDS,\n)\ndef test_a(): ...", 3),
        ("@pytest.mark.requirement(1)\ndef test_a(): ...", 1),
        ("@pytest.mark.requirement()\ndef test_a(): ...", 1),
        ("@pytest.mark.requirement\ndef test_a(): ...", 1),
        ("@pytest.mark.requirement('X1', id='X2')\ndef test_a(): ...", 1),
        ("proves = pytest.mark.requirement('X1')\n@proves\ndef test_a(): ...", 1),
        ("def test_a():\n    pytest.param(1, marks=pytest.mark.requirement('X1'))", 2),
        ("pytestmark = [*MARKS, *[pytest.mark.requirement('X1')]]\ndef test_a(): ...", 1),
    ],
)
def test_the_scan_names_file_and_line_of_a_mark_it_cannot_read(write: Write, source: str, line: int):
    with pytest.raises(ManifestError, match=rf"^tests/text/test_trim\.py:{line}: "):
        marked(write(source))


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.requirement('X1')\ndef trimmed(): ...",
        "@pytest.mark.requirement('X1')\nclass TestNothing: ...",
        "@pytest.mark.requirement('X1')\nclass Trim:\n    def test_a(self): ...",
        "pytestmark = pytest.mark.requirement('X1')",
    ],
)
def test_the_scan_refuses_a_mark_that_no_test_is_under(write: Write, source: str):
    with pytest.raises(ManifestError, match=r"^tests/text/test_trim\.py:\d+: "):
        marked(write(source))
