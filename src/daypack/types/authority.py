"""Authority: who a text comes from, and whether it may instruct the model.

A text made from several sources has the lowest of their authorities, so copying, quoting or summarising never raises
one. Where a text is placed follows from its authority: only `system` and `user` may be in the system prompt.

Programs put texts of their own into a conversation, with the role of the user. Importers mark them with their writer:

    {"role":"user","content":"<task-notification>…","meta":{"writer":"agent"}}
    {"role":"user","content":[{"type":"text","text":"Fix it"},{"type":"text","text":"…","meta":{"writer":"hook"}}]}
    {"role":"user","content":"<command-name>/fix</command-name>…","meta":{"writer":"command","own_words":"only a.py"}}

A marked text is history like any other: it is stored, shown and compacted. But it does not say what the user wants,
knows or forbids: no rule, no memory and no title is taken from it.
"""

from collections.abc import Iterable
from typing import Any, Literal, cast, get_args

from msgspec.structs import replace

from daypack.types.history import Message, Text

# Highest first.
Authority = Literal["system", "user", "agent", "tool", "web"]
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)
# Of what is made from a conversation or kept across conversations: tools may have spoken in them, and nothing records
# which of its sentences are theirs.
MADE_FROM_HISTORY: Authority = "tool"
QUOTED = "quoted"  # key in `meta` of a system message that is history of another program, not an instruction
# harness: the program that ran the agent (reminders, caveats, interruptions, the environment, texts of skills)
# hook: context that a hook added; command: a command of the program, or the output of a command of the user
# agent: another agent (the task of a sub-agent, its result); summary: the summary of a compaction by the program
Writer = Literal["harness", "hook", "command", "agent", "summary"]
WRITERS: tuple[Writer, ...] = get_args(Writer)
WRITER, OWN_WORDS = "writer", "own_words"  # keys in the meta of a message; the first also in that of a text part
SUMMARY = "foreign_summary"  # key in the meta of a summary that an importer of an earlier version marked

INSTRUCTING: frozenset[Authority] = frozenset({"system", "user"})  # they may be in the system prompt
_OF_ROLE: dict[str, Authority] = {"system": "system", "user": "user", "assistant": "agent", "tool": "tool"}


def lowest(authorities: Iterable[Authority]) -> Authority:
    """Return the lowest authority: that of anything made from several sources; without any, the lowest there is."""
    return AUTHORITIES[max(map(AUTHORITIES.index, authorities), default=len(AUTHORITIES) - 1)]


def authority_of(message: Message) -> Authority:
    """Return the authority of a message: that of its role, unless it is only quoted, or another program wrote it."""
    writer = writer_of(message)
    if writer == "agent" and message.role == "user":
        return "agent"
    return MADE_FROM_HISTORY if writer or is_quoted(message) else _OF_ROLE[message.role]


def is_quoted(message: Message) -> bool:
    """Return True for a system message that was imported as history: it is no instruction here."""
    return message.role == "system" and bool(message.meta) and message.meta.get(QUOTED) is True


def writer_of(message: Message) -> Writer | None:
    """Return who wrote a message in the place of its role; None if that is who its role says."""
    meta = message.meta
    if not meta:
        return None
    if (mark := _mark(meta)) is not None:
        return mark
    if meta.get(SUMMARY):
        return "summary"
    row = meta.get("row")
    is_meta = isinstance(row, dict) and cast(dict[str, Any], row).get("isMeta") is True
    return "harness" if is_meta or meta.get("is_demo") else None


def users_part(message: Message) -> Message | None:
    """Return what the user wrote of a message with the role of the user; None if that is nothing."""
    meta = message.meta or {}
    if writer_of(message):
        own = meta.get(OWN_WORDS)
        return replace(message, content=own, meta=None) if isinstance(own, str) and own.strip() else None
    if isinstance(message.content, str):
        return message
    parts = tuple(part for part in message.content if not (isinstance(part, Text) and _mark(part.meta or {})))
    if len(parts) == len(message.content):
        return message
    return replace(message, content=parts) if parts else None


def text_without_hooks(message: Message) -> str:
    """Return the text of a message without context that hooks added: it was said elsewhere."""
    if message.meta and message.meta.get(WRITER) == "hook":
        return ""
    if isinstance(message.content, str):
        return message.text
    texts = [part for part in message.content if isinstance(part, Text)]
    return "\n".join(part.text for part in texts if not (part.meta and part.meta.get(WRITER) == "hook"))


def without_marks(message: Message) -> Message:
    """Return a message without the marks of this module: an importer of an earlier version did not set them."""
    meta = {name: value for name, value in (message.meta or {}).items() if name not in (WRITER, OWN_WORDS)}
    content = message.content
    if not isinstance(content, str):
        content = tuple(_without_mark(part) if isinstance(part, Text) else part for part in content)
    return replace(message, content=content, meta=meta or None)


def _without_mark(part: Text) -> Text:
    meta = {name: value for name, value in (part.meta or {}).items() if name != WRITER}
    return replace(part, meta=meta or None)


def _mark(meta: dict[str, Any]) -> Writer | None:
    mark = meta.get(WRITER)
    return next((writer for writer in WRITERS if writer == mark), None)
