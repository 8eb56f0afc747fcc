"""Writers are killed at random moments and run side by side: every acknowledged line is there afterwards."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import daypack

HERE = Path(__file__).parent


def run(program: str, *args: object) -> dict[str, Any]:
    command = [sys.executable, str(HERE / program), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.requirement("S4-SR1", "G6", "G7")
@pytest.mark.parametrize("writers", [1, 4])
def test_500_kills_lose_no_acknowledged_line_and_give_no_number_twice(home: str, writers: int) -> None:
    result = run("crash_loop.py", home, 500, writers)
    assert result["acknowledged"] > 200
    assert result["lost"] == []
    assert result["consecutive"]
    assert result["damage"] == []


@pytest.mark.requirement("G7")
def test_eight_processes_append_500_messages_each_and_all_are_there_in_order(home: str) -> None:
    code = (
        "import sys, daypack\n"
        "session = daypack.open_session('work', home=sys.argv[1], durability='os')\n"
        "for number in range(500):\n"
        "    session.append('user', f'{sys.argv[2]} {number} ' + 'y' * 200)\n"
    )
    daypack.open_session("work", home=home).close()
    command = [sys.executable, "-c", code, home]
    children = [subprocess.Popen([*command, str(writer)]) for writer in range(8)]
    assert [child.wait(timeout=300) for child in children] == [0] * 8
    with daypack.open_session("work", home=home) as session:
        messages = list(session.messages())
    assert [message.seq for message in messages] == list(range(1, 4001))
    by_writer: dict[str, list[int]] = {}
    for message in messages:
        writer, number, filler = message.text.split(" ")
        assert filler == "y" * 200
        by_writer.setdefault(writer, []).append(int(number))
    assert by_writer == {str(writer): list(range(500)) for writer in range(8)}
