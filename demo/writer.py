"""A process that continues the story and prints each acknowledged append, and a function that kills it with kill -9.

python -m demo.writer HOME FIRST LAST
"""

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

import daypack
from daypack.session import Session
from daypack.types.history import Message
from demo.agent import Agent
from demo.mcp_client import environment

NAME, AGENT = "move", "porter"
ROOT = Path(__file__).parents[1]


class Killed(NamedTuple):
    """A killed process and the messages it had acknowledged: seq -> digest."""

    pid: int
    signal: int
    acknowledged: dict[int, str]


def open_story(home: str) -> Session:
    """Open the session of the story."""
    return daypack.open_session(NAME, agent=AGENT, home=home, workspace="", model="gpt-4o", compaction_model="none")


def digest(message: Message) -> str:
    """Return the digest of a message's content."""
    content = (message.role, message.content, message.tool_calls, message.tool_call_id, message.client_key)
    return sha256(msgspec.json.encode(content)).hexdigest()


def write(home: str, first: int, last: int) -> None:
    """Play turns; print the seq and digest of each message once it is stored."""
    with open_story(home) as session:
        agent = Agent(session)
        agent.on_append = lambda message: print(message.seq, digest(message), flush=True)
        for number in range(first, last + 1):
            agent.play(number)


def kill_writer(home: str, first: int, last: int, after: int) -> Killed:
    """Start a writer, kill it when it has acknowledged `after` messages, and return all it had acknowledged."""
    command = [sys.executable, "-m", "demo.writer", home, str(first), str(last)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment()) as process:
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(after)]
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
    complete = [line.split() for line in lines if line.endswith(b"\n")]
    acknowledged = {int(seq): value.decode() for seq, value in complete}
    return Killed(process.pid, -process.returncode, acknowledged)


def reached(session: Session) -> int:
    """Return the number of the last turn that was started."""
    keys = [message.client_key or "" for message in session.messages()]
    return max((int(key.removeprefix("turn-")) for key in keys if key.startswith("turn-")), default=0)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
