"""A store of format 1, as earlier versions wrote it: its checksums cover texts only."""

import sqlite3
from pathlib import Path
from zlib import crc32

MEMORY = "ab" * 16
STEM = b"0123456789ab"
_SCHEMA = """
PRAGMA application_id=1685089585;
PRAGMA user_version=1;
CREATE TABLE store(id TEXT NOT NULL, unclean INT NOT NULL DEFAULT 0);
INSERT INTO store(id) VALUES ('0123456789abcdef');
CREATE TABLE users(
    number INTEGER PRIMARY KEY, user TEXT NOT NULL UNIQUE, name TEXT NOT NULL, email TEXT NOT NULL DEFAULT '',
    max_memories INT, max_entries INT, max_bytes INT,
    memories INT NOT NULL DEFAULT 0, entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0
);
CREATE TABLE memories(
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner INT NOT NULL, title TEXT NOT NULL,
    type TEXT NOT NULL, description TEXT NOT NULL, created INT NOT NULL, deleted INT,
    newest INT NOT NULL DEFAULT 0, documents INT NOT NULL DEFAULT 0, latest INT NOT NULL DEFAULT 0,
    entries INT NOT NULL DEFAULT 0, bytes INT NOT NULL DEFAULT 0
);
CREATE INDEX memories_of ON memories(owner);
CREATE TABLE entries(
    memory INT NOT NULL, seq INT NOT NULL, text INT NOT NULL, stem BLOB NOT NULL, created INT NOT NULL,
    moment INT NOT NULL, session TEXT, role TEXT, author TEXT, at TEXT, source TEXT, tags TEXT,
    PRIMARY KEY(memory, seq)
) WITHOUT ROWID;
CREATE TABLE texts(number INTEGER PRIMARY KEY, raw BLOB NOT NULL, summary TEXT, crc INT NOT NULL);
CREATE TABLE documents(
    number INTEGER PRIMARY KEY, memory INT NOT NULL, version INT NOT NULL, stem BLOB NOT NULL, created INT NOT NULL,
    content TEXT NOT NULL, crc INT NOT NULL
);
CREATE UNIQUE INDEX documents_of ON documents(memory, version);
CREATE TABLE tags(memory INT, tag TEXT, seq INT, PRIMARY KEY(memory, tag, seq)) WITHOUT ROWID;
CREATE TABLE keys(memory INT, key TEXT, seq INT, PRIMARY KEY(memory, key)) WITHOUT ROWID;
CREATE TABLE tokens(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL UNIQUE, user TEXT NOT NULL, name TEXT NOT NULL, scope TEXT NOT NULL,
    created TEXT NOT NULL, expires TEXT
) WITHOUT ROWID;
CREATE TABLE erasing(memory INT);
CREATE TRIGGER {0}_unchanged BEFORE UPDATE ON {0} BEGIN SELECT RAISE(ABORT, '{0} are never changed'); END;
CREATE TRIGGER {0}_kept BEFORE DELETE ON {0} WHEN NOT EXISTS (SELECT 1 FROM erasing)
BEGIN SELECT RAISE(ABORT, '{0} are only erased'); END;
CREATE TRIGGER {1}_unchanged BEFORE UPDATE ON {1} BEGIN SELECT RAISE(ABORT, '{1} are never changed'); END;
CREATE TRIGGER {1}_kept BEFORE DELETE ON {1} WHEN NOT EXISTS (SELECT 1 FROM erasing)
BEGIN SELECT RAISE(ABORT, '{1} are only erased'); END;
CREATE TRIGGER {2}_unchanged BEFORE UPDATE ON {2} BEGIN SELECT RAISE(ABORT, '{2} are never changed'); END;
CREATE TRIGGER {2}_kept BEFORE DELETE ON {2} WHEN NOT EXISTS (SELECT 1 FROM erasing)
BEGIN SELECT RAISE(ABORT, '{2} are only erased'); END;
""".format("entries", "texts", "documents")


def write_store(path: Path, entries: int, damaged: int = 0) -> None:
    """Write a store with one memory of the user "local"; the text of entry `damaged` does not match its checksum."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = sqlite3.connect(path)
    file.executescript(_SCHEMA)
    file.execute("INSERT INTO users VALUES (1, 'local', 'local', '', NULL, 1000, NULL, 1, ?, ?)", (entries, entries))
    row = (MEMORY, entries, entries)
    file.execute("INSERT INTO memories VALUES (1, ?, 1, 'Old', 'chat', '', 1, NULL, ?, 1, 1, ?, 9)", row)
    file.execute(
        "INSERT INTO documents VALUES (1, 1, 1, ?, 1, 'the old document', ?)", (STEM, _crc("the old document"))
    )
    file.execute("INSERT INTO tokens VALUES ('t1', x'01', 'local', 'name', 'read', 'now', NULL)")
    for seq in range(1, entries + 1):
        text = f"old entry {seq}"
        file.execute("INSERT INTO texts VALUES (?, ?, NULL, ?)", (seq, text.encode(), _crc(text) + (seq == damaged)))
        words = ("s", "user", "Ada", None, None, "t1\nt2")
        file.execute("INSERT INTO entries VALUES (1, ?, ?, ?, 1, 1, ?, ?, ?, ?, ?, ?)", (seq, seq, STEM, *words))
        file.execute("INSERT INTO keys VALUES (1, ?, ?)", (f"key {seq}", seq))
        file.executemany("INSERT INTO tags VALUES (1, ?, ?)", [("t1", seq), ("t2", seq)])
    file.commit()
    file.close()


def _crc(text: str) -> int:
    return crc32(text.encode())
