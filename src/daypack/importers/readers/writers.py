"""Who wrote the rows with the role of the user, by what the programs record about them.

Newer versions record it; in the rows of older ones a text of the program is recognised by the tags around all of it.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from daypack.importers.transcript import list_of, object_of, text_of
from daypack.types.authority import OWN_WORDS, WRITER, Writer

# Claude Code: `origin.kind` of a row; every other kind is one of the program.
_USERS = ("human",)
_AGENTS = ("task-notification", "peer", "coordinator", "observer", "observer-activity")
# `promptSource` and `turnOrigin` of what a person or the caller of the SDK wrote.
_TYPED = ("typed", "queued", "sdk", "suggestion_accepted", "human")
_TAGGED = re.compile(r"\s*<([A-Za-z][\w:-]{0,60})(?: [^<>]{0,400})?>(.*?)</\1>\s*", re.DOTALL)
_COMMAND_TAGS = re.compile(r"command-\w+|local-command-\w+|bash-\w+|user_shell_command")
_HARNESS_TAGS = re.compile(
    r"system[-_]reminder|ide_\w+|new-diagnostics|environment_context|user_instructions|turn_aborted|skill|"
    r"current_datetime|permissions[\w-]*|skills_instructions|apps_instructions|session_context"
)
_HOOK_TAGS = re.compile(r"[\w-]*-hook|user_prompt_submit_hook|qwen:[\w-]+-context|hook_context")
_AGENT_TAGS = re.compile(r"task-notification|teammate-message|cross-session-message|subagent_notification")
_ARGUMENTS = "command-args"
_MID_TURN = "mid_turn_user_message"  # Qwen Code: the user typed it while the agent worked
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]*\]")
_HOOK_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)  # Gemini CLI, before the prompt
_APPENDED_CONTEXT = re.compile(r"\n\n<hook_context>[^<>]*</hook_context>\Z")  # it replaces < and > in the text
_AGENTS_FILE = "# AGENTS.md instructions"


class Written(NamedTuple):
    """Who wrote a text, and the words of the user in it."""

    writer: Writer | None = None
    own_words: str = ""

    @property
    def meta(self) -> dict[str, Any]:
        """The keys of a message's meta."""
        found: dict[str, Any] = {WRITER: self.writer} if self.writer else {}
        return found | ({OWN_WORDS: self.own_words} if self.own_words else {})


def claude_writer(fields: dict[str, Any], text: str | None) -> Written:
    """Return who wrote a user row of Claude Code; `text` is its content if that is one text."""
    if fields.get("isCompactSummary"):
        return Written("summary")
    kind = text_of(object_of(fields.get("origin")).get("kind"))
    if kind is not None and kind not in _USERS:
        return Written("agent" if kind in _AGENTS else "harness")
    tagged = tag_writer(text) if text is not None else Written()
    if fields.get("isMeta"):
        return tagged if tagged.writer else Written("harness")
    source = text_of(fields.get("promptSource")) or text_of(fields.get("turnOrigin"))
    if source is not None:
        return Written() if source in _TYPED else Written("harness")
    if tagged.writer or kind is not None:
        return tagged
    return Written("agent") if fields.get("isSidechain") else Written()


def mark_parts(content: str | list[dict[str, Any]], writers: Sequence[Writer | None] | None = None) -> Written:
    """Mark the text parts that the user did not write; if these are all parts, return the writer instead."""
    if isinstance(content, str):
        return Written(next(iter(writers or ()), None))
    texts = [part for part in content if part.get("type") == "text"]
    found: list[Writer | None] = [tag_writer(str(part.get("text"))).writer for part in texts]
    if writers is not None and len(writers) == len(content):
        found = [writer for part, writer in zip(content, writers, strict=True) if part.get("type") == "text"]
    if len(texts) == len(content) and len(set(found)) == 1:
        return Written(found[0])
    for part, writer in zip(texts, found, strict=True):
        if writer:
            part["meta"] = {**object_of(part.get("meta")), WRITER: writer}
    return Written()


def codex_writers(item: dict[str, Any], user: Writer | None = None) -> list[Writer | None]:
    """Return who wrote each part of a message of Codex; `user` is who speaks in the place of the user."""
    return [writer or user for writer in _codex_writers(item)]


def _codex_writers(item: dict[str, Any]) -> list[Writer | None]:
    parts = list_of(item.get("content"))
    recorded = list_of(object_of(item.get("internal_chat_message_metadata_passthrough")).get("content_item_metadata"))
    if len(recorded) == len(parts):
        return [_provenance(object_of(object_of(about).get("provenance"))) for about in recorded]
    return [tag_writer(str(object_of(part).get("text") or "")).writer for part in parts]


