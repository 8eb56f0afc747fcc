"""The index of all sessions of a home: which words are in which message. It is derived, and holds no texts.

    <root>/home/<uid>/find/index.sqlite

A posting is one number: session · 2^30 + line · 2^6 + role · 2^4 + length class. The number of a session is never used
again, so the postings of a session that is gone or was rewritten are recognised: FTS5 cannot remove them without the
text. `dead` counts them; when they are the larger part, the file is discarded and made again.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from math import inf, log2
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from daypack.files.database import COMPANIONS, Answer
from daypack.history.layout import Home
from daypack.search.index_file import IndexFile
from daypack.types.kinds import ROLES

if TYPE_CHECKING:
    from sqlite3 import Connection

VERSION = 1
LENGTHS = 16  # classes of length, two for each doubling
ID_SHIFT = 6  # of a posting: the id of its message is above role and length class
LINE_BITS = 24
MAX_LINES = 1 << LINE_BITS
_LEAST_DEAD = 2_000  # messages; fewer are not worth a new file

SCHEMA = """
CREATE VIRTUAL TABLE postings USING fts5(words, content='', columnsize=0, detail=none, tokenize='porter ascii');
INSERT INTO postings(postings, rank) VALUES ('hashsize', 64000000);
INSERT INTO postings(postings, rank) VALUES ('automerge', 16);
CREATE TABLE sessions(number INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT, name TEXT, cwd TEXT, inode INT, size INT,
    changed INT, stop INT, print INT, lines INT, seq INT, messages INT, words INT, oldest INT, newest INT,
    UNIQUE(agent, name));
CREATE TABLE messages(id INTEGER PRIMARY KEY, start INT, length INT, seq INT, moment INT);
CREATE TABLE totals(dead INT);
INSERT INTO totals VALUES (0)
"""
_SESSIONS = "SELECT * FROM sessions"
_SESSION = "SELECT * FROM sessions WHERE agent = ? AND name = ?"
_PUT_SESSION = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Indexed(Struct, frozen=True, kw_only=True):
    """A session as far as it is indexed: up to the offset `stop`; `print` is the fingerprint of its log up to there."""

    number: int = 0
    agent: str
    name: str
    cwd: str = ""
    inode: int = 0
    size: int = 0
    changed: int = 0
    stop: int = 0
    print: int = 0
    lines: int = 0
    seq: int = 0
    messages: int = 0
    words: int = 0
    oldest: int = 0
    newest: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Agent and name."""
        return self.agent, self.name

    def is_same(self, other: "Indexed") -> bool:
        """Return True if the same is indexed of both, whatever their numbers."""
        return replace(self, number=0) == replace(other, number=0)


class Words(Struct, frozen=True, gc=False):
    """The words of a message, and where the message is."""

    line: int  # of its log, counted from 0
    role: int  # number in ROLES
    length: int  # in words
    text: str
    start: int  # offset of its line
    size: int  # of its line, in bytes
    seq: int
    moment: int  # seconds since 1970; 0 if unknown


class Piece(NamedTuple):
    """The new messages of a session: its state before and after them."""

    before: Indexed
    after: Indexed
    messages: list[Words]


def message_id(number: int, line: int) -> int:
    """Return the id of a message: those of a session are consecutive."""
    return number << LINE_BITS | line


def posting(number: int, words: Words) -> int:
    """Return the posting of a message."""
    length = min(LENGTHS - 1, int(2 * log2(max(1, words.length))))
    return message_id(number, words.line) << ID_SHIFT | words.role << 4 | length


class FindIndex:
    """The index of a home; threads and processes may share it. An unreadable file is replaced by an empty one."""

    def __init__(self, home: Home) -> None:
        self._file = IndexFile(home.find_index, SCHEMA, VERSION)
        self.path = self._file.path

    def read(self, work: Callable[["Connection"], Answer]) -> Answer | None:
        """Run `work` in a transaction that reads; None if the file was unusable and has been replaced."""
        return self._file.run("find", work)

    def sessions(self) -> tuple[list[Indexed], int]:
        """Return the indexed sessions, and how often the file was opened: `add` compares that."""

        def work(connection: "Connection") -> list[Indexed]:
            return read_sessions(connection)

        found = self.read(work) or []
        return found, self._file.times_opened

    def add(self, pieces: Sequence[Piece], opened: int) -> bool:
        """Add messages, all or none; False if the index is not the one they were read for: then nothing is added."""

        def work(connection: "Connection") -> bool:
            if self._file.times_opened != opened:
                return False  # it was replaced: perhaps because something was erased that was read before
            known = [_known(connection, piece.before) for piece in pieces]
            if not all(row.is_same(piece.before) for row, piece in zip(known, pieces, strict=True)):
                return False  # another process was faster
            numbered = zip([row.number for row in known], pieces, strict=True)
            for number, piece in sorted(numbered, key=lambda pair: pair[0] or inf):  # FTS5 wants ascending numbers
                _add(connection, piece, number)
            return True

        return bool(self._file.run("index", work, writing=True))

    def drop(self, sessions: Iterable[Indexed]) -> None:
        """Remove sessions that are gone or were rewritten."""

        def work(connection: "Connection") -> None:
            for session in sessions:
                removed = connection.execute("DELETE FROM sessions WHERE number = ?", (session.number,)).rowcount
                if removed:
                    first = message_id(session.number, 0)
                    connection.execute("DELETE FROM messages WHERE id >= ? AND id < ?", (first, first + MAX_LINES))
                    connection.execute("UPDATE totals SET dead = dead + ?", (session.messages,))

        self._file.run("index", work, writing=True)

    def is_mostly_dead(self) -> bool:
        """Return True if most of its messages are of sessions that are gone."""

        def work(connection: "Connection") -> bool:
            dead = connection.execute("SELECT dead FROM totals").fetchone()[0]
            live = connection.execute("SELECT coalesce(sum(messages), 0) FROM sessions").fetchone()[0]
            return dead > max(_LEAST_DEAD, live)

        return bool(self.read(work))

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()


def read_sessions(connection: "Connection") -> list[Indexed]:
    """Return the rows of all indexed sessions."""
    return _read(connection, _SESSIONS)


def _read(connection: "Connection", query: str, values: Sequence[str] = ()) -> list[Indexed]:
    names = Indexed.__struct_fields__
    return [Indexed(**dict(zip(names, row, strict=True))) for row in connection.execute(query, values)]


def role_number(role: str) -> int:
    """Return the number of a role in a posting."""
    return ROLES.index(role) if role in ROLES else 0


def size_of(home: Home) -> int:
    """Return the bytes of the index."""
    paths = (home.find_index + ending for ending in ("", *COMPANIONS))
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def _known(connection: "Connection", session: Indexed) -> Indexed:
    """Return what is indexed of a session now."""
    rows = _read(connection, _SESSION, session.key)
    return rows[0] if rows else Indexed(agent=session.agent, name=session.name)


def _add(connection: "Connection", piece: Piece, number: int) -> None:
    number = connection.execute(_PUT_SESSION, (number or None, *astuple(piece.after)[1:])).lastrowid or 0
    connection.executemany(
        "INSERT INTO postings(rowid, words) VALUES (?, ?)",
        [(posting(number, words), words.text) for words in piece.messages],
    )
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?, ?, ?, ?)",
        [
            (message_id(number, words.line), words.start, words.size, words.seq, words.moment)
            for words in piece.messages
        ],
    )
