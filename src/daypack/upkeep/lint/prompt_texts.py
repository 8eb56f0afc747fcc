"""Read the texts of a prompt: a workspace's files, the sections daypack injects, and other files.

Their order decides which text keeps a duplicated rule: injected texts before files, AGENTS.md before SOUL.md, USER.md
and TOOLS.md, and all of them before MEMORY.md and CONTEXT.md.
"""

import os
import re
from collections.abc import Mapping, Sequence

from daypack.errors import BadInput, NotFound
from daypack.files import atomic
from daypack.history.layout import Layout
from daypack.text.statements.passages import Document, Role
from daypack.turn.items import Item
from daypack.turn.survey.sources import WORKSPACE, identity, switched

STATE = "CONTEXT.md"
MEMORY = "MEMORY.md"
BLOCKS = ("provenance", "voice")  # shipped with daypack, switched on per session
# Titles under which a file gives the rules of a block itself.
BLOCK_TITLES = {
    "provenance": re.compile(r"\b(?:verif\w+|provenance|evidence|proofs?|fact[ -]check\w*)\b", re.IGNORECASE),
    "voice": re.compile(r"\b(?:voice|speech|spoken)\b", re.IGNORECASE),
}
_ROLES: dict[str, Role] = {MEMORY: "memory", STATE: "state"}
_MAX_BYTES = 1 << 20


def read_workspace(folder: str) -> list[Document]:
    """Return the prompt files of a workspace, complete and unchanged."""
    if not os.path.isdir(folder):
        raise NotFound("no such folder", operation="lint", place=folder, hint="give the folder of the workspace")
    texts = [(name, read_text(os.path.join(folder, name))) for name in (*WORKSPACE, STATE)]
    return [Document(name, text, _ROLES.get(name, "instruction")) for name, text in texts if text and text.strip()]


def read_state(layout: Layout) -> Document | None:
    """Return the CONTEXT.md of a session."""
    text = read_text(layout.derived("context_doc"))
    return Document(STATE, text, "state") if text and text.strip() else None


def injected(folder: str, layout: Layout, model: str | None, switches: Mapping[str, bool]) -> list[Document]:
    """Return the texts that daypack injects: the identity section and all blocks, including those switched off."""
    own = identity(model, folder, layout) if switches.get("identity", True) else ()
    blocks = {**dict.fromkeys(BLOCKS, True), **dict.fromkeys((name for name, on in switches.items() if on), True)}
    items = [item for item in (*own, *switched(blocks, layout)) if isinstance(item, Item)]
    ids = [item.id.removeprefix("block:") for item in items]
    return [
        Document(name, item.text, "injected", by_line=name == "identity") for name, item in zip(ids, items, strict=True)
    ]


def read_others(paths: Sequence[str]) -> list[Document]:
    """Return other prompt texts; in a file that is not Markdown each line is an item."""
    documents: list[Document] = []
    for path in paths:
        text = read_text(os.path.realpath(path))
        if text is None:
            raise BadInput("no such file", operation="lint", place=path, hint="give a readable file after --with")
        taken = {*WORKSPACE, STATE, "identity", *BLOCKS, *(document.name for document in documents)}
        absolute = os.path.abspath(path)
        name = os.path.basename(path)
        if name in taken:
            name = os.path.join(os.path.basename(os.path.dirname(absolute)), name)
        name = absolute if name in taken else name
        documents.append(Document(name, text, "injected", by_line=not path.endswith((".md", ".markdown"))))
    return documents


def read_text(path: str) -> str | None:
    """Return the text of a file, None if it does not exist."""
    real = os.path.realpath(path)
    data = atomic.read(real)
    if data is None:
        return None
    if len(data) > _MAX_BYTES:
        hint = f"prompt texts have at most {_MAX_BYTES:,} bytes"
        raise BadInput(f"too large: {len(data):,} bytes", operation="lint", place=path, hint=hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", operation="lint", place=path, hint="convert it with iconv") from error
