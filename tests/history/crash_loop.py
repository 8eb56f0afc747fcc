"""Kill writers at random moments, over and over, and count what was lost. Run as a program: it prints JSON.

python crash_loop.py HOME CYCLES WRITERS SEED
"""

import json
import os
import random
import select
import signal
import sys
import time

import daypack

SIZES = (10, 300, 3_000, 70_000)
WORDS = "a line that is long enough to be torn in the middle of a word; " * 1_200


def write_until_killed(home: str, pipe: int, writer: int) -> None:
    chance = random.Random(os.getpid() ^ time.time_ns())
    session = daypack.open_session("work", home=home)
    number = 0
    while True:
        number += 1
        text = f"{writer}-{os.getpid()}-{number}:" + WORDS[: chance.choice(SIZES)]
        if number % 2:
            message = session.append("user", text)
        else:
            message = session.append("assistant", text, tool_calls=[{"id": f"c{number}", "name": "run"}])
        os.write(pipe, f"{message.seq} {text.split(':')[0]}\n".encode())


def start(home: str, writer: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        write_until_killed(home, writing, writer)
    os.close(writing)
    return child, reading


def cycle(home: str, writers: int, chance: random.Random) -> dict[int, str]:
    """Start writers, kill them all, return what they had acknowledged."""
    children = [start(home, writer) for writer in range(writers)]
    if chance.random() < 0.8:  # the others are killed while they open the session
        select.select([reading for _, reading in children], [], [], 5)
    time.sleep(chance.uniform(0, 0.01))
    for child, _ in children:
        os.kill(child, signal.SIGKILL)
    acknowledged: dict[int, str] = {}
    for child, reading in children:
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().decode().split("\n")[:-1]
        for line in lines:
            seq, name = line.split(" ")
            assert int(seq) not in acknowledged, f"seq {seq} was assigned twice"
            acknowledged[int(seq)] = name
    return acknowledged


def main(home: str, cycles: int, writers: int, seed: int) -> None:
    daypack.open_session("work", home=home).close()
    # Loaded once, before the forks: a child then starts writing at once.
    daypack.open_session("warm", home=home, durability="os").append("user", "load the vocabulary")
    chance = random.Random(seed)
    acknowledged: dict[int, str] = {}
    for _ in range(cycles):
        for seq, name in cycle(home, writers, chance).items():
            assert seq not in acknowledged, f"seq {seq} was assigned twice"
            acknowledged[seq] = name
    session = daypack.open_session("work", home=home)
    session.append("user", "last")
    stored = {message.seq: message.text.split(":")[0] for message in session.messages()}
    numbers = [message.seq for message in session.messages()]
    calling = [message.id for message in session.messages() if message.tool_calls]
    events = [event.data["message"] for event in session.events() if event.type == "tool.called"]
    print(
        json.dumps(
            {
                "acknowledged": len(acknowledged),
                "stored": len(numbers),
                "lost": [seq for seq, name in acknowledged.items() if stored.get(seq) != name],
                "consecutive": numbers == list(range(1, len(numbers) + 1)),
                "called": len(calling),
                "events_once_and_in_order": events == calling,
                "damage": [str(damage) for damage in session.damage],
                "torn": sum(event.type == "log.torn" for event in session.events()),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
