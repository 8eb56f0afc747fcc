"""Swap: ids under which messages and outputs that left the window can be recalled.

    context/swap/index.jsonl  {"id":"sha256-…","kind":"message_range","source":"messages.jsonl","range":"1-120",…}
    context/swap/chunk/<id>   {"source":"messages.jsonl","start_event":"msg-1","end_event":"msg-120","hash":"sha256:…"}

A chunk refers to raw history and holds no copy of it; its id is the digest of the chunk, so an id proves the
words. Only the chunk of the newest range is kept as a file: the others are computed again from history
on demand.
"""

import re
from collections.abc import Iterable

import msgspec

from daypack.files import blobs
from daypack.history.session import History
from daypack.text.injected import SWAPPED
from daypack.text.outline import outline
from daypack.types.digest import digest_of
from daypack.types.history import Message
from daypack.types.records import SwapRecord, SwapReference
from daypack.types.source import Messages

LARGE_TOKENS = 400  # a tool output above this is worth a stub
OUTLINE_SHARE = 0.35  # of the characters of an output: the names that its stub lists
MAX_OUTLINE_CHARS = 4000
SHORT_ID = 19  # characters of an id that a stub shows: few tokens, and still one of 2**48
_PREVIEW = 100
_LOG = "messages.jsonl"
_SPACE = re.compile(r"\s+")


def digest_messages(messages: Iterable[Message]) -> str:
    """Return the digest of what messages say, whatever else their lines hold."""
    from hashlib import sha256  # noqa: PLC0415 — 2 ms that reading a log need not pay

    found = sha256()
    for message in messages:
        found.update(
            msgspec.json.encode((message.role, message.content, message.tool_calls, message.tool_call_id, message.name))
        )
        found.update(b"\n")
    return digest_of(f"sha256:{found.hexdigest()}")


def chunk_of(start: int, stop: int, digest: str) -> bytes:
    """Return the bytes of a chunk that refers to a range of messages."""
    reference = SwapReference(_LOG, f"msg-{start}", f"msg-{stop}", digest)
    return msgspec.json.encode(reference) + b"\n"


def id_of(message: Message) -> str:
    """Return the id of one message that is swapped out by itself."""
    return blobs.name_of(chunk_of(message.seq, message.seq, digest_messages((message,))))


def swap_range(messages: Iterable[Message], start: int, stop: int, summary: str, tokens: int) -> SwapRecord:
    """Return the record of a range that left the window."""
    name = blobs.name_of(chunk_of(start, stop, digest_messages(messages)))
    return SwapRecord(
        id=name, kind="message_range", source=_LOG, range=f"{start}-{stop}", summary=summary, tokens=tokens
    )


def swap_output(message: Message, shown: str, tokens: int) -> SwapRecord:
    """Return the record of one large tool output; `shown`: its words without secrets."""
    return SwapRecord(
        id=id_of(message), kind="tool_output", source=_LOG, event=message.id, summary=preview(shown), tokens=tokens
    )


def range_of(record: SwapRecord) -> Messages:
    """Return the messages a record covers."""
    if record.range:
        start, _, stop = record.range.partition("-")
        return Messages(int(start), int(stop or start))
    number = int((record.event or "").removeprefix("msg-"))
    return Messages(number, number)


def chunk_for(history: History, record: SwapRecord) -> bytes | None:
    """Make the chunk of a record again from history; None if the history has changed."""
    extent = range_of(record)
    digest = digest_messages(history.messages.records(extent.start, extent.stop))
    chunk = chunk_of(extent.start, extent.stop, digest)
    return chunk if blobs.name_of(chunk) == record.id else None


def stub(message: Message, shown: str) -> str:
    """Return the line that replaces a tool output in the window: id, size, first words and the names in it."""
    lines = shown.count("\n") + 1
    size = f"{len(shown):,} characters, {lines:,} line{'s' if lines > 1 else ''}"
    begins = preview(shown)
    names = outline(shown, min(int(len(shown) * OUTLINE_SHARE), MAX_OUTLINE_CHARS))
    names = f" and names {names}" if names else ""
    return f'{SWAPPED}{id_of(message)[:SHORT_ID]}, {size}; recall returns it. It begins "{begins}"{names}]'


def preview(text: str) -> str:
    """Return the first words of a text on one line; whole words, when they are not too long."""
    line = _SPACE.sub(" ", text[: 8 * _PREVIEW]).strip()
    if len(line) <= _PREVIEW:
        return line
    cut = line.rfind(" ", _PREVIEW // 2, _PREVIEW)
    return line[: cut if cut > 0 else _PREVIEW].rstrip()
