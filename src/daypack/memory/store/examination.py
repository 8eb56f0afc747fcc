"""Examines a store: the file, the checksum of every record, orphans and counts. Read-only.

Every problem that can be repaired has a step. No step loses anything: damaged records are moved to the quarantine
table, counts and links follow from the records, and a file that SQLite cannot read is copied and kept.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from daypack.files.database import is_damage
from daypack.memory.store.checksums import MemoryRecord, UserRecord, is_intact
from daypack.memory.store.counts import count_memory, right_numbers
from daypack.memory.store.port import is_id, is_store_id
from daypack.memory.store.reading import tolerant
from daypack.memory.store.rows import Owner, Row, as_text, document_of, entry_of, token_of
from daypack.memory.store.tables import DOCUMENT, ENTRY, TOKEN, compare_schema
from daypack.memory.times import now_ms
from daypack.types.memory import DamagedRecord

if TYPE_CHECKING:
    from sqlite3 import Connection

StepKind = Literal["rewrite", "quarantine", "seal", "relink", "recount", "document", "identify", "guard", "schema"]
Table = Literal["", "users", "memories", "entries", "texts", "documents", "tokens", "store"]
_MOST_LINES = 20  # of SQLite's own check
_MEMORIES = (
    "SELECT m.number, m.owner, u.user, m.id, m.title, m.type, m.description, m.created, m.deleted, m.crc,"
    " m.newest, m.documents, m.latest, m.entries, m.bytes FROM memories m LEFT JOIN users u ON u.number = m.owner"
    " ORDER BY m.number"
)
_USERS = (
    "SELECT number, user, name, email, max_memories, max_entries, max_bytes, crc, memories, entries, bytes FROM users"
    " ORDER BY number"
)
_ORPHANS: tuple[tuple[Table, str, str], ...] = (
    ("entries", "SELECT memory, seq FROM entries WHERE memory NOT IN (SELECT number FROM memories)", "its memory"),
    ("documents", "SELECT number FROM documents WHERE memory NOT IN (SELECT number FROM memories)", "its memory"),
    ("texts", "SELECT number FROM texts WHERE number NOT IN (SELECT text FROM entries)", "its entry"),
)


class Step(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One step of a repair. `key` names a row of `table`, `owner` the user that a memory belongs to."""

    kind: StepKind
    table: Table = ""
    key: tuple[Any, ...] = ()
    owner: int | None = None
    text: str


class StoreProblem(Struct, frozen=True):
    """What is wrong with a record, a count or the file, and the step that repairs it; None: only a backup does.

    `remedy` is what people can do instead, if it is not about what is stored.
    """

    what: str
    problem: str
    step: Step | None = None
    remedy: str = ""


