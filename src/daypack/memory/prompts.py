"""The prompts of memories, by memory type: how an agent maintains the document, stores entries and summarises.

prompts/default/chat/context_prompt.md          ships with daypack
home/<uid>/prompts/chat/context_prompt.md       a user's own; takes precedence

### TOOL: add_entry                             a block that is included only for that tool
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
FALLBACK = "chat"  # for a memory type without its own prompts
_SHIPPED = os.path.join(SHIPPED_PROMPTS, "default")
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TOOL = re.compile(r"###[ \t]+TOOL:[ \t]*(?P<name>.*?)[ \t]*#*[ \t]*")
_HEADING = re.compile(r"#{1,3}[ \t]")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})")
_BLANK_LINES = re.compile(r"\n{3,}")


class Prompts(Struct, frozen=True):
    """The three prompts of a memory type; `memory_type` is the type they belong to, which may be the fallback."""

    memory_type: str
    context_prompt: str
    entry_capture_prompt: str
    summary_prompt: str

    def for_tool(self, tool: str) -> str:
        """Return all three as one text, with the blocks of one tool only."""
        return assemble((self.context_prompt, self.entry_capture_prompt, self.summary_prompt), tool)


def load_prompts(memory_type: str, folder: str | None = None) -> Prompts:
    """Return the prompts of a memory type; files in `folder` (home/<uid>/prompts) take precedence.

    A type without its own prompts uses those of "chat".
    """
    kind = memory_type if _has_own(memory_type, folder) else FALLBACK
    return Prompts(kind, *(read_prompt(kind, name, folder) for name in NAMES))


def list_prompts(folder: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield the memory type and name of every prompt: the shipped types, then the user's own."""
    own: list[str] = []
    if folder and os.path.isdir(folder):
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise StorageFailed(str(error), operation="list prompts", place=folder) from error
        own = [name for name in names if name not in TYPES and _has_own(name, folder)]
    for kind in (*TYPES, *own):
        for name in NAMES:
            yield kind, name


def read_prompt(memory_type: str, name: str, folder: str | None = None) -> str:
    """Return one prompt: the user's own, else the shipped one, else that of "chat"."""
    if name not in NAMES:
        hint = f"name one of {', '.join(NAMES)}"
        raise BadInput(f"there is no prompt {name!r}", operation="read prompt", place=memory_type, hint=hint)
    kinds = (memory_type, FALLBACK) if _KIND.fullmatch(memory_type) else (FALLBACK,)
    for kind in kinds:
        for place in (folder, _SHIPPED):
            path = os.path.join(place, kind, f"{name}.md") if place else ""
            if path and os.path.isfile(path):
                return _read(path)
    raise BadConfig("the prompt is missing", operation="read prompt", place=name, hint="reinstall daypack")


def assemble(blocks: str | Sequence[str], tool: str) -> str:
    """Return prompts as one text, with the tool blocks of one tool only.

    A block begins with its label and ends before the next heading of its level or above. Labels are compared exactly.
    """
    texts = (blocks,) if isinstance(blocks, str) else blocks
    shown = ["\n".join(_lines_for(text, tool)).strip() for text in texts]
    return _BLANK_LINES.sub("\n\n", "\n\n".join(filter(None, shown))) + "\n"


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
        raise BadConfig(
            "the file is not UTF-8", operation="read prompt", place=path, hint="fix or remove it"
        ) from error
    if not text.strip():
        raise BadConfig("the file is empty", operation="read prompt", place=path, hint="fix or remove it")
    return text
