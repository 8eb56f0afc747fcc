"""The reference memory server of MCP: a graph as JSONL. Each observation of an entity is a memory.

{"type":"entity","name":"Ada","entityType":"person","observations":["Lives in Berlin"]}
{"type":"relation","from":"Ada","to":"Berlin","relationType":"lives_in"}
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from daypack.importers.stores.records import (
    Link,
    Orphan,
    Records,
    StoredMemory,
    Unreadable,
    checked,
    dict_of,
    list_of,
    text_of,
)
from daypack.importers.stores.store_files import read_bytes, starts_with

NAME, TITLE = "mcp-memory", "MCP reference memory"
_KINDS = ("entity", "relation")


def detect(path: str) -> bool:
    """Return True if a file is a graph: its first line that is not empty is an entity or a relation."""
    for line in starts_with(path, 1 << 16).splitlines():
        if line.strip():
            item = _decode(line)
            return item.get("type") in _KINDS and ("entityType" in item or "relationType" in item)
    return False


def read(path: str) -> Records:
    """Yield the observations of every entity, then entities without any and relations to entities that are missing."""
    entities: list[tuple[int, str, dict[str, Any]]] = []
    relations: list[tuple[int, str, str, str]] = []
    for number, item in _lines(path):
        if isinstance(item, Unreadable):
            yield item
        elif item.get("type") == "entity":
            entities.append((number, text_of(item.get("name")), item))
        elif item.get("type") == "relation":
            source, target, kind = (text_of(item.get(key)) for key in ("from", "to", "relationType"))
            relations.append((number, source, target, kind))
        else:
            yield Unreadable(place=f"{path}:{number}", problem="neither an entity nor a relation")
    links: dict[str, list[Link]] = defaultdict(list)
    for _, source, target, kind in relations:
        links[source].append(Link(kind, target))
    for number, name, item in entities:
        texts = list_of(item.get("observations"))
        for at, text in enumerate(texts, 1):
            yield checked(
                StoredMemory(
                    id=f"{name}#{at}",
                    text=text_of(text),
                    kind="observation",
                    place=f"{path}:{number}",
                    links=tuple(links[name]) if at == 1 else (),
                    subject=name,
                    metadata={"entity_type": text_of(item.get("entityType"))},
                )
            )
        if not texts:
            yield Orphan(id=name, problem="an entity without observations", place=f"{path}:{number}")
    names = {name for _, name, _ in entities}
    for number, source, target, kind in relations:
        for end in dict.fromkeys(end for end in (source, target) if end not in names):
            problem = f"the relation {source} {kind} {target} names {end!r}, which is no entity"
            yield Orphan(id=f"{source} {kind} {target}", problem=problem, place=f"{path}:{number}")


def _lines(path: str) -> "Iterator[tuple[int, dict[str, Any] | Unreadable]]":
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        if not line.strip():
            continue
        item = _decode(line)
        yield number, item or Unreadable(place=f"{path}:{number}", problem="not a JSON object")


def _decode(line: bytes) -> dict[str, Any]:
    try:
        return dict_of(msgspec.json.decode(line.decode("utf-8", "replace")))
    except (msgspec.DecodeError, RecursionError):
        return {}
