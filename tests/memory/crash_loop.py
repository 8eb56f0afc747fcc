"""Kill those who add and index, over and over, and count what was lost. Run as a program: it prints JSON.

python crash_loop.py HOME CYCLES WRITERS SEED
"""

import json
import os
import random
import select
import signal
import sys
import time

from daypack.memory.store.port import split_damaged
from daypack.memory.tools import Memories, open_memory

SIZES = (10, 300, 3_000, 8_000)
WORDS = "a sentence that is long enough to fill a page of the file; " * 200


def write_until_killed(memories: Memories, memory_id: str, pipe: int, writer: int) -> None:
    chance = random.Random(os.getpid() ^ time.time_ns())
    number = 0
    while True:
        number += 1
        name = f"w{writer}p{os.getpid()}n{number}"
        text = f"{name} " + WORDS[: chance.choice(SIZES)]
        added = memories.add_entry(memory_id, text, "short", about={"tags": [name]}, client_key=name)
        os.write(pipe, f"{added.seq} {added.entry_id} {name}\n".encode())
        if number % 5 == 0:
            memories.await_consistency(memory_id)


def start(memories: Memories, memory_id: str, writer: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        write_until_killed(memories, memory_id, writing, writer)
    os.close(writing)
    return child, reading


def cycle(memories: Memories, memory_id: str, writers: int, chance: random.Random) -> dict[int, tuple[str, str]]:
    """Start writers, kill them all, return what they had acknowledged."""
    children = [start(memories, memory_id, writer) for writer in range(writers)]
    if chance.random() < 0.8:  # the others are killed while they open the store
        select.select([reading for _, reading in children], [], [], 10)
    time.sleep(chance.uniform(0, 0.08))
    for child, _ in children:
        os.kill(child, signal.SIGKILL)
    acknowledged: dict[int, tuple[str, str]] = {}
    for child, reading in children:
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            lines = pipe.read().decode().split("\n")[:-1]
        for line in lines:
            seq, entry_id, name = line.split(" ")
            assert int(seq) not in acknowledged, f"seq {seq} was assigned twice"
            acknowledged[int(seq)] = entry_id, name
    return acknowledged


def main(home: str, cycles: int, writers: int, seed: int) -> None:
    memories = open_memory(home=home)
    memory_id = memories.create_memory("crash").memory_id
    chance = random.Random(seed)
    acknowledged: dict[int, tuple[str, str]] = {}
    for _ in range(cycles):
        for seq, told in cycle(memories, memory_id, writers, chance).items():
            assert seq not in acknowledged, f"seq {seq} was assigned twice"
            acknowledged[seq] = told
    barrier = memories.await_consistency(memory_id, timeout_ms=60_000)
    entries, _ = split_damaged(memories.backend.store.after("local", memory_id, 0, 1 << 40))
    stored = {one.seq: one for one in entries}
    seen = {seq: (one.entry_id, one.raw_entry.split(" ")[0]) for seq, one in stored.items()}
    last = acknowledged[max(acknowledged)]
    found = memories.search_memories(memory_id, last[1], top_k=5).entries
    stats = memories.get_memory(memory_id).stats
    print(
        json.dumps(
            {
                "acknowledged": len(acknowledged),
                "lost": [seq for seq, told in acknowledged.items() if seen.get(seq) != told],
                "consecutive": sorted(stored) == list(range(1, len(stored) + 1)),
                "counted": stats.entries == len(stored),
                "barrier": barrier.status,
                "found": last[0] in [hit.entry_id for hit in found],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
