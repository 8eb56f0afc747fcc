"""Swaps large tool outputs out of a coding agent's window, if the user asked for it: `[hooks] swap_output_tokens`.

    line 1 …
    [swapped out: ev-12, lines 58-2,968 of 3,000; `daypack recall 5ac28188 ev-12 --agent claude-code` prints all, …]
    … line 3000

The original is stored in the session before the host gets the rest: the transcript will have only that. Claude Code
takes an output in the shape that the tool gave it, and ignores others. Copilot takes a text. The other hosts take none.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from daypack.history.layout import Home, safe_name
from daypack.history.sessions import agent_of
from daypack.hooks.call import HookCall
from daypack.text.estimate import estimate_tokens
from daypack.text.injected import SWAPPED

SWAPPED_OUT = "hook.swapped"  # the event
# The keys under which the tools of Claude Code return what the model reads; other long texts are for its own use.
_SHOWN = frozenset({"stdout", "stderr", "content", "result", "results", "text", "output", "file"})
_WRITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_OWN_TOOL = re.compile(r"mcp__(?:plugin_)?daypack")
_OWN_COMMAND = re.compile(r"\bdaypack\s+(?:\S+\s+)*?(?:recall|search|log)\b")
_SHOWN_SHARE = 0.25  # of the limit, each for the head and the tail


def swap_output(call: HookCall, home: Home, most_tokens: int) -> bytes:
    """Return the answer that replaces a large output; empty if it is small, or the host takes none."""
    if call.host not in ("claude", "copilot") or _is_own(call):
        return b""
    swap = _Swap(call, home, most_tokens)
    if call.host == "copilot":
        result = call.fields.get("tool_result")
        text = cast("Mapping[str, Any]", result).get("text_result_for_llm") if isinstance(result, Mapping) else None
        replaced = swap.text(text) if isinstance(text, str) else text
        if replaced == text:
            return b""
        return msgspec.json.encode({"modifiedResult": {"resultType": "success", "textResultForLlm": replaced}})
    if call.text("tool_name") in _WRITING_TOOLS:
        return b""
    output = call.fields.get("tool_response")
    replaced = swap.value(output)
    if replaced == output:
        return b""
    answer = {"hookEventName": "PostToolUse", "updatedToolOutput": replaced}
    return msgspec.json.encode({"hookSpecificOutput": answer})


def _is_own(call: HookCall) -> bool:
    """Return True for an answer of daypack itself: what was recalled is not swapped out again."""
    arguments = call.fields.get("tool_input")
    command = cast("Mapping[str, Any]", arguments).get("command") if isinstance(arguments, Mapping) else None
    return bool(_OWN_TOOL.match(call.text("tool_name")) or (isinstance(command, str) and _OWN_COMMAND.search(command)))


class _Swap:
    """The texts of one output that are above the limit, replaced and stored."""

    def __init__(self, call: HookCall, home: Home, most_tokens: int) -> None:
        self._call = call
        self._home = home
        self._most_tokens = most_tokens

    def value(self, value: object) -> object:
        """Return a JSON value in which long texts are replaced, in the same shape."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(element) for element in cast("list[object]", value)]
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, object]", value)
            return {name: self.value(field) if name in _SHOWN else field for name, field in fields.items()}
        return value

    def text(self, text: str) -> str:
        """Return a text, or its head and tail with the id of the whole if it is above the limit."""
        # A character has at most four bytes, and a byte at most one token.
        if len(text) <= self._most_tokens // 4 or (tokens := estimate_tokens(text)) <= self._most_tokens:
            return text
        head, tail = self._ends(text, tokens)
        name, agent, stored = self._store(text, tokens)
        lines = text.count("\n") + 1
        first, last = head.count("\n") + 2, lines - tail.count("\n") - 1
        left_out = f"lines {first:,}-{last:,} of {lines:,}" if first <= last else f"{len(text):,} characters"
        command = f"daypack recall {name} {stored} --agent {agent}"
        return f"{head}\n{SWAPPED}{stored}, {left_out}; `{command}` prints all, with `--lines A-B` a part]\n{tail}"

    def _ends(self, text: str, tokens: int) -> tuple[str, str]:
        """Return the first and last whole lines of a text, a quarter of the limit each."""
        chars = int(len(text) * self._most_tokens * _SHOWN_SHARE / tokens)
        head, tail = text[:chars], text[len(text) - chars :]
        head = head[: head.rfind("\n")] if "\n" in head else head
        tail = tail[tail.find("\n") + 1 :] if "\n" in tail.rstrip("\n") else tail
        return head, tail

    def _store(self, text: str, tokens: int) -> tuple[str, str, str]:
        """Store a text in the session, on disk, and return the session, its agent and the id of the event."""
        from daypack.session import open_session  # noqa: PLC0415 — few outputs are large

        name = safe_name(self._call.session)
        agent = agent_of(self._home, self._call.agent, name)
        with suppress(OSError):
            os.chdir(self._call.cwd)  # a new session belongs to this folder; Copilot runs hooks in another
        with open_session(name, agent=agent, home=self._home.root, uid=self._home.uid) as session:
            data: dict[str, Any] = {"tool": self._call.text("tool_name"), "tokens": tokens}
            if call_id := self._call.text("tool_use_id"):
                data["call"] = call_id
            kept = session.history.capture(text.encode("utf-8", "replace"))
            return name, agent, session.append_event(SWAPPED_OUT, data | kept).id
