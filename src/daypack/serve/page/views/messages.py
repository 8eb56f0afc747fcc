"""The history: messages as they were said, and texts that left the window, without secrets."""

from collections.abc import Sequence

from msgspec import Struct

from daypack.errors import SourceMissing
from daypack.files.offsets import UNCOUNTED
from daypack.history.session import History
from daypack.serve.page.calls.items import media_words
from daypack.serve.page.calls.shapes import MOST_CHARS, cut
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.shown import shown
from daypack.text.redact.redact import redact_message
from daypack.types.history import Message, Text, Thinking
from daypack.types.source import Messages

_MOST_MESSAGES = 200
_MOST_RECALLED_CHARS = 200_000


class HistoryCall(Struct, frozen=True):
    """A call of a tool in a message."""

    id: str
    name: str
    arguments: str


class HistoryMessage(Struct, frozen=True, kw_only=True):
    """One message; `chars` is the length of its whole text."""

    seq: int
    ts: str
    role: str
    name: str | None
    text: str
    chars: int
    calls: Sequence[HistoryCall]
    answers: str | None  # the id of the call that it is the result of
    incomplete: str | None
    tokens: int | None
    thinking: str | None
    media: Sequence[str]


class HistoryPage(Struct, frozen=True):
    """Some messages of a session."""

    total: int
    messages: Sequence[HistoryMessage]


class RecalledText(Struct, frozen=True, kw_only=True):
    """A text by its id; `more` is the id of what follows if only the beginning of a long range was read."""

    id: str
    source: str
    text: str
    chars: int | None
    lines: int
    more: str | None = None


def list_messages(home: OpenedHome, asked: Asked) -> HistoryPage:
    """Return messages from a number on; none if the history is shorter."""
    start = asked.number("start", 1)
    count = asked.number("count", _MOST_MESSAGES, most=_MOST_MESSAGES)
    with home.session(asked.text("agent"), asked.text("session")) as session:
        reader = session.history.messages.reader
        at = reader.position(start)
        return HistoryPage(reader.count(), _read(session.history, at, at + count, MOST_CHARS))


def show_message(home: OpenedHome, asked: Asked) -> HistoryMessage:
    """Return one message, whole."""
    seq = asked.number("seq", least=1)
    with home.session(asked.text("agent"), asked.text("session")) as session:
        reader = session.history.messages.reader
        at = reader.position(seq)
        found = [message for message in _read(session.history, at, at + 1, None) if message.seq == seq]
        if found:
            return found[0]
        total = reader.count()
        problem = f"message {seq:,} is damaged" if seq <= total else f"the session has {total:,} messages"
        hint = "see `daypack doctor`" if seq <= total else "`messages` lists them"
        raise SourceMissing(problem, operation=asked.view, place=session.history.layout.messages, hint=hint)


def _read(history: History, start: int, stop: int, most_chars: int | None) -> list[HistoryMessage]:
    reader = history.messages.reader
    tokens = {slot.seq: slot.tokens for slot in reader.slots(start, stop) if slot.tokens != UNCOUNTED}
    return [_message(history, message, tokens.get(message.seq), most_chars) for message in reader.read(start, stop)]


def _message(history: History, raw: Message, tokens: int | None, most_chars: int | None) -> HistoryMessage:
    # Redacted before it is cut: half of a secret has no format by which it could be recognised.
    message = redact_message(raw)[0] if history.config.redaction == "on" else raw
    parts, raw_parts = (() if isinstance(each.content, str) else each.content for each in (message, raw))
    thinking = [part.text for part in raw_parts if isinstance(part, Thinking)]
    return HistoryMessage(
        seq=message.seq,
        ts=message.ts,
        role=message.role,
        name=message.name,
        text=cut(message.text, most_chars),
        chars=len(message.text),
        calls=[HistoryCall(call.id, call.name, cut(call.arguments, most_chars)) for call in message.tool_calls],
        answers=message.tool_call_id,
        incomplete=message.incomplete,
        tokens=tokens,
        # Of thinking with a secret, `redact_message` keeps nothing: a provider would refuse it with other words.
        thinking=cut(shown(history, "\n".join(thinking)), most_chars) if thinking else None,
        media=[media_words(part) for part in parts if not isinstance(part, Text | Thinking)],
    )


def show_recalled(home: OpenedHome, asked: Asked) -> RecalledText:
    """Return the text of an id: a swapped chunk, messages, a record, an event, a child."""
    name = asked.text("id")
    with home.session(asked.text("agent"), asked.text("session")) as session:
        extent = session.lookup.extent(name)
        first = _beginning(session, extent) if extent else None
        recalled = session.recall(str(first) if first else name)
        more = str(Messages(first.stop + 1, extent.stop)) if first and extent else None
        return RecalledText(
            id=name,
            source=recalled.source,
            text=cut(recalled.text, _MOST_RECALLED_CHARS),
            chars=None if more else len(recalled.text),
            lines=recalled.lines,
            more=more,
        )


def _beginning(session: Session, extent: Messages) -> Messages | None:
    """Return the first messages of a range that is much longer than what is shown; None if it is not."""
    reader = session.history.messages.reader
    at, end = reader.position(extent.start), reader.position(extent.stop + 1)
    size = 0
    while at < end:
        for slot in reader.slots(at, min(at + _MOST_MESSAGES, end)):
            size += slot.length
            if size > _MOST_RECALLED_CHARS and extent.start <= slot.seq < extent.stop:
                return Messages(extent.start, slot.seq)
        at += _MOST_MESSAGES
    return None
