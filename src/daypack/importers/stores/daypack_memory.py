"""daypack's own memories: the store of a home, an exported archive, or a bare context document.

<root>/home/<uid>/memory/store.sqlite       every memory of every user; hidden ones are left out
memory.jsonl                                the output of `daypack memory export`
CONTEXT.md                                  Markdown: each item is a memory, its heading the subject
"""

import glob
import os
from collections.abc import Iterator

import msgspec

from daypack.errors import BadInput
from daypack.importers.stores.records import (
    Owner,
    Records,
    StoredMemory,
    Unreadable,
    checked,
    dict_of,
    list_of,
    text_of,
)
from daypack.importers.stores.store_files import OPERATION, is_sqlite, open_tables, read_bytes, starts_with
from daypack.memory.store.rows import split_tags
from daypack.memory.times import format_time
from daypack.text.statements.passages import BULLET, Document
from daypack.types.memory import PLACEHOLDER

NAME, TITLE = "daypack", "daypack"
_STORE = os.path.join("memory", "store.sqlite")
_HEADER = b'{"daypack":"memory"'
_MEMORIES = "SELECT m.number, m.id, u.user FROM memories m JOIN users u ON u.number = m.owner WHERE m.deleted IS NULL"
_ENTRIES = (
    "SELECT e.seq, e.moment, e.created, e.session, e.role, e.author, e.tags, t.raw FROM entries e"
    " LEFT JOIN texts t ON t.number = e.text WHERE e.memory = ? ORDER BY e.seq"
)
_DOCUMENT = "SELECT version, created, content FROM documents WHERE memory = ? ORDER BY version DESC LIMIT 1"


def detect(path: str) -> bool:
    """Return True if a path is a home, a store, an archive or a Markdown file."""
    if os.path.isdir(path):
        return bool(_stores(path))
    if is_sqlite(path):
        with open_tables(path) as tables:
            return {"users", "memories", "entries", "texts", "documents"} <= tables.names
    return starts_with(path, 64).replace(b" ", b"").startswith(_HEADER) or path.endswith(".md")


def read(path: str) -> Records:
    """Yield the entries and the newest context document of every memory."""
    if os.path.isdir(path):
        for store in _stores(path):
            yield from _read_store(store)
    elif is_sqlite(path):
        yield from _read_store(path)
    elif path.endswith(".md"):
        yield from _read_document(read_bytes(path).decode("utf-8", "replace"), path, "", Owner())
    else:
        yield from _read_archive(path)


def _stores(folder: str) -> list[str]:
    patterns = (_STORE, os.path.join("home", "*", _STORE), "store.sqlite")
    found = (glob.glob(os.path.join(glob.escape(folder), pattern)) for pattern in patterns)
    return sorted({store for stores in found for store in stores if is_sqlite(store)})


def _read_store(path: str) -> Records:
    with open_tables(path) as tables:
        for number, memory_id, user in tables.select(_MEMORIES):
            owner = Owner(user=text_of(user))
            for seq, moment, created, session, role, author, tags, raw in tables.select(_ENTRIES, number):
                place = f"{path}: {memory_id}"
                if not isinstance(raw, bytes):
                    yield Unreadable(place=place, problem=f"entry {seq} has no text")
                    continue
                yield checked(
                    StoredMemory(
                        id=f"{memory_id}/{seq}",
                        text=raw.decode("utf-8", "replace"),
                        kind="entry",
                        owner=Owner(user=owner.user, run=text_of(session)),
                        created_at=format_time(moment if isinstance(moment, int) else created),
                        place=place,
                        tags=split_tags(tags),
                        metadata={key: text_of(value) for key, value in (("role", role), ("author", author)) if value},
                    )
                )
            for version, _, content in tables.select(_DOCUMENT, number):
                yield from _read_document(text_of(content), f"{path}: {memory_id}", f"{memory_id}/v{version}", owner)


def _read_archive(path: str) -> Records:
    document, owner = "", Owner()
    for number, line in enumerate(read_bytes(path).splitlines(), 1):
        try:
            item = dict_of(msgspec.json.decode(line.decode("utf-8", "replace"))) if line.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            if number == 1:
                raise BadInput("the first line is no header of a memory", operation=OPERATION, place=path) from None
            yield Unreadable(place=f"{path}:{number}", problem="not valid JSON")
            continue
        if number == 1 and item.get("daypack") != "memory":
            raise BadInput("the first line is no header of a memory", operation=OPERATION, place=path)
        document = text_of(dict_of(item.get("document")).get("content")) or document
        entry = dict_of(item.get("entry"))
        if entry:
            yield checked(
                StoredMemory(
                    id=text_of(entry.get("entry_id")) or f"line-{number}",
                    text=text_of(entry.get("raw_entry")),
                    kind="entry",
                    owner=Owner(run=text_of(entry.get("session"))),
                    created_at=text_of(entry.get("at")) or text_of(entry.get("created_at")),
                    place=f"{path}:{number}",
                    tags=tuple(map(text_of, list_of(entry.get("tags")))),
                    metadata={key: text_of(entry[key]) for key in ("role", "author") if entry.get(key)},
                )
            )
    yield from _read_document(document, path, "document", owner)


def _read_document(text: str, place: str, name: str, owner: Owner) -> Iterator[StoredMemory | Unreadable]:
    document = Document(place, "" if text == PLACEHOLDER else text)
    for item in document.items:
        section = document.section_at(item.lines)
        body = item.text[bullet.end() :] if (bullet := BULLET.match(item.text)) else item.text
        yield checked(
            StoredMemory(
                id=f"{name}:{item.lines}" if name else str(item.lines),
                text=body.strip(),
                subject=section.title if section else "",
                kind="document",
                owner=owner,
                place=f"{place}:{item.lines.first}",
            )
        )
