"""Conversations to compact, and what must hold of every compaction of them."""

import json
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from daypack.derived.artifacts.observations import Artifacts
from daypack.derived.compaction.extractive import extract
from daypack.derived.raw_history import Raw, raw_of
from daypack.derived.template import MAX_BULLET_CHARS, MAX_BULLETS, problems, render
from daypack.types.compaction import SECTIONS, Bullet
from daypack.types.history import Message, ToolCall
from daypack.types.records import ContextDoc

Line = tuple[str, str] | Message


def raw(*lines: Line) -> Raw:
    """Return messages ("user", "…"), ("assistant", "…") … as raw history."""
    messages: list[Message] = []
    for seq, line in enumerate(lines, 1):
        made = line if isinstance(line, Message) else Message(role=line[0], content=line[1])  # type: ignore[arg-type]
        messages.append(msgspec.structs.replace(made, seq=seq, id=f"msg-{seq}"))
    return raw_of(messages, 1, len(messages), redacting=False)


def picked(history: Raw, section: str, artifacts: Artifacts | None = None) -> list[str]:
    return [one.text for one in extract(history, artifacts or Artifacts()) if one.section == section]


def planning(*items: tuple[str, str], tool: str = "TodoWrite") -> Message:
    named = "step" if tool == "update_plan" else "content"
    rows = [{named: text, "status": status} for text, status in items]
    arguments = json.dumps({"plan" if tool == "update_plan" else "todos": rows}, ensure_ascii=False)
    return Message(role="assistant", tool_calls=(ToolCall("c1", tool, arguments),))


def document(bullets: Iterable[Bullet]) -> ContextDoc:
    texts = {name: tuple(one.text for one in bullets if one.section == name) for name in SECTIONS}
    return ContextDoc(
        task=texts["task"][0] if texts["task"] else "",
        decisions=texts["decisions"],
        facts=texts["facts"],
        pending=texts["pending"],
        errors=texts["errors"],
    )


def check(history: Raw, bullets: tuple[Bullet, ...]) -> None:
    """Every bullet fits the template and stands so in the message it names."""
    assert problems(render(document(bullets))) == []
    words = {f"messages:{one.seq}": " ".join(_words(one)) for one in history.messages}
    for name in SECTIONS:
        own = [one for one in bullets if one.section == name]
        assert len(own) <= (1 if name == "task" else MAX_BULLETS)
        assert len({one.text for one in own}) == len(own)
    for one in bullets:
        assert 0 < len(one.text) <= MAX_BULLET_CHARS
        assert 0 <= one.weight <= 1
        assert one.section == "errors" or one.text in words[one.source], one


def _words(message: Message) -> list[str]:
    found = message.text.split()
    for call in message.tool_calls:
        found += " ".join(_strings(json.loads(call.arguments))).split()
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [one for each in cast("dict[str, Any]", value).values() for one in _strings(each)]
    if isinstance(value, list):
        return [one for each in cast("list[Any]", value) for one in _strings(each)]
    return [value] if isinstance(value, str) else []
