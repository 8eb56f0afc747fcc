"""Letta: agent files, the database of a server, and the folder of memory files that Letta Code keeps in git.

    agent.af            {"agents": [{"id", "name", "block_ids" …}], "blocks": [{"id", "label", "value" …}] …}
                        or, of older versions, {"name", "core_memory": [{"label", "value" …}] …}
    ~/.letta/sqlite.db  block, blocks_agents, agents, archival_passages (before: agent_passages), archives_agents
    <agent>/memory/     system/human.md, system/persona.md …: Markdown with `description:` in its front matter

Blocks and passages are memories; messages are history, and not read here.
"""

import os
from collections import defaultdict
from collections.abc import Iterator

from daypack.errors import BadInput
from daypack.importers.stores.front_matter import split_front_matter
from daypack.importers.stores.records import (
    Orphan,
    Owner,
    Records,
    StoredMemory,
    Unreadable,
    checked,
    dict_of,
    list_of,
    text_of,
    texts_of,
)
from daypack.importers.stores.store_files import (
    Tables,
    find_files,
    is_sqlite,
    open_tables,
    read_bytes,
    read_json,
    starts_with,
)

NAME, TITLE = "letta", "Letta"
_DATABASE, _AGENT_FILE = "sqlite.db", ".af"
_CORE = "system"  # the folder of memory files that are always in the prompt
_NOT_MEMORY = ("skills/",)
_PASSAGES = ("archival_passages", "agent_passages")
_PASSAGE = ("id", "text", "agent_id", "archive_id", "created_at", "updated_at", "is_deleted", "tags")
_BLOCK = ("id", "label", "value", "description", "created_at", "updated_at", "is_deleted", "is_template")


def detect(path: str) -> bool:
    """Return True if a path is an agent file, a database of a server, or a folder of memory files."""
    if os.path.isdir(path):
        return is_sqlite(os.path.join(path, _DATABASE)) or next(_memory_files(path), None) is not None
    if is_sqlite(path):
        with open_tables(path) as tables:
            return {"label", "value"} <= tables.columns("block")
    head = starts_with(path)
    if path.endswith(_AGENT_FILE):
        return head.lstrip().startswith(b"{")
    if not head.lstrip().startswith(b"{") or not any(name in head for name in (b'"core_memory"', b'"agents"')):
        return False
    try:
        whole = dict_of(read_json(path))
    except BadInput:
        return False
    return isinstance(whole.get("core_memory"), list) or {"agents", "blocks"} <= whole.keys()


def read(path: str) -> Records:
    """Yield the blocks and passages, then blocks that no agent has."""
    if os.path.isdir(path) and not is_sqlite(os.path.join(path, _DATABASE)):
        yield from _read_folder(path)
    elif os.path.isdir(path) or is_sqlite(path):
        yield from _read_database(os.path.join(path, _DATABASE) if os.path.isdir(path) else path)
    else:
        yield from _read_agent_file(path)


def _read_agent_file(path: str) -> Records:
    whole = dict_of(read_json(path))
    agents = [dict_of(agent) for agent in list_of(whole.get("agents"))]
    owners: dict[str, list[str]] = defaultdict(list)
    for agent in agents:
        for block_id in list_of(agent.get("block_ids")):
            owners[text_of(block_id)].append(text_of(agent.get("name")) or text_of(agent.get("id")))
    blocks = [dict_of(block) for block in list_of(whole.get("blocks"))]
    for number, block in enumerate(blocks, 1):
        name = text_of(block.get("id")) or f"block-{number}"
        for owner in owners.get(name) or [""]:
            yield _block(name if len(owners.get(name, ())) < 2 else f"{name}@{owner}", block, owner, path)
        if agents and name not in owners:
            yield Orphan(id=name, problem=f"no agent has the block {text_of(block.get('label'))!r}", place=path)
    for name in owners.keys() - {text_of(block.get("id")) for block in blocks}:
        yield Orphan(id=name, problem="an agent has this block, but it is not in the file", place=path)
    older = [dict_of(block) for block in list_of(whole.get("core_memory"))]
    for number, block in enumerate(older, 1):
        name = f"{text_of(block.get('label')) or number}"
        yield _block(f"core-{name}", block, text_of(whole.get("name")), path)


