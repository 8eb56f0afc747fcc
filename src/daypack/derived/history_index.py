"""The search index of one session's messages: context/search.sqlite, derived from history and brought up to date."""

import os
from collections.abc import Callable
from typing import NamedTuple

from daypack.derived.raw_history import OWN_TOOLS, is_recalled
from daypack.files import atomic
from daypack.history.session import History
from daypack.search.indexing import Doc
from daypack.search.lexical import Hit, Lexical
from daypack.types.history import Message

_BATCH = 2000


class Unindexed(NamedTuple):
    """Messages that are not in the index, from `start` to before `stop`."""

    start: int
    stop: int

    def before(self, seq: int) -> "Unindexed":
        """Return the part of it before a message."""
        return Unindexed(self.start, min(self.stop, seq))


class HistoryIndex:
    """The index file of a session, opened when it is first used."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lexical: Lexical | None = None

    @property
    def exists(self) -> bool:
        """True if there is an index, however old."""
        return self._lexical is not None or os.path.exists(self._history.layout.derived("search"))

    def catch_up(self, end: int, in_time: Callable[[], bool] = lambda: True) -> list[Unindexed]:
        """Index the messages before `end` while there is time; return those that are not indexed."""
        index = self._open()
        start = index.newest + 1
        while start < end:
            if not in_time():
                return [Unindexed(start, end)]
            stop = min(start + _BATCH, end)
            newest = index.add(_doc(message) for message in self._history.messages.records(start, stop - 1))
            # If another process reset the index it starts again; a range of damaged lines is skipped.
            start = newest + 1 if newest < start - 1 else stop
        return []

    def search(self, query: str, *, limit: int, below: int) -> list[Hit]:
        """Return the best messages before `below` for a query, best first."""
        return self._open().search(query, limit=limit, below=below)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._lexical:
            self._lexical.close()
            self._lexical = None

    def _open(self) -> Lexical:
        if self._lexical is None:
            atomic.make_folders(self._history.layout.context, durable=False)
            self._lexical = Lexical(self._history.layout.derived("search"))
        return self._lexical


def _doc(message: Message) -> Doc:
    # Recalled text is indexed where it was first said.
    text = "" if is_recalled(message) else searchable(message)
    return Doc(message.seq, text, message.name or "", message.role, message.ts)


def searchable(message: Message) -> str:
    """Return the text of a message that is indexed: its content, and the names and arguments of its calls."""
    if not message.tool_calls:
        return message.text
    # A call that searches for something is not a place where it was said.
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls if call.name not in OWN_TOOLS)
    return "\n".join([message.text, *calls]).strip()
