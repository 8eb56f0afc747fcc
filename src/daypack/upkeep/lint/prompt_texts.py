"""Read the texts of a prompt: a workspace's files, the sections daypack injects, and other files.

Their order decides which text keeps a duplicated rule: injected texts before files, AGENTS.md before SOUL.md, USER.md
and TOOLS.md, and all of them before MEMORY.md and CONTEXT.md.
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
BLOCKS = ("provenance", "voice")  # shipped with daypack, switched on per session
_ROLES: dict[str, Role] = {MEMORY: "memory", STATE: "state"}
_MAX_BYTES = 1 << 20


def read_workspace(folder: str) -> list[Document]:
    """Return the prompt files of a workspace, complete and unchanged."""
    if not os.path.isdir(folder):
        raise NotFound("no such folder", operation="lint", place=folder, hint="give the folder of the workspace")
    documents: list[Document] = []
    for name in (*WORKSPACE, STATE):
        text = read_text(os.path.join(folder, name))
        if text is not None and text.strip():
            documents.append(Document(name, text, _ROLES.get(name, "instruction")))
    return documents


def read_state(layout: Layout) -> Document | None:
    """Return the CONTEXT.md of a session."""
    text = read_text(layout.derived("context_doc"))
    return Document(STATE, text, "state") if text and text.strip() else None


def injected(folder: str, layout: Layout, model: str | None, switches: Mapping[str, bool]) -> list[Document]:
    """Return the texts that daypack injects: the identity section and all blocks, including those switched off."""
    documents: list[Document] = []
    if switches.get("identity", True):
        documents += _documents(identity(model, folder, layout), by_line=True)
    blocks = {**dict.fromkeys(BLOCKS, True), **dict.fromkeys((name for name, on in switches.items() if on), True)}
    return documents + _documents(switched(blocks, layout), by_line=False)


def read_others(paths: Sequence[str]) -> list[Document]:
    """Return other prompt texts; in a file that is not Markdown each line is an item."""
    documents: list[Document] = []
    for path in paths:
        text = read_text(os.path.realpath(path))
        if text is None:
            raise BadInput("no such file", operation="lint", place=path, hint="give a readable file after --with")
        name = os.path.basename(path)
        while any(name == document.name for document in documents) or name in (*WORKSPACE, STATE, "identity", *BLOCKS):
            name = os.path.join(os.path.basename(os.path.dirname(os.path.abspath(path))), name)
            if any(name == document.name for document in documents):
                name = os.path.abspath(path)
        documents.append(Document(name, text, "injected", by_line=not path.endswith((".md", ".markdown"))))
    return documents


def read_text(path: str) -> str | None:
    """Return the text of a file, None if it does not exist."""
    real = os.path.realpath(path)
    data = atomic.read(real)
    if data is None:
        return None
    if len(data) > _MAX_BYTES:
        raise BadInput(
            f"too large: {len(data):,} bytes",
            operation="lint",
            place=path,
            hint=f"prompt texts have at most {_MAX_BYTES:,} bytes",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", operation="lint", place=path, hint="convert it with iconv") from error


def _documents(items: Iterable[object], *, by_line: bool) -> list[Document]:
    present = [item for item in items if isinstance(item, Item)]
    return [Document(item.id.removeprefix("block:"), item.text, "injected", by_line=by_line) for item in present]
