"""Finds text that a memory gave out and that was stored again: injected blocks, lists of memories, quoted memories."""

import re
from collections.abc import Mapping, Sequence

from daypack.importers.audit.duplicates import Scope, normal_text, scope_of
from daypack.importers.audit.findings import Finding
from daypack.importers.stores.records import StoredMemory
from daypack.text.injected import PAST_INTRODUCTION, QUOTED_INTRODUCTION, RECALLED, SAME, SWAPPED, strip_blocks

_OWN = (RECALLED, SWAPPED, SAME, QUOTED_INTRODUCTION, PAST_INTRODUCTION)
# Blocks and headings under which known systems put memories into a prompt.
_INJECTED = re.compile(
    r"<(?:relevant[-_ ]?memories|memories|memory_blocks|memory_context|retrieved_memories|user_memories"
    r"|recalled_memor\w+|claude-mem-context|mem0[-_]\w+|supermemory-context|hindsight_memories)\b[^>\n]{0,200}>"
    r"|^[ \t>*#-]{0,8}(?:\*\*)?(?:(?:here are (?:the|some) )?(?:relevant|retrieved|recalled|related|stored"
    r"|past|existing) memor(?:y|ies)(?: (?:about|for|from) [^\n:]{1,60})?|user memories|memories of the user"
    r"|relevant (?:context|information) from (?:memory|memories|past conversations))(?:\*\*)?[ \t]*:",
    re.IGNORECASE | re.MULTILINE,
)
# A fence of any other system has memory in its name and holds a sentence: <memory unit="KiB">4096</memory> is none.
_FENCE = re.compile(
    r"<((?:[a-z]{1,20}[-_]){0,3}memor(?:y|ies)(?:[-_][a-z]{1,20}){0,3})(?:\s[^>\n]{0,200})?>", re.IGNORECASE
)
_FENCED_WORDS = 4
_HEADING = re.compile(r"^#{1,6} (?:[\w-]+ )?memor(?:y|ies)[ \t]*:?$", re.IGNORECASE | re.MULTILINE)
_PREFIX = re.compile(
    r"\s*(?:\[?(?:memory|memories|recalled?|remembered|from memory|stored fact|known fact|relevant memory)\]?"
    r"(?:[ #]?\d{1,4})?\s*[:\]–—-]|(?:i|the assistant) (?:recalled?|remembered|retrieved)"
    r"(?: from memory)?(?: that|:))\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[^\]\n]{1,40}\][ \t]*)?")
_SCORE = re.compile(r"[ \t]*[\[(](?:score|relevance|similarity)[^\])\n]{1,30}[\])][ \t]*$", re.IGNORECASE)
_QUOTED_WORDS = 3  # of a memory that is recognised within another
_LISTED = 2  # memories that a list of them has at least


def find_recalled(memories: Sequence[StoredMemory]) -> list[Finding]:
    """Return the memories that contain what a memory system injected, or that quote other memories."""
    known: dict[tuple[Scope, str], int] = {}
    for at, memory in enumerate(memories):
        known.setdefault((scope_of(memory), normal_text(memory.text)), at)
    found: list[Finding] = []
    for at, memory in enumerate(memories):
        if memory.kind in ("document", "prompt"):
            continue
        finding = _recalled(at, memory, known)
        if finding is not None:
            found.append(finding)
    return found


def _recalled(at: int, memory: StoredMemory, known: Mapping[tuple[Scope, str], int]) -> Finding | None:
    text = memory.text
    if any(mark in text for mark in _OWN) or strip_blocks(text) != text:
        return Finding(kind="recalled text", at=at, problem="has text that daypack injected")
    if match := _INJECTED.search(text):
        return Finding(kind="recalled text", at=at, problem=f"has injected memories: {match[0].strip()[:40]}")
    if name := _fence(text):
        return Finding(kind="recalled text", at=at, problem=f"has injected memories: <{name[:40]}>")
    prefix = _PREFIX.match(text)
    if prefix and prefix.end() < len(text):
        quoted = _known(text[prefix.end() :], memory, known)
        if quoted is not None and quoted != at:
            return Finding(kind="recalled text", at=at, other=quoted, problem="quotes another memory")
    if "\n" not in text:
        return None
    lines = [_SCORE.sub("", _BULLET.sub("", line)) for line in text.splitlines() if line.strip()]
    listed = {quoted for line in lines if (quoted := _known(line, memory, known)) is not None and quoted != at}
    if len(listed) >= (1 if _HEADING.search(text) else _LISTED) and 2 * len(listed) >= len(lines) - 1:
        problem = "lists another memory" if len(listed) == 1 else f"lists {len(listed):,} other memories"
        return Finding(kind="recalled text", at=at, other=min(listed), problem=problem)
    return None


def _fence(text: str) -> str:
    """Return the name of a fence around memories; "" if there is none."""
    first = {opening[1]: opening for opening in reversed(list(_FENCE.finditer(text)))} if "</" in text else {}
    for name, opening in first.items():
        inside, closing, _ = text[opening.end() :].partition(f"</{name}>")
        if closing and (len(inside.split()) >= _FENCED_WORDS or not inside.isascii()):
            return name
    return ""


def _known(text: str, memory: StoredMemory, known: Mapping[tuple[Scope, str], int]) -> int | None:
    words = normal_text(text)
    return known.get((scope_of(memory), words)) if len(words.split()) >= _QUOTED_WORDS or not words.isascii() else None
