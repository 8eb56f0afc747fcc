"""Writers are killed at random moments and run side by side: every acknowledged line is there afterwards."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from campaigns import Campaign

import daypack

HERE = Path(__file__).parent


def run(program: str, *args: object) -> dict[str, Any]:
    command = [sys.executable, str(HERE / program), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.requirement("S4-SR1", "S4-F2", "G6", "G7")
@pytest.mark.parametrize("writers", [1, 4])
def test_kills_lose_no_acknowledged_line_and_give_no_number_twice(home: str, writers: int, campaign: Campaign) -> None:
    cycles = campaign.size("kills", 500)
    result = run("crash_loop.py", home, cycles, writers, campaign.seed)
    assert result["acknowledged"] > cycles * 0.4
    assert result["lost"] == []
    assert result["consecutive"]
    assert result["damage"] == []
    assert result["called"] > 0
    assert result["events_once_and_in_order"]


@pytest.mark.requirement("G7")
def test_eight_processes_append_and_every_message_is_there_in_order(home: str, campaign: Campaign) -> None:
    each = campaign.size("concurrent writes", 500)
    code = (
        "import sys, daypack\n"
        "session = daypack.open_session('work', home=sys.argv[1], durability='os')\n"
        "for number in range(int(sys.argv[3])):\n"
        "    session.append('user', f'{sys.argv[2]} {number} ' + 'y' * 200)\n"
    )
    daypack.open_session("work", home=home).close()
    command = [sys.executable, "-c", code, home]
    children = [subprocess.Popen([*command, str(writer), str(each)]) for writer in range(8)]
    assert [child.wait(timeout=300) for child in children] == [0] * 8
    with daypack.open_session("work", home=home) as session:
        messages = list(session.messages())
    assert [message.seq for message in messages] == list(range(1, 8 * each + 1))
    by_writer: dict[str, list[int]] = {}
    for message in messages:
        writer, number, filler = message.text.split(" ")
        assert filler == "y" * 200
        by_writer.setdefault(writer, []).append(int(number))
    assert by_writer == {str(writer): list(range(each)) for writer in range(8)}
