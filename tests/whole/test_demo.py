"""The demo as people run it: in a process of its own, with nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_demo_tells_its_story_and_leaves_nothing_behind(tmp_path: Path, encoding: str) -> None:
    settings = {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": encoding, "DAYPACK_HOME": str(tmp_path / "not here")}
    settings |= {"COLUMNS": "80"}
    command = [sys.executable, "-m", "demo", "--fast"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    told = done.stdout.decode(encoding)
    assert "60 of 60 requests word for word" in told
    assert "nothing wrong" in told
    assert all(len(line) <= 80 for line in told.splitlines())
    assert list(tmp_path.iterdir()) == []
