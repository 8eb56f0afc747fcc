"""Capture of a coding agent's session: which of its words go into the project's memory.

The user's own words, each once, and the agent's last word before the user speaks again. Not what the agent says between
two tool calls, nor acknowledgements and commands of one or two words ("commit"), nor what hosts and daypack put into a
message: a memory that fills with those finds less.
"""

import re
from contextlib import suppress

from daypack.derived.compaction.utterances import spoken_words, user_words
from daypack.errors import MemoryMissing
from daypack.history.layout import Home
from daypack.history.logs.lines import ROLE_SHIFT
from daypack.memory.keeper import is_informative
from daypack.memory.limits import FLUSH_EVERY
from daypack.memory.project.memory import USER
from daypack.session import Session
from daypack.text.literals import literals
from daypack.types.history import Message
from daypack.types.kinds import ROLES

_COMMAND_WORDS = 2
_LOOKED_BACK = 4_000  # messages, for words that were captured before
_WORD = re.compile(r"[^\W_][\w'’.-]*")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_USER = ROLES.index("user") + 1


def capture_session(session: Session, *, end: bool = False) -> int:
    """Add what is new to the memory that a session is bound to, and return the number of entries.

    A changed document is written at the end, and with every sixth entry of the memory: a version per turn would be too
    many.
    """
    try:
        words_of = _Words(session)
        added = session.capture(words=words_of)
        if session.bound.has_changes and (end or any(entry.seq % FLUSH_EVERY == 0 for entry in added)):
            session.capture(end=True, words=words_of)
        session.bound.close(writing=False)
    except MemoryMissing:  # not bound, or erased since: the user wants none
        return 0
    return len(added)


def index_entries(home: Home, memory_id: str) -> None:
    """Bring the search index of a memory up to date, which a search would do otherwise."""
    from daypack.memory.store.port import StoreFeed  # noqa: PLC0415 — only after a capture
    from daypack.memory.tools import open_memory  # noqa: PLC0415

    with (
        suppress(MemoryMissing),  # erased since
        open_memory(home=home.root, uid=home.uid, user=USER) as memories,
        memories.backend.indexes.use(StoreFeed(memories.backend.store, USER, memory_id)) as index,
    ):
        index.catch_up()


class _Words:
    """Chooses the words of a message that are worth an entry; empty if none are, or if the user said them before."""

    def __init__(self, session: Session) -> None:
        self._said: dict[str, int] = {}  # by the words: the message that said them first
        reader = session.history.messages.reader
        stop = reader.position(session.bound.binding.captured_through + 1)
        slots = reader.slots(max(0, stop - _LOOKED_BACK), stop)
        for message in reader.pick([slot.seq for slot in slots if slot.flags >> ROLE_SHIFT & 7 == _USER]):
            self._said.setdefault(_plain(message.text), message.seq)

    def __call__(self, message: Message) -> str:
        if message.role == "user":
            words = user_words(message)
            if words and self._said.setdefault(_plain(message.text), message.seq) < message.seq:
                return ""
        elif message.tool_calls:
            return ""
        else:
            words = spoken_words(message)
        return words if words and not _is_command(words) and is_informative(words) else ""


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_command(text: str) -> bool:
    """Return True for one or two words without a name, number or path: "commit", "run it"."""
    words = _WORD.findall(text)
    if len(words) > _COMMAND_WORDS or _UNSPACED.search(text) or literals(text):
        return False
    return all(word.islower() for word in words[1:])  # a capital within a sentence: a name
