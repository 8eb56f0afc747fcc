"""Reads the new lines of a session's log as the words that are indexed: about 20 µs for a message.

A line is decoded to the few fields that are needed, and FTS5 splits the words. What it would not find is added or
folded here: the parts of identifiers (`fixPort`), accents, scripts without spaces. Damaged lines are skipped.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.files import jsonl
from daypack.history.logs.lines import UNREADABLE, Examined, examine, next_seq
from daypack.history.logs.reader import decoder_of
from daypack.history.searchable import OWN_TOOLS, searchable
from daypack.search.words import HEAD_CHARS, TAIL_CHARS, drop_coded, fold, index_header
from daypack.types.history import Message
from daypack.upkeep.find.index import MAX_LINES, Indexed, Words, role_number

_BLOCK, _MOST_PRINTED = 1 << 14, 1 << 20  # bytes
_MIDDLE_CHARS = 4_000_000  # of a long text, where names and numbers are looked for
_LONG_CHARS = 4_000  # a text from this length may be encoded data …
_CODED_CHARS = 16  # … if its words have so many characters on average
_SPLIT_CHARS = 1_200  # of a text whose identifiers are split; beyond, they are found as they are spelled
_BEFORE_CAPITAL = re.compile(r"[A-Z](?=([a-z0-9]+[A-Z]?))")  # in reversed text
_AFTER_CAPITAL = re.compile(r"[A-Z](?<=[A-Za-z0-9][A-Z])[a-z][a-z0-9]*")
_ASCII = bytes(range(128))
# Letters beyond ASCII; arrows, boxes, dashes and emoji separate words.
_LETTERS = re.compile(
    "[^\x00-\x7f\u00a0-\u00bf\u2000-\u2bff\u3000-\u3004\u3008-\u3020\ufe00-\ufe0f\U0001f000-\U0001faff]"
)
_NAMES = re.compile(r"[A-Za-z_./-]{0,80}[0-9][\w./:-]{0,80}|\w{1,60}[_/.]\w[\w./-]{0,80}")


class _Marks(Struct, frozen=True, gc=False):
    writer: object = None


class _Part(Struct, frozen=True, gc=False):
    type: str = ""
    text: str = ""
    meta: _Marks | None = None


class _Call(Struct, frozen=True, gc=False):
    name: str = ""
    arguments: str = ""


class _Line(Struct, frozen=True, gc=False):
    """What of a message is indexed."""

    seq: int
    role: str
    content: str | tuple[_Part, ...] = ""
    ts: str = ""
    name: str | None = None
    tool_calls: tuple[_Call, ...] = ()
    meta: _Marks | None = None


_line = msgspec.json.Decoder(_Line)


def fingerprint(fd: int, stop: int) -> int:
    """Return a checksum of a log up to an offset: of all its bytes, or of many evenly spaced blocks of a long one."""
    step = max(_BLOCK, stop * _BLOCK // _MOST_PRINTED)
    crc = 0
    for start in range(0, stop, step):
        crc = crc32(jsonl.read_at(fd, start, min(_BLOCK, stop - start)), crc)
    return crc


class LogWords:
    """The lines of a log after those that are known: iterate over them; `state` says how far it was read."""

    def __init__(self, fd: int, known: Indexed, size: int) -> None:
        self._fd = fd
        self._size = size
        self._line, self._seq, self._stop = known.lines, known.seq, known.stop

    def __iter__(self) -> Iterator[Words]:
        for start, data in jsonl.scan(self._fd, self._stop, self._size):
            if self._line >= MAX_LINES:
                return
            body = data[:-1]
            sealed = jsonl.check(body) == "sealed"
            read, self._seq = _read_sealed(body, self._seq) if sealed else _read_other(examine(body), self._seq)
            self._line, self._stop = self._line + 1, start + len(data)
            if read:
                role, moment, text, length = read
                yield Words(self._line - 1, role_number(role), length, text, start, len(data), self._seq, moment)

    def state(self, before: Indexed) -> Indexed:
        """Return the state of a session after the lines that were read, without what their messages add."""
        found = fingerprint(self._fd, self._stop)
        return replace(before, stop=self._stop, print=found, lines=self._line, seq=self._seq)


_Read = tuple[str, int, str, int]  # role, moment, text, words


def _read_sealed(body: bytes, seq: int) -> tuple[_Read | None, int]:
    try:
        line = _line.decode(body)
    except UNREADABLE:
        return _read_other(examine(body), seq)
    return _words(line.role, line.ts, line.name, _text(line)), max(seq, line.seq)


def _read_other(examined: Examined, seq: int) -> tuple[_Read | None, int]:
    """Read a line that is hand-written, damaged or of an unusual shape."""
    seq = next_seq(seq, examined)
    try:
        message = decoder_of(Message).decode(examined.record) if examined.record else None
    except UNREADABLE:
        message = None
    return _words(message.role, message.ts, message.name, searchable(message)) if message else None, seq


def _text(line: _Line) -> str:
    """Return what `searchable` returns for a message."""
    if line.meta and line.meta.writer == "hook":
        text = ""
    elif isinstance(line.content, str):
        text = line.content
    else:
        parts = (part for part in line.content if part.type == "text")
        text = "\n".join(part.text for part in parts if not (part.meta and part.meta.writer == "hook"))
    if line.tool_calls:
        calls = (f"{call.name} {call.arguments}" for call in line.tool_calls if call.name not in OWN_TOOLS)
        text = "\n".join((text, *calls))
    return text


def _words(role: str, moment: str, name: str | None, text: str) -> _Read | None:
    if not text or text.isspace():
        return None
    when, header = _when(moment)
    return role, when, f"{header} {name or ''} {index_text(text)}", len(text) // 6


def _when(moment: str) -> tuple[int, str]:
    """Return a time in UTC as seconds since 1970, 0 for none, and its date in words."""
    midnight, words = _day(moment[:10])
    clock = moment[11:19]
    if midnight and len(clock) == len("12:34:56") and moment.endswith("Z"):
        try:
            return midnight + int(clock[:2]) * 3600 + int(clock[3:5]) * 60 + int(clock[6:]), words
        except ValueError:
            return midnight, words
    return _parse(moment) or midnight, words


@lru_cache(1 << 12)
def _day(date: str) -> tuple[int, str]:
    """Return the midnight of a date in seconds since 1970, 0 for none, and the date in words."""
    seconds = _parse(date)
    return seconds, index_header(date, "") if seconds else ""


def _parse(moment: str) -> int:
    try:
        found = datetime.fromisoformat(moment)
        return max(0, int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, OverflowError):
        return 0


def index_text(text: str) -> str:
    """Return a text as FTS5 is given it: every word, name, path and number of it can be found."""
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        text = _shorten(text)
    parts = identifier_parts(text[:_SPLIT_CHARS])
    if not text.isascii():
        text = fold(text) if _has_letters(text) else text.encode("ascii", "replace").decode()
    elif len(text) > _LONG_CHARS and len(text) > _CODED_CHARS * (text.count(" ") + text.count("\n")):
        text = drop_coded(text)
    return f"{text} {parts}" if parts else text


def _has_letters(text: str) -> bool:
    """Return True for letters beyond ASCII. Most texts have few such characters, so ASCII is removed first."""
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return _LETTERS.search(beyond.decode("utf-8", "surrogatepass")) is not None


def identifier_parts(text: str) -> str:
    """Return the words of identifiers such as fixPort; FTS5 itself splits fix_port and --port."""
    after = _AFTER_CAPITAL.findall(text)
    if not after:
        return ""
    # The words before a capital are found backwards: a pattern that begins with a capital skips all other text.
    before = " ".join(_BEFORE_CAPITAL.findall(text[::-1]))[::-1]
    return f"{before} {' '.join(after)}"


def _shorten(text: str) -> str:
    """Return both ends of a long text, and the names, paths and numbers between them."""
    middle = text[HEAD_CHARS : min(len(text) - TAIL_CHARS, HEAD_CHARS + _MIDDLE_CHARS)]
    return f"{text[:HEAD_CHARS]} {' '.join(set(_NAMES.findall(middle)))} {text[-TAIL_CHARS:]}"
