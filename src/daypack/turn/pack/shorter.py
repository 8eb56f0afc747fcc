"""Shorter forms of prefix items, for windows that cannot hold the whole: the newest facts of MEMORY.md, or one line.

An instruction is never cut, because half of one can say the opposite; a line says that it exists and where it is.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from daypack.text.trim import trim
from daypack.turn.items import SHOWN, Cost, Item
from daypack.turn.pack.fence import Measure
from daypack.types.names import one_line

SHORTER = "~shorter"  # suffix of the id of a shorter form
_WORKSPACE = "workspace:"
_MEMORY = f"{_WORKSPACE}MEMORY.md"
_STEP = 0.8  # each form of MEMORY.md has this part of the longer one
_MAX_CHARS = 6  # of a token
_SUMMARY_CHARS = 200
_MIN_SUMMARY_CHARS = 40  # a heading alone says little
_HEADING = re.compile(r"#{1,6}\s")


def shorter_forms(items: Sequence[Item], room: Cost, measure: Measure) -> dict[str, tuple[Item, ...]]:
    """Return the shorter forms of items by their id, the longest first."""
    found: dict[str, tuple[Item, ...]] = {}
    for item in items:
        if item.source == _MEMORY:
            found[item.id] = tuple(_newest_facts(item, room, measure))
        elif item.kind == "child_result":
            found[item.id] = (measure(_result_line(item)),)
        elif item.kind == "system":
            why = f"its {item.tokens:,} tokens do not fit into this window"
            found[item.id] = (measure(line_for(item, why)),)
    return found


def line_for(item: Item, why: str) -> Item:
    """Return one line that names an instruction, and says why it is not shown and where it is."""
    where = ""
    if item.source.startswith(_WORKSPACE):
        where = " It is in the workspace: read it there before you act."
    elif item.id.startswith("messages:"):
        where = f" Recall {item.id} to read it."
    name = one_line(item.title or item.source)
    text = f"{name} applies and is not shown: {why}.{where}"
    metadata = item.metadata | {SHOWN: "a line that names it"}
    title = "" if item.instructs else item.title
    return replace(
        item, id=item.id + SHORTER, kind="refs", context_kind="artifact_ref", title=title, text=text, metadata=metadata
    )


def _result_line(item: Item) -> Item:
    """Return one line for the result of a child: how it begins, its size, and how to read it."""
    child = item.id.partition(":")[2]
    lines = (line.strip("#*->` \t\r") for line in item.text.split("\n"))
    text = (
        f"Result of child {child}, {item.tokens:,} tokens, not shown whole: {trim(_begins(lines), _SUMMARY_CHARS)}"
        f" (recall child:{child} returns it; {item.source} in the session)"
    )
    metadata = item.metadata | {SHOWN: "a line with how it begins"}
    return replace(item, id=item.id + SHORTER, context_kind="artifact_ref", text=text, metadata=metadata)


def _begins(lines: Iterable[str]) -> str:
    """Return the first lines with words, until there is a sentence."""
    words = ""
    for line in lines:
        words = f"{words}: {line}" if words and line else words or line
        if len(words) >= _MIN_SUMMARY_CHARS:
            break
    return one_line(" ".join(words.split()))


class _Fact(NamedTuple):
    heading: str  # the line it is below; empty if there is none
    text: str


def _newest_facts(item: Item, room: Cost, measure: Measure) -> Iterator[Item]:
    """Return MEMORY.md with fewer and fewer facts; those at its end are the newest."""
    facts = _facts(item.text)
    most = min(len(item.text), room.tokens * _MAX_CHARS)
    before = len(facts)
    while most:
        most = int(most * _STEP)
        kept = _last(facts, most)
        if not kept:
            return
        if len(kept) < before:
            before = len(kept)
            shown = f"the newest {before:,} of {len(facts):,} facts"
            yield measure(
                replace(
                    item,
                    id=item.id + SHORTER,
                    text=_text(kept),
                    title=f"{item.title} ({shown})",
                    metadata=item.metadata | {SHOWN: shown},
                )
            )


def _last(facts: Sequence[_Fact], max_chars: int) -> Sequence[_Fact]:
    """Return the last facts that have at most so many characters with their headings."""
    used, start = 0, len(facts)
    for at in range(len(facts) - 1, -1, -1):
        fact = facts[at]
        new = at + 1 == len(facts) or facts[at + 1].heading != fact.heading
        used += len(fact.text) + 1 + (len(fact.heading) + 2 if new else 0)
        if used > max_chars:
            break
        start = at
    return facts[start:]


def _facts(text: str) -> list[_Fact]:
    """Return the facts of a document: a bullet with the lines indented below it, or a paragraph."""
    facts: list[_Fact] = []
    heading, open_fact = "", False
    for line in text.splitlines():
        if _HEADING.match(line):
            heading, open_fact = line, False
        elif not line.strip():
            open_fact = False
        elif open_fact and (line[:1].isspace() or not line.startswith(("-", "*", "+"))):
            facts[-1] = _Fact(heading, f"{facts[-1].text}\n{line}")
        else:
            facts.append(_Fact(heading, line))
            open_fact = True
    return facts


def _text(facts: Sequence[_Fact]) -> str:
    lines: list[str] = []
    heading = ""
    for fact in facts:
        if fact.heading != heading:
            heading = fact.heading
            lines += ["", heading] if lines else [heading]
        lines.append(fact.text)
    return "\n".join(lines)
