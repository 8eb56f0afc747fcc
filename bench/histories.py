"""Histories of a given length: a daypack session, and a plain JSONL file with the same messages."""

import os
import random
from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

import orjson

import daypack
from bench.measure import say, settle
from daypack import Session
from daypack.history.draft import draft_from
from daypack.types.history import Message

LINE_BYTES = 300
_BATCH = 1000
_TEXTS = 997  # a prime: no batch begins with the same text as the one before
_STAMPED = {"seq": 1000000, "id": "msg-1000000", "ts": "2026-01-01T00:00:00.000Z", "role": "user"}
_PROSE = (
    "the test run failed again because parser returned None for line 42 in src/reader.py so I changed it to raise "
    "ValueError and now 17 of 18 cases pass while one still waits on http://localhost:8080/health with a timeout of "
    "30 seconds please look at commit 9f2c1e7b and tell me whether we should retry or roll back before release 2.4.1"
)


def _texts() -> list[str]:
    """Return texts of the kind agents write, each just long enough for a line of `LINE_BYTES`."""
    words = _PROSE.split()
    chance = random.Random(40)
    length = LINE_BYTES - len(_line("")) - 1
    return [" ".join(chance.choices(words, k=length))[:length] for _ in range(_TEXTS)]


def append_recorded(session: Session, messages: Iterable[dict[str, Any]]) -> tuple[Message, ...]:
    """Append messages of a recorded transcript as an import does: also results whose call is not in it."""
    return session.history.append([draft_from(message) for message in messages])


def _record(text: str) -> dict[str, Any]:
    """Return what the plain file stores: the keys a stored message of ours has, at their usual width."""
    return {**_STAMPED, "content": text, "crc": "00000000"}


def _line(text: str) -> bytes:
    return orjson.dumps(_record(text))


TEXTS = _texts()
RECORDS = [_record(text) for text in TEXTS]


class Histories:
    """Makes each history once, when it is first asked for."""

    def __init__(self, folder: str, sizes: tuple[int, ...], *, quick: bool = False) -> None:
        self.folder = folder
        self.home = os.path.join(folder, "home")
        self.sizes = sizes
        self.quick = quick
        self._made: set[str] = set()

    def ours(self, size: int) -> str:
        """Return the name of a session with so many messages."""
        name = f"session-{size}"
        if name not in self._made:
            say(f"writing a session of {size:,} messages")
            texts = cycle(TEXTS)
            with self.open(name, durability="os") as session:
                for start in range(0, size, _BATCH):
                    count = min(_BATCH, size - start)
                    session.append_many([{"role": "user", "content": text} for text in islice(texts, count)])
            settle()
            self._made.add(name)
        return name

    def open(self, name: str, **settings: Any) -> Session:  # noqa: ANN401 — passed on as they are
        """Open one of our sessions, with the default settings unless others are given."""
        return daypack.open_session(name, home=self.home, **settings)

    def plain(self, size: int) -> str:
        """Return the path of a plain file with so many lines."""
        path = os.path.join(self.folder, f"plain-{size}.jsonl")
        if path not in self._made:
            lines = cycle(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in RECORDS)
            with open(path, "wb") as file:
                for start in range(0, size, _BATCH):
                    file.writelines(islice(lines, min(_BATCH, size - start)))
            settle()
            self._made.add(path)
        return path