def _provenance(provenance: dict[str, Any]) -> Writer | None:
    if provenance.get("type") in (None, "user"):
        return None
    return "hook" if provenance.get("hook") else "harness"


def copilot_writer(fields: dict[str, Any]) -> Written:
    """Return who wrote a user message of Copilot CLI; its `content` is without the context of hooks."""
    data = object_of(fields.get("data"))
    source = text_of(data.get("source"))
    if fields.get("agentId") or (source and source.startswith("agent-")):
        return Written("agent")
    if data.get("isAutopilotContinuation") or (source is not None and source != "user"):
        return Written("harness")
    return Written()


def qwen_writer(fields: dict[str, Any], content: str | list[dict[str, Any]]) -> Written:
    """Return who wrote a user row of Qwen Code, and mark parts that the user did not write.

    `displayText` is what the user typed. Other texts beside it are context of hooks and contents of files.
    """
    payload = object_of(fields.get("systemPayload"))
    if fields.get("isSidechain") or payload.get("backgroundTask"):
        return Written("agent")
    subtype = fields.get("subtype")
    if fields.get("provenance") not in (None, "real_user") or subtype not in (None, _MID_TURN, "realtime_message"):
        return Written("harness")
    typed = text_of(payload.get("displayText"))
    texts = [content] if isinstance(content, str) else [str(part.get("text")) for part in content if "text" in part]
    if typed is None or (isinstance(content, str) and content == typed):
        return mark_parts(content)
    if typed not in texts:
        return Written("command", typed)
    if isinstance(content, str):
        return Written()
    return mark_parts(content, [_beside(part.get("text"), typed) for part in content])


def gemini_writer(content: str | list[dict[str, Any]], typed: str, *, is_agent: bool) -> Written:
    """Return who wrote a user row of Gemini CLI, and mark parts that the user did not write.

    `typed` is what the user typed if that is recorded: other texts beside it are contents of files.
    """
    if is_agent:
        return Written("agent")
    texts = [content] if isinstance(content, str) else [str(part.get("text")) for part in content if "text" in part]
    if typed and typed not in texts:
        return Written("command", typed)
    if isinstance(content, str):
        return Written() if typed else tag_writer(content)
    return mark_parts(content, [_beside(part.get("text"), typed) for part in content] if typed else None)


def split_hook_context(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts in which the context of hooks is apart from the prompt that follows it in the same text."""
    split: list[dict[str, Any]] = []
    for part in parts:
        text = part.get("text")
        context = _HOOK_CONTEXT.match(text) if isinstance(text, str) and not part.get("thought") else None
        if context and isinstance(text, str) and context.end() < len(text):
            split += [{"text": context[0].strip()}, {**part, "text": text[context.end() :]}]
        else:
            split.append(part)
    return split


def split_appended_context(text: str) -> tuple[str, str]:
    """Return the output of a tool, and the context that a hook of Gemini CLI appended to it; "" if there is none."""
    context = _APPENDED_CONTEXT.search(text)
    return (text[: context.start()], context[0].strip()) if context else (text, "")


def without_hook_context(parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return parts without the context of hooks."""
    split = split_hook_context([object_of(part) for part in parts])
    return [part for part in split if not _HOOK_CONTEXT.fullmatch(str(part.get("text")))]


def _beside(text: object, typed: str) -> Writer | None:
    """Return who wrote a text in the same message as what the user typed."""
    if text == typed:
        return None
    return (tag_writer(text).writer if isinstance(text, str) else None) or "harness"


def tag_writer(text: str) -> Written:
    """Return who wrote a text that consists of tagged blocks of a program, or is a notice of it."""
    stripped = text.strip()
    if _INTERRUPTED.fullmatch(stripped) or stripped.startswith(_AGENTS_FILE):
        return Written("harness")
    blocks = _blocks(stripped)
    writers = {_of_tag(tag) for tag, _ in blocks}
    if not blocks or None in writers:
        return Written()
    own = next((inner.strip() for tag, inner in blocks if tag == _ARGUMENTS), "")
    order: Sequence[Writer] = ("command", "agent", "hook", "harness")
    return Written(next(writer for writer in order if writer in writers), own)


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return the tags and contents of the blocks that a text consists of; none if there is anything else in it."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        block = _TAGGED.match(text, at)
        if block is None:
            return []
        found.append((block[1], block[2]))
        at = block.end()
    return found


def _of_tag(tag: str) -> Writer | None:
    if _COMMAND_TAGS.fullmatch(tag):
        return "command"
    if _AGENT_TAGS.fullmatch(tag):
        return "agent"
    if _HOOK_TAGS.fullmatch(tag):
        return "hook"
    return "harness" if _HARNESS_TAGS.fullmatch(tag) else None
