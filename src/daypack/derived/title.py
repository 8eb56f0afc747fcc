"""The title of a session: the first words of its user."""

from collections.abc import Callable, Sequence

from daypack.derived.compaction.utterances import user_words
from daypack.history.logs.lines import ROLE_SHIFT
from daypack.history.session import History
from daypack.text.redact.redact import redact
from daypack.types.authority import users_part
from daypack.types.history import Message
from daypack.types.kinds import ROLES

MAX_CHARS = 200
_FIRST_LINES = 200  # of the log; a title further down is not worth reading for
_TRIES = 5  # user messages that are read: the first ones of a harness may hold only its own text
_USER_OR_UNKNOWN = (0, ROLES.index("user") + 1)  # the role in the flags of a slot


def title_of(history: History) -> str:
    """Return the first words that the user wrote, as one line without secrets; "" if there are none."""
    reader = history.messages.reader
    return first_words([slot.flags for slot in reader.slots(0, _FIRST_LINES)], lambda at: reader.read(at, at + 1))


def first_words(flags: Sequence[int], read: Callable[[int], Sequence[Message]]) -> str:
    """Return the title, given the flags of the first lines and how to read a line.

    Messages that a harness or a tool wrote in the user's name are used only if there is no other.
    """
    wanted = [at for at, flag in enumerate(flags[:_FIRST_LINES]) if flag >> ROLE_SHIFT & 7 in _USER_OR_UNKNOWN]
    first, tries = "", 0
    for at in wanted:
        for message in read(at):
            if message.role == "user" and tries < _TRIES:
                tries += 1
                part = users_part(message)
                if words := _line(user_words(part)) if part else "":
                    return words
                first = first or _line(part.text if part else message.text)
        if tries == _TRIES:
            break
    return first


def _line(text: str) -> str:
    return " ".join(redact(text[: 8 * MAX_CHARS]).text.split())[:MAX_CHARS]
