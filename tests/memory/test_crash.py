"""Writers are killed at random moments: every acknowledged entry is there, and the search index catches up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("cycles", "writers"), [(25, 1), (15, 3)])
def test_kills_lose_no_acknowledged_entry_and_search_catches_up(home: str, cycles: int, writers: int) -> None:
    program = Path(__file__).parent / "crash_loop.py"
    command = [sys.executable, str(program), home, str(cycles), str(writers)]
    environment = os.environ | {"DAYPACK_EMBEDDING_MODEL": "none"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.pop("acknowledged") > cycles
    assert result == {"lost": [], "consecutive": True, "counted": True, "barrier": "consistent", "found": True}
