"""The texts that go into a prompt: a workspace's files, what daypack injects itself, and what others add.

Their order says who keeps a thing that two of them say: what is injected before files, AGENTS.md before SOUL.md,
USER.md and TOOLS.md, and all of them before MEMORY.md and CONTEXT.md.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from daypack.errors import BadInput, NotFound
from daypack.files import atomic
from daypack.history.layout import Layout
from daypack.turn.items import Item
from daypack.turn.survey.sources import WORKSPACE, identity, switched
from daypack.upkeep.lint.passages import Document, Role

STATE = "CONTEXT.md"
MEMORY = "MEMORY.md"
BLOCKS = ("provenance", "voice")  # they ship with daypack; a session switches them on
_ROLES: dict[str, Role] = {MEMORY: "memory", STATE: "state"}
_MOST_BYTES = 1 << 20


def read_workspace(folder: str) -> list[Document]:
    """Return the files of a workspace that speak to an agent, without MEMORY.md's tail cut or anything added."""
    if not os.path.isdir(folder):
        raise NotFound("no such folder", operation="lint", place=folder, hint="name the workspace")
    found: list[Document] = []
    for name in (*WORKSPACE, STATE):
        text = read_text(os.path.join(folder, name))
        if text is not None and text.strip():
            found.append(Document(name, text, _ROLES.get(name, "instruction")))
    return found


def read_state(layout: Layout) -> Document | None:
    """Return the CONTEXT.md of a session."""
    text = read_text(layout.derived("context_doc"))
    return Document(STATE, text, "state") if text and text.strip() else None


def injected(folder: str, layout: Layout, model: str | None, switches: Mapping[str, bool]) -> list[Document]:
    """Return what daypack puts in itself: the identity section, and every block, also one that is switched off."""
    found: list[Document] = []
    if switches.get("identity", True):
        found += _documents(identity(model, folder, layout), by_line=True)
    every = {**dict.fromkeys(BLOCKS, True), **dict.fromkeys((name for name, on in switches.items() if on), True)}
    return found + _documents(switched(every, layout), by_line=False)


def read_others(paths: Sequence[str]) -> list[Document]:
    """Return other texts that go into the prompt; one that is not Markdown says something of its own in each line."""
    found: list[Document] = []
    for path in paths:
        text = read_text(os.path.realpath(path))
        if text is None:
            raise BadInput("no such file", operation="lint", place=path, hint="name a readable file after --with")
        name = os.path.basename(path)
        while any(name == one.name for one in found) or name in (*WORKSPACE, STATE, "identity", *BLOCKS):
            name = os.path.join(os.path.basename(os.path.dirname(os.path.abspath(path))), name)
            if any(name == one.name for one in found):
                name = os.path.abspath(path)
        found.append(Document(name, text, "injected", by_line=not path.endswith((".md", ".markdown"))))
    return found


def read_text(path: str) -> str | None:
    """Return the text of a file, None when there is none."""
    real = os.path.realpath(path)
    data = atomic.read(real)
    if data is None:
        return None
    if len(data) > _MOST_BYTES:
        raise BadInput(f"has {len(data):,} bytes", operation="lint", place=path, hint="a prompt text is far smaller")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", operation="lint", place=path, hint="convert it with iconv") from error


def _documents(items: Iterable[object], *, by_line: bool) -> list[Document]:
    found = [item for item in items if isinstance(item, Item)]
    return [Document(item.id.removeprefix("block:"), item.text, "injected", by_line=by_line) for item in found]
