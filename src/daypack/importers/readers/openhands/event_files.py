"""The events of a conversation as lines: a folder with one numbered file for each.

    {"offset":35,"file":[66306,1181],"tail":[412,"sha256:…"]}

A mark names the number of events that were read, and the file and the last bytes of the newest of them: a later import
reads only the files after it. A number that is missing has not been written yet, and what follows it is left for the
next import, as OpenHands itself does.
"""

import os
import re
from collections.abc import Iterator

import msgspec

from daypack.importers.lines import Line, Mark, unreadable
from daypack.plain_files import open_plain
from daypack.types.digest import digest_bytes

_NAME = re.compile(r"event-(?P<number>\d{5,18})-(?P<id>[0-9a-fA-F-]{8,})\.json|(?P<early>\d{1,18})\.json")
_TAIL_BYTES = 4096


class EventFiles:
    """The events in a folder, in the order of their numbers."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def read(self) -> Iterator[Line]:
        """Yield all events."""
        return self._read(0)

    def read_after(self, mark: Mark) -> Iterator[Line]:
        """Yield the events after a mark that matches."""
        return self._read(mark.offset)

    def matches(self, mark: Mark) -> bool:
        """Return True if the last event before the mark is the same file with the same end."""
        self._list()
        return self._mark(mark.offset) == mark

    def mark(self, line: Line) -> Mark | None:
        """Return the mark after an event."""
        return self._mark(line.end) if line.complete else None

    def line_of(self, event: str) -> int:
        """Return the line of an event; 0 if there is none."""
        return self._numbers.get(event, -1) + 1

    def _read(self, start: int) -> Iterator[Line]:
        self._list()
        number = start
        while number in self._names:
            data, _ = self._load(number)
            raw = _on_one_line(data)
            is_last = number + 1 not in self._names
            number += 1
            yield Line(raw or data.replace(b"\n", b" ").replace(b"\r", b" "), raw is not None or not is_last, number)

    def _mark(self, count: int) -> Mark | None:
        if count - 1 not in self._names:
            return None
        try:
            data, file = self._load(count - 1)
        except OSError:
            return None
        tail = data[-_TAIL_BYTES:]
        return Mark(count, file, (len(tail), digest_bytes(tail)))

    def _list(self) -> None:
        try:
            found = [match for name in sorted(os.listdir(self._folder)) if (match := _NAME.fullmatch(name))]
        except OSError as error:
            problem = f"its events cannot be listed: {error.strerror}"
            raise unreadable(self._folder, problem, "give a readable folder") from error
        self._names = {int(match["number"] or match["early"]): match.string for match in found}
        self._numbers = {match["id"]: int(match["number"]) for match in found if match["id"]}

    def _load(self, number: int) -> tuple[bytes, tuple[int, int]]:
        path = os.path.join(self._folder, self._names[number])
        try:
            with open_plain(path) as file:
                status = os.fstat(file.fileno())
                return file.read(), (status.st_dev, status.st_ino)
        except OSError as error:
            raise unreadable(path, f"cannot be read: {error.strerror}", "give a readable file") from error


def _on_one_line(data: bytes) -> bytes | None:
    """Return a JSON document on one line; None if it is not whole."""
    if b"\n" not in data and b"\r" not in data:
        try:
            msgspec.json.decode(data, type=msgspec.Raw)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        return data
    try:
        return msgspec.json.encode(msgspec.json.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
