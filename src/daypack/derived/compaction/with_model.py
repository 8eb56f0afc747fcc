"""The compactor with a model: it fills the template, and only bullets that history supports word for word are accepted.

A range that is longer than the model's window is read in chunks; the filled templates of one run are merged in rounds.
Nothing that an earlier run made is ever given to the model.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from daypack.derived.compaction.grounding import ground
from daypack.derived.compaction.template_reader import read_filled
from daypack.derived.raw_history import Raw
from daypack.derived.template import MAX_BULLETS, render
from daypack.errors import BadConfig, DaypackError
from daypack.files import atomic
from daypack.llm.completion.port import Completer, Prompt
from daypack.prompts import SHIPPED_PROMPTS
from daypack.text.clean import clean
from daypack.types.compaction import SECTIONS, Bullet, FilledTemplate, Loss
from daypack.types.history import Message
from daypack.types.records import ContextDoc

ANSWER_TOKENS = 1024
MAX_CHUNKS = 12  # of one run; what is older is read without the model
MAX_ROUNDS = 6
_RESERVED_TOKENS = 500  # chat markers, and the error of our estimate
_CHARS_PER_TOKEN = 3  # an estimate that is rather too low for the model's own tokens
_RESULT_CHARS = 600  # of a tool result: the rest is in history
_CALL_CHARS = 400
_SMALL_READER, _LARGE_READER = 16_000, 200_000
_POINTER = re.compile(r"\s*\(?messages:\d+(?:-\d+)?\)?[.]?$")

# Every repetition is bounded: a small model repeats a line for ever.
GRAMMAR = r"""
root ::= "# Context\n\n## Task\n" line "\n## Decisions\n" bullets "\n## Facts\n" bullets pending "\n## Errors\n" bullets
pending ::= "\n## Pending\n" todos
bullets ::= ("- " line){0,8}
todos ::= ("- [ ] " line){0,8}
line ::= [^\n#\[\]<>] [^\n<>]{0,240} "\n"
"""

_LINES = {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 240}}
SCHEMA: dict[str, Any] = {  # for backends that know no grammars
    "type": "object",
    "properties": {"task": {"type": "string", "maxLength": 240}, **dict.fromkeys(SECTIONS[1:], _LINES)},
    "required": list(SECTIONS),
    "additionalProperties": False,
}


def fill(raw: Raw, completer: Completer, reader_tokens: int, prompts: str | None = None) -> FilledTemplate:
    """Let a model read a range. It fails as a whole only when the model cannot be reached at all.

    `prompts`: the folder of the user's own prompts; a file there goes before the one that ships with daypack.
    """
    own = _Prompts(prompts)
    room = _room_chars(completer, own.read(_name_for(reader_tokens), "conversation"))
    chunks = list(_chunks(raw, room))
    unread, chunks = sum(len(chunk.messages) for chunk in chunks[:-MAX_CHUNKS]), chunks[-MAX_CHUNKS:]
    run = _Run(completer, own)
    partials = run.ask_each(_name_for(reader_tokens), chunks, room)
    bullets = _merge(run, partials, raw) if len(partials) > 1 else partials[0] if partials else ()
    return FilledTemplate(bullets, tuple(run.losses), tuple(run.outputs), unread)


def transcript(raw: Raw, room_chars: int) -> str:
    """Return a range as a model reads it; what is bulky is shown by its beginning and end."""
    return "\n\n".join(_line(message, room_chars) for message in raw.messages)


class _Run:
    """The model calls of one compaction: their losses and outputs."""

    def __init__(self, completer: Completer, prompts: "_Prompts") -> None:
        self._completer = completer
        self._prompts = prompts
        self.losses: list[Loss] = []
        self.outputs: list[str] = []

    def ask_each(self, prompt: str, chunks: Sequence[Raw], room_chars: int) -> list[tuple[Bullet, ...]]:
        """Have every chunk read; one that fails is a loss, all of them a failure."""
        filled: list[tuple[Bullet, ...]] = []
        failures: list[DaypackError] = []
        for chunk in chunks:
            try:
                filled.append(self.ask(prompt, "conversation", transcript(chunk, room_chars), chunk))
            except DaypackError as error:
                failures.append(error)
                self.losses.append(Loss(chunk.source, "unread", f"the model failed: {error.problem}"))
        if failures and not filled:
            raise failures[0]
        return filled

    def ask(self, prompt: str, slot: str, text: str, raw: Raw) -> tuple[Bullet, ...]:
        """Have a template filled and return what of it the range says."""
        words = self._prompts.read(prompt, slot).replace(f"{{{slot}}}", text)
        completion = self._completer.complete(
            Prompt(system="", user=words, max_tokens=ANSWER_TOKENS, grammar=GRAMMAR.strip(), schema=SCHEMA)
        )
        self.outputs.append(completion.text)
        if completion.finish != "stop":
            self.losses.append(Loss(raw.source, "unfinished", f"the model stopped for {completion.finish}"))
            return ()
        cleaned, losses = clean(completion.text)
        doc, more = read_filled(cleaned)
        bullets, lost = ground(_without_pointers(doc), raw)
        self.losses += (*losses, *more, *lost)
        return bullets


def _merge(run: _Run, partials: Sequence[tuple[Bullet, ...]], raw: Raw) -> tuple[Bullet, ...]:
    """Merge filled templates in rounds; when a round makes no progress, the newest of each section are taken."""
    rest = [partial for partial in partials if partial]
    for _ in range(MAX_ROUNDS):
        if len(rest) <= 1:
            break
        merged: list[tuple[Bullet, ...]] = []
        for at in range(0, len(rest), 2):
            pair = rest[at : at + 2]
            text = "\n".join(render(_document(bullets)) for bullets in pair)
            try:
                found = run.ask("merge", "partials", text, raw) if len(pair) > 1 else pair[0]
            except DaypackError:
                found = ()
            merged.append(found or _newest(pair))
        if sum(map(len, merged)) >= sum(map(len, rest)):
            break
        rest = merged
    return _newest(rest)


def _newest(partials: Sequence[tuple[Bullet, ...]]) -> tuple[Bullet, ...]:
    """Return the bullets of several templates as one, the newest first where there are too many."""
    kept: list[Bullet] = []
    for section in SECTIONS:
        most = 1 if section == "task" else MAX_BULLETS
        own = [bullet for partial in reversed(partials) for bullet in partial if bullet.section == section]
        kept += {bullet.text.casefold(): bullet for bullet in reversed(own[:most])}.values()
    return tuple(kept)


def _document(bullets: Sequence[Bullet]) -> ContextDoc:
    def texts(section: str) -> tuple[str, ...]:
        return tuple(bullet.text for bullet in bullets if bullet.section == section)

    return ContextDoc("".join(texts("task")[:1]), *map(texts, SECTIONS[1:]))


def _without_pointers(doc: ContextDoc) -> ContextDoc:
    """Remove the message numbers that a model appends to its bullets: sources are found by search, not believed."""

    def bare(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_POINTER.sub("", text) for text in texts)

    return ContextDoc(_POINTER.sub("", doc.task), *map(bare, (doc.decisions, doc.facts, doc.pending, doc.errors)))


def _chunks(raw: Raw, room_chars: int) -> Iterator[Raw]:
    """Cut a range into pieces that fit, newest last; a message that is too long by itself is a piece of its own."""
    pending: list[Message] = []
    size = 0
    for message in raw.messages:
        length = len(_line(message, room_chars)) + 2
        if pending and size + length > room_chars:
            yield replace(raw, messages=tuple(pending), start=pending[0].seq, stop=pending[-1].seq)
            pending, size = [], 0
        pending.append(message)
        size += length
    if pending:
        yield replace(raw, messages=tuple(pending), start=pending[0].seq, stop=pending[-1].seq)


def _line(message: Message, room_chars: int) -> str:
    text = message.text
    if message.role == "tool":
        text = _ends(text, _RESULT_CHARS)
    calls = "".join(f"\ncalls {call.name} {_ends(call.arguments, _CALL_CHARS)}" for call in message.tool_calls)
    return _ends(f"[{message.seq} {message.role}] {text}{calls}", room_chars - 2)


def _ends(text: str, most: int) -> str:
    """Return a text, or its beginning and its end on lines of their own."""
    if len(text) <= most:
        return text
    return f"{text[: most * 2 // 3].rstrip()}\n{text[-(most // 3) :].lstrip()}"


def _room_chars(completer: Completer, prompt: str) -> int:
    tokens = completer.window_tokens - ANSWER_TOKENS - _RESERVED_TOKENS - len(prompt) // _CHARS_PER_TOKEN
    return max(1200, tokens * _CHARS_PER_TOKEN)


def _name_for(reader_tokens: int) -> str:
    """Name the prompt for a reader: small windows want terse lines, large ones pointers to history."""
    if reader_tokens < _SMALL_READER:
        return "compaction-small"
    return "compaction-large" if reader_tokens >= _LARGE_READER else "compaction"


class _Prompts:
    """The prompts of compaction: the user's own, else those that ship with daypack."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    def read(self, name: str, slot: str) -> str:
        """Return a prompt; one without a place for what is to be read is refused."""
        own = os.path.join(self._folder, f"{name}.md") if self._folder else ""
        path = own if own and os.path.isfile(own) else os.path.join(SHIPPED_PROMPTS, f"{name}.md")
        text = (atomic.read(path) or b"").decode("utf-8", "replace")
        if f"{{{slot}}}" not in text:
            hint = f"write {{{slot}}} where the model shall find what it reads"
            raise BadConfig("the prompt has no place for it", operation="compact", place=path, hint=hint)
        return text