def _block(name: str, block: dict[str, object], agent: str, path: str) -> StoredMemory | Unreadable:
    return checked(
        StoredMemory(
            id=name,
            text=text_of(block.get("value")),
            subject=text_of(block.get("label")),
            kind="block",
            owner=Owner(agent=agent),
            created_at=text_of(block.get("created_at")),
            updated_at=text_of(block.get("updated_at")),
            place=path,
            metadata=texts_of({"description": block.get("description")}, frozenset()),
        )
    )


def _read_database(path: str) -> Records:
    with open_tables(path) as tables:
        agents = {text_of(row["id"]): text_of(row.get("name")) for row in _rows(tables, "agents", ("id", "name"))}
        owners: dict[str, list[str]] = defaultdict(list)
        for row in _rows(tables, "blocks_agents", ("agent_id", "block_id")):
            owners[text_of(row.get("block_id"))].append(text_of(row.get("agent_id")))
        seen: set[str] = set()
        for row in tables.rows("block", _BLOCK):
            if isinstance(row, Unreadable):
                yield row
                continue
            name = text_of(row.get("id"))
            seen.add(name)
            if row.get("is_deleted") or row.get("is_template"):
                continue
            holders = owners.get(name, [])
            yield _block(name, row, agents.get(holders[0], holders[0]) if holders else "", f"{path}: block")
            if not holders:
                problem = f"no agent has the block {text_of(row.get('label'))!r}"
                yield Orphan(id=name, problem=problem, place=f"{path}: block")
        for name in sorted(owners.keys() - seen):
            yield Orphan(id=name, problem="an agent has this block, but it is missing", place=f"{path}: blocks_agents")
        yield from _passages(tables, path, agents)


def _passages(tables: Tables, path: str, agents: dict[str, str]) -> Records:
    archives = {
        text_of(row.get("archive_id")): text_of(row.get("agent_id"))
        for row in _rows(tables, "archives_agents", ("archive_id", "agent_id"))
    }
    for table in _PASSAGES:
        for row in tables.rows(table, _PASSAGE):
            if isinstance(row, Unreadable):
                yield row
                continue
            if row.get("is_deleted"):
                continue
            agent = text_of(row.get("agent_id")) or archives.get(text_of(row.get("archive_id")), "")
            name = text_of(row.get("id"))
            yield checked(
                StoredMemory(
                    id=name,
                    text=text_of(row.get("text")),
                    kind="passage",
                    owner=Owner(agent=agents.get(agent, agent)),
                    created_at=text_of(row.get("created_at")),
                    updated_at=text_of(row.get("updated_at")),
                    place=f"{path}: {table}",
                )
            )
            if agent not in agents:
                yield Orphan(id=name, problem="no agent has this passage", place=f"{path}: {table}")


def _rows(tables: Tables, table: str, columns: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for row in tables.rows(table, columns):
        if not isinstance(row, Unreadable):
            yield row


def _memory_files(folder: str) -> Iterator[str]:
    """Yield the memory files of Letta Code, if the folder has some that are always in the prompt."""
    core = os.path.join(folder, _CORE)
    if not os.path.isdir(core) or os.path.islink(core):
        return
    head = starts_with(next(find_files(core, suffix=".md"), ""))
    if split_front_matter(head.decode("utf-8", "replace"))[0].keys() & {"description", "limit"}:
        yield from find_files(folder, suffix=".md")


def _read_folder(folder: str) -> Records:
    agent = os.path.basename(os.path.dirname(folder)) if os.path.basename(folder) == "memory" else ""
    for path in _memory_files(folder):
        name = os.path.relpath(path, folder)
        if name.startswith(_NOT_MEMORY):
            continue
        fields, text = split_front_matter(read_bytes(path).decode("utf-8", "replace"))
        yield checked(
            StoredMemory(
                id=name,
                text=text.strip(),
                subject=name.removesuffix(".md"),
                kind="block",
                owner=Owner(agent=agent),
                place=path,
                metadata=texts_of(fields, frozenset()),
            )
        )
