"""Sessions to copy: intact, with blobs, damaged and hand-written; and the bytes they have in both places."""

import os
from hashlib import sha256

import daypack
from daypack.history.layout import Home
from daypack.history.postgres.rewriting import SessionRows
from daypack.history.postgres.store import open_store
from daypack.session import Session

UID = "ada"


def furnished(home: str, name: str = "work", store: str = "", turns: int = 3) -> None:
    """Create a session with messages, turns, pins, children, a budget, a state and texts that are blobs."""
    with daypack.open_session(
        name, home=home, uid=UID, store=store, durability="os", workspace="", model="gpt-4o"
    ) as session:
        fill(session, turns)


def fill(session: Session, turns: int = 3) -> None:
    session.pin("rule.md", "Be brief. " * 900)
    for number in range(turns):
        session.append(
            "user", f"What is the depth at buoy {number}?", client_key=f"k{len(session.tail(10_000))}-{number}"
        )
        session.prepare(budget=8000, items=[{"content": f"chart {number} " * 700, "context_kind": "manual_note"}])
        session.accept(f"It is {number} metres.")
    session.put_child("rev-1", handoff="Check the chart.", result="It is fine.")


def damage(home: str, name: str = "work") -> None:
    """Damage lines of both logs of a file session: a flipped byte, zeros, hand-written and foreign lines."""
    layout = Home(home, UID).session("default", name)
    for path in (layout.messages, layout.events):
        with open(path, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        lines[0] = lines[0].replace(b'"seq":1', b'"seq":7', 1)
        lines.insert(2, b"\0" * 700 + b"\n")
        lines.insert(3, b'{"role":"user","content":"by hand"}\n')
        lines.append(b'not json at all \xff\xfe\n{"seq":99,"id":"msg-99","half":\n')
        with open(path, "wb") as file:
            file.write(b"".join(lines))
    blob = os.path.join(layout.blob, sorted(os.listdir(layout.blob))[0])
    with open(blob, "r+b") as file:
        file.write(b"!")


def bytes_of_folder(home: str, name: str = "work") -> dict[str, str]:
    """Return the digests of the files of a session that are copied."""
    layout = Home(home, UID).session("default", name)
    paths = [layout.messages, layout.events, layout.meta, layout.cwd, layout.created_at]
    blobs = [blob for blob in sorted(os.listdir(layout.blob)) if not blob.startswith(".tmp-")]
    paths += [os.path.join(layout.blob, blob) for blob in blobs]
    return {os.path.relpath(path, layout.folder): _digest(path) for path in paths}


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


def rows_of(url: str, name: str = "work") -> SessionRows:
    store = open_store(url, UID)
    opened = store.find("default", name)
    assert opened is not None
    return SessionRows(store.database, UID, opened.stored.number)


def bytes_of_database(url: str, name: str = "work") -> dict[str, str]:
    """Return the digests of what a database has of a session, by the names of the files."""
    rows = rows_of(url, name)
    known = rows.known()
    logs = [b"".join(row.data for row in rows.read(known.generation, log)) for log in (0, 1)]
    files = dict(zip(("messages.jsonl", "events.jsonl"), logs, strict=True))
    files |= {"meta.json": known.files.meta, "cwd": known.files.cwd, "created_at": known.files.created_at}
    for blob in rows.stored.blob_names():
        files[os.path.join("blob", blob)] = rows.stored.blob(blob) or b""
    return {path: sha256(data).hexdigest() for path, data in files.items()}
