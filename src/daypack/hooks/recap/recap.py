"""The recap of a session: what later hooks need of it, in one small file, so that they compute nothing.

context/recap.json   {"through":812,"lost":640,"rules":["Never push to main."],"document":"# Context …","files":[…],…}

It is derived: a missing or damaged one is written again when the transcript is taken in.
"""

import msgspec
from msgspec import Struct

from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.history.layout import Layout


class FileNote(Struct, frozen=True):
    """A file and what happened to it: "written 3x, read; last messages:211"."""

    path: str
    summary: str


class Recap(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a session up to the message `through`; texts are redacted.

    The host keeps a window of its own: messages up to `lost` are not in it any more, except those in `kept`.
    """

    through: int
    tokenizer: str  # of the sidecar of the log, which is opened without meta.json
    at: str = ""  # when the newest message was written
    lost: int = 0
    kept: tuple[int, ...] = ()
    events: int = 0  # of the session, up to which compactions of the host were looked for
    whole: bool = False  # made for a compaction: from all of the session
    title: str = ""
    rules: tuple[str, ...] = ()  # of the user, word for word, in the order given
    document: str = ""  # CONTEXT.md
    task: str = ""
    done: bool = False  # the agent has reported on the task
    pending: tuple[str, ...] = ()
    files: tuple[FileNote, ...] = ()  # changed ones first, newest first
    tests: tuple[str, ...] = ()  # the newest run of each suite
    failed: tuple[str, ...] = ()  # attempts that failed and were not mended
    said: str = ""  # the agent's last words
    turns: int = 0  # messages of the user, as far as they were read


_decoder = msgspec.json.Decoder(Recap)


def read_recap(layout: Layout) -> Recap | None:
    """Return the recap of a session; None if there is none that can be read."""
    try:
        data = atomic.read(layout.derived("recap"))
        return None if data is None else _decoder.decode(data)
    except (StorageFailed, msgspec.MsgspecError, UnicodeError):
        return None
