"""Where the texts of a request come from: messages of history, and texts that the program itself put in.

Claude Code keeps what it puts into a request in rows of their own (`attachment`), with the text as it was rendered:
files with instructions, the context that hooks return, reminders. It joins several of them into one block.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, cast

from daypack.history.session import History
from daypack.types.history import Message, Text

Source = Literal[
    "system",
    "tools",
    "instructions",
    "hooks",
    "reminders",
    "attachments",
    "summary",
    "user",
    "assistant",
    "thinking",
    "tool calls",
    "tool results",
    "images",
    "unknown",
]
_ROW = "import.row"
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_HOOK = "hook additional context:"
_INSTRUCTIONS = ("instructions", "nested_memory", "relevant_memories", "claude_md")
_FILES = ("file", "compact_file_reference", "edited_text_file", "directory", "pdf_reference", "already_read_file")
_MIN_CHARS = 8  # a shorter text is found by chance


class Piece(NamedTuple):
    """A part of a text, and where it comes from; `name` is that of a file, a hook or a reminder."""

    text: str
    source: Source
    name: str = ""
    seq: int | None = None  # of a message of history


class Links:
    """What is known of the texts of one session's requests."""

    def __init__(self, history: History) -> None:
        self._texts: dict[bytes, int] = {}  # digest of a text of the user or the assistant -> its message
        self._results: dict[str, int] = {}  # a tool call -> the message with its result
        self._calls: dict[str, tuple[int, str]] = {}  # -> the message that made it, and the name of the tool
        self._summaries: set[int] = set()
        self._put_in: dict[str, tuple[Source, str]] = {}  # a text of the program -> what it is
        self._longest_first: list[str] = []
        self.read_through = 0, 0  # the last message and event that were read
        self.update(history)

    def update(self, history: History) -> None:
        """Read what was appended since."""
        message_seq, event_seq = self.read_through
        last = history.messages.reader.newest().seq, history.events.reader.newest().seq
        for message in history.messages.records(message_seq + 1, last[0]):
            self._add_message(message)
        known = len(self._put_in)
        for event in history.events.records(event_seq + 1, last[1]):
            row = event.data.get("row") if event.type == _ROW else None
            if isinstance(row, dict) and cast(dict[str, Any], row).get("type") == "attachment":
                self._add_attachment(cast(dict[str, Any], row))
        if len(self._put_in) > known:
            self._longest_first = sorted(self._put_in, key=len, reverse=True)
        self.read_through = last

    def of_call(self, call_id: object) -> int | None:
        """Return the message that made a tool call."""
        return self._calls.get(str(call_id), (None, ""))[0]

    def tool_of(self, call_id: object) -> str:
        """Return the name of the tool that was called; empty if it is not known."""
        return self._calls.get(str(call_id), (None, ""))[1]

    def of_result(self, call_id: object) -> int | None:
        """Return the message with the result of a tool call."""
        return self._results.get(str(call_id))

    def of_text(self, text: str) -> int | None:
        """Return the message that says a text."""
        return self._texts.get(_digest(text.strip()))

    def is_summary(self, seq: int | None) -> bool:
        """Return True if a message of history is the summary of a compaction."""
        return seq in self._summaries

    def split(self, role: str, text: str) -> list[Piece]:
        """Return the parts of a text by where they come from."""
        known = self._put_in.get(_unwrapped(text))
        if known:
            return [Piece(text, *known)]
        seq = self.of_text(text)
        if seq is not None:
            source: Source = "summary" if self.is_summary(seq) else "assistant" if role == "assistant" else "user"
            return [Piece(text, source, seq=seq)]
        if role == "assistant":
            return [Piece(text, "assistant")]
        found = sorted(self._found_in(text))
        pieces: list[Piece] = []
        end = 0
        for start, stop in found:
            pieces += self._rest(role, text[end:start])
            pieces.append(Piece(text[start:stop], *self._put_in[text[start:stop]]))
            end = stop
        return [*pieces, *self._rest(role, text[end:])]

    def _found_in(self, text: str) -> list[tuple[int, int]]:
        """Return where texts of the program are in a text; of two that overlap, the longer."""
        taken: list[tuple[int, int]] = []
        for known in self._longest_first:
            start = text.find(known)
            while start >= 0:
                stop = start + len(known)
                if all(stop <= other or end <= start for other, end in taken):
                    taken.append((start, stop))
                start = text.find(known, stop)
        return taken

    def _rest(self, role: str, text: str) -> Iterator[Piece]:
        """Yield a part that no row explains, classified by its words."""
        body = _unwrapped(text)
        if not body:
            return
        if _HOOK in body[:60]:
            yield Piece(text, "hooks", body.partition(" ")[0])
        elif text.strip().startswith(_OPEN):
            yield Piece(text, "reminders")
        elif role == "system":
            yield Piece(text, "unknown", "a system message")
        else:
            yield Piece(text, "user")

    # What history has

    def _add_message(self, message: Message) -> None:
        meta = message.meta or {}
        if meta.get("foreign_summary"):
            self._summaries.add(message.seq)
        for call in message.tool_calls:
            self._calls[call.id] = message.seq, call.name
        if message.role == "tool":
            self._results[message.tool_call_id or ""] = message.seq
            return
        parts = (Text(message.content),) if isinstance(message.content, str) else message.content
        for part in parts:
            if isinstance(part, Text) and (text := part.text.strip()):
                self._texts[_digest(text)] = message.seq

    def _add_attachment(self, row: Mapping[str, Any]) -> None:
        fields = row.get("attachment")
        rendered = row.get("rendered")
        if not isinstance(fields, dict) or not isinstance(rendered, list):
            return
        described = _describe(cast(dict[str, Any], fields))
        for part in cast(Sequence[object], rendered):
            content = cast(dict[str, Any], part).get("content") if isinstance(part, dict) else None
            if isinstance(content, str) and len(body := _unwrapped(content)) >= _MIN_CHARS:
                self._put_in[body] = described


def _describe(attachment: Mapping[str, Any]) -> tuple[Source, str]:
    kind = str(attachment.get("type") or "")
    if kind in _INSTRUCTIONS:
        files = attachment.get("files")
        paths = [
            str(cast(dict[str, Any], file).get("path") or "")
            for file in (cast(Sequence[object], files) if isinstance(files, list) else ())
            if isinstance(file, dict)
        ]
        paths = paths or [str(attachment.get("path") or kind)]
        return "instructions", ", ".join(dict.fromkeys(map(os.path.basename, paths)))
    if kind.startswith("hook"):
        return "hooks", str(attachment.get("hookEvent") or attachment.get("hookName") or kind)
    if kind in _FILES:
        name = attachment.get("displayPath") or attachment.get("filename") or attachment.get("path") or kind
        return "attachments", str(name)
    return "reminders", kind.removesuffix("_delta").removesuffix("_reminder").replace("_", " ")


def _digest(text: str) -> bytes:
    """Return what stands for a text, so that the texts of a long history are not all kept in memory."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _unwrapped(text: str) -> str:
    return text.strip().removeprefix(_OPEN).removesuffix(_CLOSE).strip()
