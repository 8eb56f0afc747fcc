"""The demo runs as a subprocess, prints its figures and leaves no files."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_demo_completes_and_leaves_no_files(tmp_path: Path, encoding: str) -> None:
    settings = {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": encoding, "DAYPACK_HOME": str(tmp_path / "not here")}
    settings |= {"COLUMNS": "80"}
    command = [sys.executable, "-m", "demo", "--fast"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    output = done.stdout.decode(encoding)
    assert "60 of 60 requests verbatim" in output
    assert "no problems found" in output
    turns = [int(number) for number in re.findall(r"^    turn (\d+) ", output, re.MULTILINE)]
    assert turns == sorted(turns) != []
    assert "text of 5 of 5 kept" in output
    assert all(len(line) <= 80 for line in output.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_the_output_is_coloured_and_fits_its_width(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    settings = {"TMPDIR": str(tmp_path), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", "COLUMNS": "60"}
    outside = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    command = [sys.executable, "-m", "demo", "--fast"]
    with subprocess.Popen(command, cwd=ROOT, env=outside | settings, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        output = "".join(read_all(ours))
        assert process.stderr
        assert (process.wait(), process.stderr.read()) == (0, b"")
    assert "\x1b[48;5;" in output  # two colours in one cell
    lines = re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines()
    assert "\x1b" not in "".join(lines)
    assert [line for line in lines if len(line) > 60] == []


def read_all(terminal: int) -> Iterator[str]:
    """Yield what is written to a terminal; on Linux a read fails when the other side is closed."""
    with suppress(OSError), open(terminal, encoding="utf-8", newline="") as stream:
        while text := stream.readline():
            yield text
