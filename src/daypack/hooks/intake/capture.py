"""Capture of a coding agent's session: which of its words go into the project's memory.

The user's own words, and the agent's last word before the user speaks again. Not what the agent says between two tool
calls, nor acknowledgements, nor what hosts and daypack put into a message: a memory that fills with those finds less.
"""

from contextlib import suppress

from daypack.derived.compaction.utterances import spoken_words, user_words
from daypack.errors import MemoryMissing
from daypack.history.layout import Home
from daypack.memory.keeper import is_informative
from daypack.memory.limits import FLUSH_EVERY
from daypack.memory.project.memory import USER
from daypack.session import Session
from daypack.types.history import Message


def capture_session(session: Session, *, end: bool = False) -> int:
    """Add what is new to the memory that a session is bound to, and return the number of entries.

    A changed document is written at the end, and with every sixth entry of the memory: a version per turn would be too
    many.
    """
    try:
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


def words_of(message: Message) -> str:
    """Return the words of a message that are worth an entry; empty if none are."""
    if message.role == "user":
        words = user_words(message)
    elif message.tool_calls:
        return ""
    else:
        words = spoken_words(message)
    return words if words and is_informative(words) else ""