class Examination:
    """One pass over a store. Where a page cannot be read, it continues with what can be."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._users: dict[int, str] = {}
        self._now = now_ms()

    def problems(self) -> list[StoreProblem]:
        """Return everything that is wrong."""
        found = list(self._check_file())
        with tolerant(self._connection):
            different, is_complete = self._check_schema()
        found += different
        if not is_complete:
            return found  # the records are examined once all their tables are there
        checks: tuple[Callable[[], Iterator[StoreProblem]], ...] = (
            self._check_store,
            self._check_users,
            self._check_memories,
            self._check_orphans,
            self._check_tokens,
            self._check_usage,
        )
        with tolerant(self._connection):
            for check in checks:
                try:
                    found.extend(check())
                except Exception as error:
                    if not is_damage(error):
                        raise
                    if not any(problem.step and problem.step.kind == "rewrite" for problem in found):
                        found.append(_unreadable(str(error)))
        return found

    def _check_file(self) -> Iterator[StoreProblem]:
        try:
            lines = [row[0] for row in self._all(f"PRAGMA integrity_check({_MOST_LINES})")]
        except Exception as error:
            if not is_damage(error):
                raise
            lines = [str(error)]
        if lines != ["ok"]:
            yield from map(_unreadable, (as_text(line) for line in lines))

    def _check_schema(self) -> tuple[list[StoreProblem], bool]:
        """Return what is wrong with tables, indexes and triggers, and whether the records can be examined."""
        try:
            differences = compare_schema(self._connection)
        except Exception as error:
            if not is_damage(error):
                raise
            return [_unreadable(str(error))], False
        tables = [difference for difference in differences if difference.type == "table"]
        lost = [table for table in tables if table.difference == "missing" and not table.made]
        problems: list[StoreProblem] = []
        for kind, name, difference in lost or differences:
            what = f"{kind} {as_text(name)}"
            if lost:
                problems.append(StoreProblem(what, "it does not exist, nor do its records"))
            elif difference == "different" and kind == "table":
                problems.append(_unreadable(f"the columns of {what} have other names"))
            else:
                verb = {"missing": "create", "different": "restore", "unknown": "remove"}[difference]
                problem = {
                    "missing": "it does not exist",
                    "different": "it has changed",
                    "unknown": "daypack did not make it",
                }
                step = Step(kind="schema", key=(kind, name), text=f"{verb} {what}")
                problems.append(StoreProblem(what, problem[difference], step))
        return problems, not tables

    def _all(self, query: str, values: Row = ()) -> list[Row]:
        return self._connection.execute(query, values).fetchall()

    def _check_store(self) -> Iterator[StoreProblem]:
        rows = self._all("SELECT id FROM store")
        if len(rows) != 1 or not is_store_id(rows[0][0]):
            step = Step(kind="identify", table="store", text="give the store a new id; consistency tokens are refused")
            yield StoreProblem("the store's id", "it is not 16 hexadecimal digits", step)
        if self._all("SELECT 1 FROM erasing LIMIT 1"):
            step = Step(kind="guard", text="protect entries and documents again")
            yield StoreProblem("erasures", "an erasure is marked as running, so nothing is protected", step)

    def _check_users(self) -> Iterator[StoreProblem]:
        for number, *fields, crc, _, _, _ in self._all(_USERS):
            record = UserRecord(*fields)
            self._users[number] = as_text(record.user)
            if is_intact(record, crc):
                continue
            what = f"user {as_text(record.user)}"
            step = None
            if isinstance(fields[0], str) and self._vouched(number, fields[0]):
                text = f"keep {what} as it is now and move a copy aside; check its name and quotas"
                step = Step(kind="seal", table="users", key=(number,), text=text)
            yield StoreProblem(what, "checksum mismatch", step)

    def _vouched(self, number: int, user: str) -> bool:
        """Return True if an intact record says that the user has this name; also if nothing depends on it."""
        memories = self._all("SELECT number, id FROM memories WHERE owner = ?", (number,))
        return not memories or any(self._has_intact(memory, Owner(user, id_)) for memory, id_ in memories)

    def _has_intact(self, memory: int, owner: Owner) -> bool:
        """Return True if a document or entry of a memory is intact for this owner."""
        documents = self._connection.execute(f"{DOCUMENT} ORDER BY version", (memory,))
        if any(not isinstance(document_of(row, owner), DamagedRecord) for row in documents):
            return True
        entries = self._connection.execute(f"{ENTRY} ORDER BY e.seq", (memory,))
        return any(not isinstance(entry_of(row, owner), DamagedRecord) for row in entries)

    def _check_memories(self) -> Iterator[StoreProblem]:
        for number, owner, user, *fields, crc, newest, documents, latest, entries, size in self._all(_MEMORIES):
            memory_id = fields[0]
            what = f"memory {as_text(memory_id)}"
            belongs = Owner(as_text(user), as_text(memory_id))
            if user is None or not is_intact(MemoryRecord(user, *fields), crc):
                found = self._find_owner(number, owner, memory_id)
                if found is None:
                    yield StoreProblem(what, "checksum mismatch, and no record confirms its owner")
                    continue
                belongs = Owner(self._users[found], memory_id)
                text = f"keep {what} of {belongs.user} as it is now and move a copy aside; check its title"
                step = Step(kind="seal", table="memories", key=(number,), owner=found, text=text)
                problem = "checksum mismatch" if user is not None else "its owner does not exist"
                yield StoreProblem(what, problem, step)
            yield from self._check_records(number, belongs, what)
            yield from self._check_links(number, what)
            yield from self._check_counts(number, what, ((newest, documents, latest), (entries, size)))

    def _find_owner(self, number: int, owner: int, memory_id: object) -> int | None:
        """Return the user whose memory it is, as its entries and documents state; None if none of them does."""
        if not is_id(memory_id):
            return None
        candidates = sorted(self._users, key=lambda user: user != owner)
        return next(
            (user for user in candidates if self._has_intact(number, Owner(self._users[user], str(memory_id)))), None
        )

    def _check_records(self, number: int, owner: Owner, what: str) -> Iterator[StoreProblem]:
        intact = 0
        for row in self._all(f"{DOCUMENT} ORDER BY version", (number,)):
            document = document_of(row, owner)
            if isinstance(document, DamagedRecord):
                key = self._all("SELECT number FROM documents WHERE memory = ? AND version IS ?", (number, row[0]))
                yield self._moving("documents", key[0], f"document {as_text(row[0])} of {what}", document.problem)
            else:
                intact += 1
        if not intact:
            text = f"start {what} with the placeholder as its document"
            step = Step(kind="document", table="memories", key=(number,), text=text)
            yield StoreProblem(what, "no version of its document is intact", step)
        for row in self._connection.execute(f"{ENTRY} ORDER BY e.seq", (number,)).fetchall():
            entry = entry_of(row, owner)
            if isinstance(entry, DamagedRecord):
                named = f"entry {as_text(row[0])} ({entry.id}) of {what}"
                yield self._moving("entries", (number, row[0]), named, entry.problem)

    def _moving(self, table: Table, key: Row, what: str, problem: str) -> StoreProblem:
        step = Step(kind="quarantine", table=table, key=tuple(key), text=f"move {what} to the quarantine table")
        return StoreProblem(what, problem, step)

    def _check_links(self, number: int, what: str) -> Iterator[StoreProblem]:
        """Compare the tables of tags and client keys with the entries, which state both."""
        entries = self._all("SELECT seq, tags, client_key FROM entries WHERE memory = ?", (number,))
        tags = {(tag, seq) for seq, column, _ in entries if isinstance(column, str) for tag in column.split("\n")}
        keys = {key for _, _, key in entries if key is not None}
        stored_tags = set(self._all("SELECT tag, seq FROM tags WHERE memory = ?", (number,)))
        stored_keys = dict(self._all("SELECT key, seq FROM keys WHERE memory = ?", (number,)))
        by_seq = {seq: key for seq, _, key in entries}
        if (
            stored_tags != tags
            or stored_keys.keys() != keys
            or any(by_seq.get(seq) != key for key, seq in stored_keys.items())
        ):
            text = f"list the tags and client keys of {what} again, from its entries"
            step = Step(kind="relink", table="memories", key=(number,), text=text)
            yield StoreProblem(what, "tags or client keys differ from its entries", step)

    def _check_counts(self, number: int, what: str, stored: tuple[Row, Row]) -> Iterator[StoreProblem]:
        numbers, (entries, size) = stored
        counted = count_memory(self._connection, number)
        if (entries, size) != counted:
            problem = (
                f"it counts {as_text(entries)} entries, {as_text(size)} bytes; there are {counted[0]}, {counted[1]}"
            )
            yield StoreProblem(what, problem, _recount(f"count {what} again"))
        right = right_numbers(self._connection, number, self._now)
        for name, value, other in zip(("newest entry", "newest document", "latest time"), numbers, right, strict=True):
            if value != other:
                problem = f"its {name} is {as_text(value)}; its records have {other}"
                yield StoreProblem(what, problem, _recount(f"count {what} again"))

    def _check_orphans(self) -> Iterator[StoreProblem]:
        for table, query, missing in _ORPHANS:
            for key in self._all(query):
                what = f"a row of {table} ({', '.join(map(as_text, key))})"
                yield self._moving(table, key, what, f"{missing} does not exist")
        for table in ("tags", "keys"):
            query = f"SELECT DISTINCT memory FROM {table} WHERE memory NOT IN (SELECT number FROM memories)"  # noqa: S608
            for (number,) in self._all(query):
                step = Step(kind="relink", table="memories", key=(number,), text=f"remove the {table} of no memory")
                yield StoreProblem(f"{table} of memory number {as_text(number)}", "the memory does not exist", step)

    def _check_tokens(self) -> Iterator[StoreProblem]:
        users = set(self._users.values())
        for row in self._all(TOKEN):
            token = token_of(row)
            what = f"token {as_text(row[0])}"
            if isinstance(token, DamagedRecord):
                yield self._moving("tokens", (row[0],), f"{what} (make a new one)", token.problem)
            elif token.user not in users:
                yield self._moving("tokens", (row[0],), what, f"its user {token.user} does not exist")

    def _check_usage(self) -> Iterator[StoreProblem]:
        query = "SELECT count(*), coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM memories WHERE owner = ?"
        for number, user, *_, memories, entries, size in self._all(_USERS):
            counted = self._all(query, (number,))[0]
            if (memories, entries, size) != counted:
                what = f"user {as_text(user)}"
                stored = f"{as_text(memories)} memories, {as_text(entries)} entries, {as_text(size)} bytes"
                problem = f"its usage is {stored}; there are {counted[0]}, {counted[1]}, {counted[2]}"
                yield StoreProblem(what, problem, _recount(f"count the usage of {what} again"))


def _recount(text: str) -> Step:
    return Step(kind="recount", text=text)


def _unreadable(line: str) -> StoreProblem:
    text = "write a new file with every record that can be read, and keep the old one beside it"
    return StoreProblem("the file", line, Step(kind="rewrite", text=text))
