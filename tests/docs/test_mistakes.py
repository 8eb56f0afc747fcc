"""Every row of docs/mistakes.md is executed: what it says is typed, and what it says is printed."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "mistakes.md"
ROW = re.compile(r"^\| (\d+) \| (`.+`) \| (`.+`) \|$")


class Row(NamedTuple):
    """One row of a table: what was typed, and the exact message."""

    number: int
    typed: str
    message: str


class Section(NamedTuple):
    """The code that runs before each row of a section, and its rows."""

    setup: str
    rows: list[Row]


def plain(cell: str) -> str:
    """Return the text of a cell that is code."""
    fence = "``" if cell.startswith("``") else "`"
    assert cell.endswith(fence), cell
    return cell.removeprefix(fence).removesuffix(fence).strip().replace("\\|", "|")


def section(title: str) -> Section:
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    setup = re.search(r"```\w+\n(.*?)```", text, re.DOTALL)
    assert setup, title
    found = [match for line in text.splitlines() if (match := ROW.match(line))]
    assert len(found) == sum(line.startswith("| ") and line[2].isdigit() for line in text.splitlines())
    return Section(setup[1], [Row(int(match[1]), plain(match[2]), plain(match[3])) for match in found])


PYTHON, COMMANDS = section("In Python"), section("On the command line")


def test_there_are_forty_rows_in_order_and_no_two_alike() -> None:
    rows = [*PYTHON.rows, *COMMANDS.rows]
    assert len(PYTHON.rows) >= 25
    assert len(COMMANDS.rows) >= 15
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert len({row.typed for row in rows}) == len(rows)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it, which the page calls ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DAYPACK_HOME", str(tmp_path / ".daypack"))
    monkeypatch.setenv("DAYPACK_UID", "1000")
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore")  # a coroutine that was never awaited is one of the mistakes
@pytest.mark.parametrize("row", PYTHON.rows, ids=lambda row: str(row.number))
def test_python(row: Row, root: Path) -> None:
    names: dict[str, Any] = {}
    exec(PYTHON.setup, names)
    with pytest.raises(Exception) as caught:
        exec(row.typed, names)
    said = f"{type(caught.value).__name__}: {caught.value}"
    assert said.replace(str(root), "~") == row.message
    names["session"].close()
    del caught
    names.clear()
    gc.collect()  # here, where the warning about a coroutine that was never awaited is ignored


@pytest.mark.parametrize("row", COMMANDS.rows, ids=lambda row: str(row.number))
def test_command(row: Row, root: Path) -> None:
    folder = os.path.dirname(sys.executable)
    environ = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

    def run(script: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-c", script]
        return subprocess.run(
            command, check=False, env=environ, cwd=root, text=True, capture_output=True, stdin=subprocess.DEVNULL
        )

    prepared = run(f"set -e\n{COMMANDS.setup}")
    assert prepared.returncode == 0, prepared.stderr
    done = run(row.typed)
    assert done.returncode in (1, 2, 3)
    lines = done.stderr.replace(str(root), "~").splitlines()
    assert " ".join(line.strip() for line in lines) == row.message
