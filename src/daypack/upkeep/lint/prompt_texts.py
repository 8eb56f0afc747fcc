"""Read the texts of a prompt: a workspace's files, the sections daypack injects, and other files.

Their order decides which text keeps a duplicated rule: injected texts before files, AGENTS.md before SOUL.md, USER.md
and TOOLS.md, and all of them before MEMORY.md and CONTEXT.md.
"""

import os
from collections.abc import Mapping, Sequence

from daypack.errors import BadInput, NotFound, UnsafePath
from daypack.files import atomic
from daypack.history.layout import Layout
from daypack.text.statements.passages import Document, Role
from daypack.turn.items import Item
from daypack.turn.survey.sources import WORKSPACE, identity, switched

STATE = "CONTEXT.md"
MEMORY = "MEMORY.md"
BLOCKS = ("provenance", "voice")  # shipped with daypack, switched on per session
# What a section of a file that gives the rules of a block itself is called.
BLOCK_TITLES = {"provenance": "verification provenance evidence proof fact checking", "voice": "voice speech spoken"}
_ROLES: dict[str, Role] = {MEMORY: "memory", STATE: "state"}
_MAX_BYTES = 1 << 20


def read_workspace(folder: str, layout: Layout | None = None) -> list[Document]:
    """Return the prompt files of a workspace, unchanged; the CONTEXT.md of a session replaces the one of the folder."""
    if folder and not os.path.isdir(folder):
        raise NotFound("no such folder", operation="lint", place=folder, hint="give the folder of the workspace")
    texts = {name: find_text(os.path.join(folder, name)) for name in (*WORKSPACE, STATE)} if folder else {}
    if layout and (state := find_text(layout.derived("context_doc"))):
        texts[STATE] = state
    return [
        Document(name, text, _ROLES.get(name, "instruction")) for name, text in texts.items() if text and text.strip()
    ]


def injected(folder: str, layout: Layout, model: str | None, switches: Mapping[str, bool]) -> list[Document]:
    """Return the texts that daypack injects: the identity section and all blocks, including those switched off."""
    own = identity(model, folder, layout) if switches.get("identity", True) else ()
    blocks = {**dict.fromkeys(BLOCKS, True), **dict.fromkeys((name for name, on in switches.items() if on), True)}
    items = [item for item in (*own, *switched(blocks, layout)) if isinstance(item, Item)]
    texts = {item.id.removeprefix("block:"): item.text for item in items}
    return [Document(name, text, "injected", by_line=name == "identity") for name, text in texts.items()]


def read_others(paths: Sequence[str]) -> list[Document]:
    """Return other prompt texts; in a file that is not Markdown each line is an item."""
    documents: dict[str, Document] = {}
    for path in paths:
        absolute = os.path.abspath(path)
        names = [os.path.basename(path), os.path.join(*absolute.split(os.sep)[-2:]), absolute]
        taken = {*WORKSPACE, STATE, "identity", *BLOCKS, *documents}
        name = next((name for name in names if name not in taken), absolute)
        by_line = not path.endswith((".md", ".markdown"))
        documents[name] = Document(name, read_text(path), "injected", by_line=by_line)
    return list(documents.values())


def read_text(path: str) -> str:
    """Return the text of a file that must exist."""
    text = find_text(path)
    if text is None:
        raise BadInput("no such file", operation="lint", place=path, hint="give a readable file")
    return text


def find_text(path: str) -> str | None:
    """Return the text of a file, None if it does not exist."""
    try:
        data = atomic.read(os.path.realpath(path))
    except UnsafePath as error:
        raise BadInput(error.problem, operation="lint", place=path, hint="give a plain file") from error
    if data is None:
        return None
    if len(data) > _MAX_BYTES:
        hint = f"prompt texts have at most {_MAX_BYTES:,} bytes"
        raise BadInput(f"too large: {len(data):,} bytes", operation="lint", place=path, hint=hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", operation="lint", place=path, hint="convert it with iconv") from error
