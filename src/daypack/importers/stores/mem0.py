"""mem0: the vector store that has the memories (local Qdrant, Chroma, FAISS), its change history, and exports.

    ~/.mem0/history.db                           history: memory_id, old_memory, new_memory, event, is_deleted …
    …/collection/<name>/storage.sqlite           local Qdrant, pickled: {"id", "payload": {"data", "user_id" …}}
    …/chroma.sqlite3                             embeddings, embedding_metadata: a row for each key of the payload
    …/<name>.json or .pkl beside <name>.faiss    {"docstore": {"<id>": {"data", "user_id" …}}}
    {"results": [{"id", "memory", "user_id" …}]}  of get_all, or a list of such objects

Where only the history is left, its newest events say which memories there were.
"""

import os
from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any, cast

from daypack.errors import BadInput
from daypack.importers.stores.plain_pickle import BadPickle, read_plain
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
    OPERATION,
    find_files,
    is_sqlite,
    open_tables,
    read_bytes,
    read_json,
    starts_with,
)

NAME, TITLE = "mem0", "mem0"
_HISTORY, _POINTS, _CHROMA, _FAISS = "history.db", "storage.sqlite", "chroma.sqlite3", ".faiss"
_DEPTH = 4
_ID_CHARS = 200
_OWN = ("mem0migrations", "mem0_migrations")  # collections with mem0's own state
_ENTITIES = "_entities"  # ends the name of a collection of names, with links to memories
_KNOWN = frozenset(
    ["data", "memory", "hash", "id", "user_id", "agent_id", "run_id", "created_at", "updated_at", "text_lemmatized"]
)
_HISTORY_COLUMNS = ("memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted")


def detect(path: str) -> bool:
    """Return True if a file or folder is a store or an export of mem0."""
    if os.path.isdir(path):
        return next(_parts(path), None) is not None
    name = os.path.basename(path)
    if is_sqlite(path):
        with open_tables(path) as tables:
            history = {"memory_id", "old_memory", "new_memory"} <= tables.columns("history")
            points = tables.columns("points") == frozenset({"id", "point"})
            return history or points or {"embeddings", "embedding_metadata"} <= tables.names
    if name.endswith(_FAISS):
        return os.path.exists(_docstore(path))
    return name.endswith(".json") and _is_export(path)


def read(path: str) -> Records:
    """Yield the memories, then what the history and the vector store do not have in common."""
    if os.path.isfile(path) and not is_sqlite(path):
        yield from _read_json(_docstore(path) if path.endswith(_FAISS) else path)
        return
    parts = list(_parts(path)) if os.path.isdir(path) else [path]
    histories = [part for part in parts if _is_history(part)]
    stored: dict[str, list[StoredMemory]] = defaultdict(list)
    entities: list[tuple[str, Mapping[str, object], str]] = []
    for part in (part for part in parts if part not in histories):
        for found in _read_vectors(part):
            if isinstance(found, tuple):
                entities.append(found)
                continue
            yield found
            if isinstance(found, StoredMemory):
                stored[found.id].append(found)
    yield from _entity_orphans(entities, stored.keys())
    for history in histories:
        yield from _read_history(history, stored.keys() if len(parts) > len(histories) else None)


def _parts(folder: str) -> Iterator[str]:
    for path in find_files(folder, depth=_DEPTH):
        name = os.path.basename(path)
        collection = os.path.basename(os.path.dirname(path))
        if name == _POINTS and os.path.basename(os.path.dirname(os.path.dirname(path))) == "collection":
            if collection not in _OWN and is_sqlite(path):
                yield path
        elif name.endswith(_FAISS):
            if os.path.exists(_docstore(path)):
                yield path
        elif (name == _CHROMA and is_sqlite(path)) or (name == _HISTORY and _is_history(path)):
            yield path


def _is_history(path: str) -> bool:
    if not is_sqlite(path):
        return False
    with open_tables(path) as tables:
        return {"memory_id", "new_memory", "event"} <= tables.columns("history")


def _read_vectors(path: str) -> "Iterator[StoredMemory | Unreadable | tuple[str, Mapping[str, object], str]]":
    if path.endswith(_FAISS):
        yield from _read_json(_docstore(path))
        return
    is_chroma = os.path.basename(path) == _CHROMA
    collection = os.path.basename(os.path.dirname(path))
    for found in _chroma_payloads(path) if is_chroma else _qdrant_payloads(path):
        if isinstance(found, Unreadable):
            yield found
        elif collection.endswith(_ENTITIES) or "linked_memory_ids" in found[1]:
            yield found[0], found[1], path
        else:
            yield _memory(found[0], found[1], path)


def _qdrant_payloads(path: str) -> "Iterator[tuple[str, Mapping[str, object]] | Unreadable]":
    with open_tables(path) as tables:
        for row in tables.rows("points", ("id", "point")):
            if isinstance(row, Unreadable):
                yield row
                continue
            try:
                point = read_plain(row["point"])
            except (BadPickle, TypeError) as error:
                yield Unreadable(place=f"{path}: points", problem=f"{text_of(row['id'])[:40]}: {error}")
                continue
            payload = dict_of(dict_of(point).get("payload"))
            if payload:
                yield str(point.get("id", ""))[:_ID_CHARS], payload
            else:
                yield Unreadable(
                    place=f"{path}: points", problem=f"{text_of(row['id'])[:40]}: a point without a payload"
                )


