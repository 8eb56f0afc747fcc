"""The prompts of memories: how an agent keeps the document, stores entries and summarises, by memory type.

prompts/default/chat/context_prompt.md          ships with daypack
home/<uid>/prompts/chat/context_prompt.md       a user's own; goes before it

### TOOL: add_entry                             a block that counts only while that tool is called
"""

import os
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from daypack.errors import BadConfig, BadInput, StorageFailed
from daypack.files import atomic
from daypack.prompts import SHIPPED_PROMPTS

NAMES = ("context_prompt", "entry_capture_prompt", "summary_prompt")
TYPES = ("chat", "task", "project")
FALLBACK = "chat"  # for a memory type that has no prompts of its own
_SHIPPED = os.path.join(SHIPPED_PROMPTS, "default")
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TOOL = re.compile(r"###[ \t]+TOOL:[ \t]*(?P<name>.*?)[ \t]*#*[ \t]*")
_HEADING = re.compile(r"#{1,3}[ \t]")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})")
_BLANK_LINES = re.compile(r"\n{3,}")


class Prompts(Struct, frozen=True):
    """The three prompts of a memory type, and whose they are: the type itself, or the one it falls back to."""

    memory_type: str
    context_prompt: str
    entry_capture_prompt: str
    summary_prompt: str

    def for_tool(self, tool: str) -> str:
        """Return all three as one text, with only the blocks of one tool."""
        return assemble((self.context_prompt, self.entry_capture_prompt, self.summary_prompt), tool)


def load_prompts(memory_type: str, folder: str | None = None) -> Prompts:
    """Return the prompts of a memory type; `folder` is home/<uid>/prompts, whose files go first.

    A type without prompts of its own has those of "chat".
    """
    kind = memory_type if _has_own(memory_type, folder) else FALLBACK
    return Prompts(kind, *(read_prompt(kind, name, folder) for name in NAMES))


def list_prompts(folder: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield memory type and name of every prompt there is: the types that ship with daypack, then a user's own."""
    own: list[str] = []
    if folder and os.path.isdir(folder):
        try:
            found = sorted(os.listdir(folder))
        except OSError as error:
            raise StorageFailed(str(error), operation="list prompts", place=folder) from error
        own = [one for one in found if one not in TYPES and _has_own(one, folder)]
    for kind in (*TYPES, *own):
        for name in NAMES:
            yield kind, name


def read_prompt(memory_type: str, name: str, folder: str | None = None) -> str:
    """Return one prompt: the user's own, else the one that ships with daypack, else that of "chat"."""
    if name not in NAMES:
        hint = f"there are {', '.join(NAMES)}"
        raise BadInput(f"there is no prompt {name!r}", operation="read prompt", place=memory_type, hint=hint)
    kinds = (memory_type, FALLBACK) if _KIND.fullmatch(memory_type) else (FALLBACK,)
    for kind in kinds:
        for place in (folder, _SHIPPED):
            path = os.path.join(place, kind, f"{name}.md") if place else ""
            if path and os.path.isfile(path):
                return _read(path)
    raise BadConfig("the prompt is missing", operation="read prompt", place=name, hint="install daypack again")


def assemble(blocks: str | Sequence[str], tool: str) -> str:
    """Return prompts as one text in which, of the blocks for tools, only those of the tool that is called remain.

    A block begins with its label and ends before the next heading of its level or above. Labels are compared exactly.
    """
    texts = (blocks,) if isinstance(blocks, str) else blocks
    kept = ["\n".join(_lines_for(text, tool)).strip() for text in texts]
    return _BLANK_LINES.sub("\n\n", "\n\n".join(one for one in kept if one)) + "\n"


def _lines_for(text: str, tool: str) -> Iterator[str]:
    shown, fence = True, ""
    for line in text.splitlines():
        marked = _FENCE.match(line)
        if marked and (not fence or line.strip() == fence):
            fence = "" if fence else marked["fence"]
        elif not fence:
            label = _TOOL.fullmatch(line)
            if label:
                shown = label["name"] == tool
            elif _HEADING.match(line):
                shown = True
        if shown:
            yield line


def _has_own(memory_type: str, folder: str | None) -> bool:
    if not _KIND.fullmatch(memory_type):
        return False
    places = (os.path.join(place, memory_type) for place in (folder, _SHIPPED) if place)
    return any(os.path.isfile(os.path.join(place, f"{name}.md")) for place in places for name in NAMES)


def _read(path: str) -> str:
    try:
        text = (atomic.read(path) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadConfig("is not UTF-8", operation="read prompt", place=path, hint="mend or remove the file") from error
    if not text.strip():
        raise BadConfig("is empty", operation="read prompt", place=path, hint="mend or remove the file")
    return text
