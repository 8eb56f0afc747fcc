"""A process that appends one message per byte it receives, so that a reader always finds a grown log."""

import os
import subprocess
import sys
from itertools import cycle
from typing import TYPE_CHECKING

from bench.histories import TEXTS, Histories

if TYPE_CHECKING:
    from typing import Self


class Appender:
    """The reader's end: `step` returns when the other process has appended."""

    def __init__(self, histories: Histories, name: str) -> None:
        command = [sys.executable, "-m", "bench.appender", histories.folder, name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def step(self) -> None:
        """Let the other process append one message."""
        ask, answer = self._process.stdin, self._process.stdout
        if not ask or not answer or not ask.write(b"+") or not answer.read(1):
            raise RuntimeError("the appending process has ended")

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


def serve(folder: str, name: str) -> None:
    """Append for each byte on standard input, and say so with a byte on standard output."""
    texts = cycle(TEXTS)
    with Histories(folder, ()).open(name, durability="os") as session:
        while os.read(0, 1):
            session.append("user", next(texts))
            os.write(1, b".")


if __name__ == "__main__":
    serve(*sys.argv[1:])