def _chroma_payloads(path: str) -> "Iterator[tuple[str, Mapping[str, object]] | Unreadable]":
    payloads: dict[int, dict[str, object]] = defaultdict(dict)
    names: dict[int, str] = {}
    with open_tables(path) as tables:
        for row in tables.rows("embeddings", ("id", "embedding_id")):
            if isinstance(row, Unreadable):
                yield row
            else:
                names[row["id"]] = text_of(row["embedding_id"])
        for row in tables.rows("embedding_metadata", ("id", "key", "string_value", "int_value", "float_value")):
            if isinstance(row, Unreadable):
                yield row
                continue
            values = (row.get("string_value"), row.get("int_value"), row.get("float_value"))
            payloads[row["id"]][text_of(row["key"])] = next((value for value in values if value is not None), None)
    for number, name in names.items():
        payload = payloads[number]
        yield name, {"data": payload.get("chroma:document"), **payload}


def _read_json(path: str) -> "Iterator[StoredMemory | Unreadable]":
    value = _read_pickle(path) if path.endswith(".pkl") else read_json(path)
    whole = dict_of(value)
    if docstore := dict_of(whole.get("docstore")):
        items: list[Any] = [{**dict_of(payload), "id": key} for key, payload in docstore.items()]
    else:
        items = list_of(value) or list_of(whole.get("results")) or list_of(whole.get("memories"))
    for number, item in enumerate(items, 1):
        payload = dict_of(item)
        if payload:
            yield _memory(str(payload.get("id") or number)[:_ID_CHARS], payload, path)
        else:
            yield Unreadable(place=f"{path}: {number}", problem="not an object")


def _read_pickle(path: str) -> object:
    try:
        value = read_plain(read_bytes(path))
    except BadPickle as error:
        raise BadInput(str(error), operation=OPERATION, place=path) from error
    return {"docstore": cast("tuple[object, ...]", value)[0] if isinstance(value, tuple) and value else {}}


def _is_export(path: str) -> bool:
    head = starts_with(path)
    if not head.lstrip().startswith((b"{", b"[")):
        return False
    if b'"docstore"' not in head and b'"memory"' not in head:
        return False
    try:
        records = list(_read_json(path))
    except BadInput:
        return False
    texts = sum(isinstance(record, StoredMemory) and bool(record.text) for record in records)
    return 2 * texts > len(records)


def _memory(name: str, payload: Mapping[str, object], path: str) -> StoredMemory | Unreadable:
    extra = {**payload, **dict_of(payload.get("metadata"))}
    tags = [text_of(tag) for tag in list_of(payload.get("categories"))]
    return checked(
        StoredMemory(
            id=name,
            text=text_of(payload.get("data") or payload.get("memory")),
            owner=Owner(
                user=text_of(payload.get("user_id")),
                agent=text_of(payload.get("agent_id")),
                run=text_of(payload.get("run_id")),
            ),
            created_at=text_of(payload.get("created_at")),
            updated_at=text_of(payload.get("updated_at")),
            place=path,
            tags=tuple(filter(None, tags)),
            metadata=texts_of(extra, _KNOWN | {"metadata"}),
        )
    )


def _entity_orphans(entities: "list[tuple[str, Mapping[str, object], str]]", known: Container[str]) -> Records:
    for name, payload, path in entities:
        links = [str(link) for link in list_of(payload.get("linked_memory_ids"))]
        if links and not any(link in known for link in links):
            problem = f"the entity {text_of(payload.get('data'))[:60]!r} is linked to no memory that exists"
            yield Orphan(id=name, problem=problem, place=path)


def _read_history(path: str, known: Collection[str] | None) -> Records:
    """Yield what the history says: memories if there is no vector store, else the differences from it."""
    newest: dict[str, tuple[str, dict[str, Any]]] = {}
    created: dict[str, str] = {}
    with open_tables(path) as tables:
        for row in tables.rows("history", _HISTORY_COLUMNS):
            if isinstance(row, Unreadable):
                yield row
                continue
            name = text_of(row.get("memory_id"))
            moment = text_of(row.get("updated_at")) or text_of(row.get("created_at"))
            created.setdefault(name, text_of(row.get("created_at")) or moment)
            if name not in newest or newest[name][0] <= moment:
                newest[name] = moment, row
    for name, (moment, row) in newest.items():
        is_deleted = row.get("event") == "DELETE" or row.get("is_deleted") == 1
        if is_deleted and known is not None and name in known:
            yield Orphan(id=name, problem="deleted according to the history, but still in the vector store", place=path)
        if is_deleted:
            continue
        if known is None:
            text, first = text_of(row.get("new_memory")), created[name]
            later = moment if moment != first else ""
            yield checked(StoredMemory(id=name, text=text, created_at=first, updated_at=later, place=path))
        elif name not in known:
            yield Orphan(id=name, problem="in the history, but not in the vector store", place=path)
    for name in sorted(set(known or ()) - newest.keys()):
        yield Orphan(id=name, problem="in the vector store, but not in the history", place=path)


def _docstore(path: str) -> str:
    """Return the file with the texts of a FAISS index: JSON, or a pickle if an older version wrote it."""
    stem = path.removesuffix(_FAISS)
    return f"{stem}.pkl" if not os.path.exists(f"{stem}.json") and os.path.exists(f"{stem}.pkl") else f"{stem}.json"
