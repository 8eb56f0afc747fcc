"""What was decided about the files of a project, in two small files that a hook reads whole.

home/<uid>/project/<digest>/decisions.json             of the project's sessions
    {"format":1,"sessions":{"claude-code/5ac28188-…":812},"decisions":[
     {"files":["src/shop/retry.py"],"kind":"decision","text":"…","at":"…","session":"claude-code/5ac2…","seq":135}],…}
home/<uid>/memory/index/<memory id>/decisions.json     of the project's memory
    {"format":1,"entries":40,"decisions":[…]}

They are derived and of bounded size. A missing or damaged one is made again when a session of the project is taken in;
erasing removes both.
"""

import os
from typing import Literal

import msgspec
from msgspec import Struct

from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.history.layout import Home

FORMAT = 1
MAX_DECISIONS = 2_000  # of a project, the newest: at most 1 MB, which a hook decodes in 5 ms
MAX_PATHS = 5_000
MAX_RENAMED = 500

Kind = Literal["rule", "decision", "failure", "revert", "reason"]


class FileDecision(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A sentence about files; its text is redacted.

    `files` are paths from the top of the working tree, or the ends of such paths. A folder ends with a slash, and a
    pattern has an asterisk: they stand for all files they match.
    """

    files: tuple[str, ...]
    kind: Kind
    text: str
    at: str = ""
    by_user: bool = False
    session: str = ""  # <agent>/<session>; "" if it was not said in a session
    seq: int = 0  # the message
    entry: str = ""  # the id of an entry of the project's memory, if it was not found in a session

    @property
    def place(self) -> str:
        """Where it was said, the same in every index."""
        return f"entry:{self.entry}" if self.entry else f"{self.session} messages:{self.seq}"


class DecisionIndex(Struct, frozen=True, kw_only=True):
    """The index; `decisions` are in the order they were said."""

    format: int = FORMAT
    sessions: dict[str, int] = {}  # how far each session was read
    entries: int = 0  # how far the memory was read
    decisions: tuple[FileDecision, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()  # from, to
    paths: tuple[str, ...] = ()  # of files that sessions touched: an end of a path may fit several


_decoder = msgspec.json.Decoder(DecisionIndex)


def entries_file(home: Home, memory_id: str) -> str:
    """Return the file with what the entries of a memory decide: beside its search index, with which it is erased."""
    return os.path.join(home.memory_indexes, memory_id, "decisions.json")


def read_index(path: str) -> DecisionIndex | None:
    """Return an index; None if there is none that can be read."""
    try:
        data = atomic.read(path)
        index = None if data is None else _decoder.decode(data)
    except (StorageFailed, msgspec.MsgspecError, UnicodeError):
        return None
    return index if index and index.format == FORMAT else None


def write_index(path: str, index: DecisionIndex) -> None:
    """Replace an index."""
    atomic.make_folders(os.path.dirname(path))
    atomic.replace(path, msgspec.json.encode(index), durable=False)
