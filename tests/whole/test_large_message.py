"""A message of many megabytes costs at most four times its size in memory, whatever is done with it."""

import subprocess
import sys
from pathlib import Path

import pytest

_SIZE = 60_000_000
_MOST = 4.0

_PROGRAM = """
import os, re, sys
home, action, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
import daypack
line = "The deploy of the zebra service on host-17 uses port 8080, see src/app/main.py line 42.\\n"
with daypack.open_session("large", home=home) as session:
    if action == "tool":
        session.append("user", "go")
        session.append("assistant", "", tool_calls=[{"id": "c1", "name": "read", "arguments": "{}"}])
        session.append("tool", line * (size // len(line)), tool_call_id="c1")
    elif action in ("user", "assistant"):
        session.append(action, line * (size // len(line)))
    elif action == "tail":
        assert len(session.tail(3)) == 3
    elif action == "search":
        assert session.search_history("zebra port")
    elif action == "recall":
        assert session.recall("msg-3").lines == size // len(line)
if action == "log":
    from daypack.cli.main import run
    sys.stdout = open(os.devnull, "w")
    assert run(["log", "large", "--home", home]) == 0
    sys.stdout = sys.__stdout__
# Not ru_maxrss: it also counts what the parent had in memory when it started this process.
print(int(re.search("VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024)
"""


def _peak(home: Path, action: str, size: int) -> int:
    """Return the most bytes that a process of its own had in memory while it did something."""
    command = [sys.executable, "-c", _PROGRAM, str(home), action, str(size)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


@pytest.mark.parametrize("actions", [("user",), ("assistant",), ("tool", "tail", "search", "recall", "log")])
def test_a_large_message_costs_at_most_four_times_its_size(actions: tuple[str, ...], tmp_path: Path):
    small, large = tmp_path / "small", tmp_path / "large"
    ratios = {action: (_peak(large, action, _SIZE) - _peak(small, action, 1000)) / _SIZE for action in actions}
    assert max(ratios.values()) <= _MOST, ratios
    assert max(ratios.values()) > 1, ratios  # the message was there
