"""Writers are killed at random moments: every acknowledged entry is there, and the search index catches up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import Campaign


@pytest.mark.parametrize("writers", [1, 3])
def test_kills_lose_no_acknowledged_entry_and_search_catches_up(home: str, writers: int, campaign: Campaign) -> None:
    cycles = campaign.size("kills", 100)
    program = Path(__file__).parent / "crash_loop.py"
    command = [sys.executable, str(program), home, str(cycles), str(writers), str(campaign.seed)]
    environment = os.environ | {"DAYPACK_EMBEDDING_MODEL": "none"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.pop("acknowledged") > cycles * 0.4
    assert result == {"lost": [], "consecutive": True, "counted": True, "barrier": "consistent", "found": True}
