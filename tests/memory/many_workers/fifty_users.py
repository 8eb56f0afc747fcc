"""Fifty users of one database, each with a secret, and the proof that everybody has what they had, and nothing else."""

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import postgres_server
import psycopg
from memory.store.stores import new_entry
from msgspec.structs import replace

from daypack.history.home import find_home
from daypack.memory.backend import Backend, open_backend
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.search.postgres.indexes import PostgresIndexes
from daypack.memory.store.port import NewDocument, NewMemory
from daypack.memory.store.postgres.store import PostgresStore
from daypack.memory.tools import Memories

USERS, ENTRIES, TOP = 50, 12, 10
COMMON = "vault harbour opens"  # words that everybody's entries have
# Names that the tools allow, and that would end a statement, a pattern or an array that is put together from texts.
_ODD_NAMES = (
    "' OR '1'='1", "'; DROP TABLE users; --", "$$", "%s", "%", "_", "{a,b}", '"', "o''brien", "NULL", "user-3'",
    "ʼ", "日本", "USER-5", "daypack_operator", "user 6", "a=b&c", "x" * 120,
)  # fmt: skip


class Person(NamedTuple):
    """A user with a memory that attacks aim at, and one for what the user writes during an attack.

    `secret` is in all texts of the memory and is never sent; `bait` is there too, and attackers know it.
    """

    name: str
    secret: str
    bait: str
    memory_id: str
    scratch_id: str
    number: int  # of the memory in the database
    entry_ids: tuple[str, ...]
    document_id: str
    barrier: str

    @property
    def key(self) -> str:
        return f"key of {self.name}"

    @property
    def session(self) -> str:
        return f"session of {self.name}"

    @property
    def entry_id(self) -> str:
        return self.entry_ids[0]


class HashedWords:
    """An embedder: each word has a direction."""

    name, dimensions, weight, instant = "hashed words", 64, 1.0, True

    def encode(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for at, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                rows[at] += self._direction(word)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    @staticmethod
    @cache
    def _direction(word: str) -> Any:
        seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
        return np.random.default_rng(seed).standard_normal(HashedWords.dimensions).astype(np.float32)

    def close(self) -> None: ...


class Town:
    """The database, its users, and both ways to search it."""

    def __init__(self, url: str, home: Path, seed: int, users: int = USERS) -> None:
        self.url = url
        self.home = home
        self.chance = random.Random(seed)
        self.backend = open_backend(find_home(str(home), "0"), url)
        assert isinstance(self.backend.primary, PostgresStore)
        self.store = self.backend.primary
        indexes = IndexCache(PostgresIndexes(self.store.database), HashedWords)
        self.with_vectors = Backend(self.store, indexes, positions=self.backend.positions, server=self.backend.server)
        self.log = postgres_server.running_server().folder / "log"
        self._log_size = self.log.stat().st_size
        names = [*_ODD_NAMES, *(f"user-{number}" for number in range(users))][:users]
        self.people = [self._settle(name) for name in names]
        self._secrets = re.compile("|".join(person.secret for person in self.people).encode())
        self._digests = {person.name: self.digest(person) for person in self.people}

    def close(self) -> None:
        self.with_vectors.indexes.close()
        self.backend.close()

    def memories(self, person: Person) -> Memories:
        return Memories(self.backend, person.name)

    def two(self) -> tuple[Person, Person]:
        """Return an attacker and a victim."""
        me, other = self.chance.sample(self.people, 2)
        return me, other

    def _settle(self, name: str) -> Person:
        secret, bait = (
            prefix + "".join(self.chance.choice("bdfgklmnprstvz") + self.chance.choice("aeiou") for _ in range(6))
            for prefix in ("se", "ba")
        )
        marked = f"{secret} {bait}"
        raws = [f"The vault of the harbour opens with {marked}, note {number}." for number in range(ENTRIES)]
        raws += [f"Lunch was soup {number}, said {marked}." for number in range(ENTRIES)]
        entries = [
            new_entry(
                raw, f"About {marked} {number}", session=f"session of {name}"[:200], author=f"{secret} Miller",
                tags=(bait, "common"), role="user", source=secret, at="2026-01-02",
            )
            for number, raw in enumerate(raws)
        ]  # fmt: skip
        entries[0] = replace(entries[0], client_key=f"key of {name}")
        new = NewMemory(title=f"Of {marked}", description=f"What {marked} wrote")
        made = self.store.load(name, new, (NewDocument(f"# {marked}"),), entries)
        own = Memories(self.backend, name)
        scratch = own.create_memory("scratch").memory_id
        barrier = own.add_entry(made.memory_id, f"The vault of the harbour opens at noon: {marked}.", secret).token
        ids = tuple(entry.entry_id for entry in reversed(own.list_entries(made.memory_id, 50).entries))
        document = own.get_context(made.memory_id).document_id
        with psycopg.connect(self.url) as connection:
            row = connection.execute("SELECT number FROM daypack.memories WHERE id = %s", (made.memory_id,)).fetchone()
        number = row[0] if row else 0
        return Person(name, secret, bait, made.memory_id, scratch, number, ids, document, barrier)

    # Proofs

    def digest(self, person: Person) -> str:
        """Return a digest of everything in the memory of a user, as the user reads it."""
        name, memory_id = person.name, person.memory_id
        records = (
            self.store.memory(name, memory_id),
            self.store.after(name, memory_id, 0, 1_000),
            self.store.documents(name, memory_id, 0, 1_000),
            self.store.newest(name, memory_id),
        )
        assert len(records[1]) == 2 * ENTRIES + 1
        return hashlib.sha256(repr(records).encode()).hexdigest()

    def check_people(self) -> None:
        """Everybody has all they had, finds the best ten entries with and without vectors, and nobody else's."""
        for person in self.people:
            assert self.digest(person) == self._digests[person.name], person.name
            for backend in (self.backend, self.with_vectors):
                own = Memories(backend, person.name)
                found = own.search_memories(person.memory_id, COMMON, TOP, explain=True)
                assert [hit.memory_id for hit in found.entries] == [person.memory_id] * TOP
                assert all(person.secret in hit.raw_entry and "vault" in hit.raw_entry for hit in found.entries)
                self.check_answer(person, found)
            used = own.get_user().quotas.used
            assert used.memories == len(self.store.memories(person.name, deleted=None))

    def check_answer(self, person: Person | None, *answers: object) -> None:
        """An answer to one of them, or to somebody else, has no secret of another user."""
        own = {person.secret.encode()} if person else set[bytes]()
        for answer in answers:
            text = answer if isinstance(answer, bytes) else repr(answer).encode("utf-8", "backslashreplace")
            assert set(self._secrets.findall(text)) <= own, text[:2_000]

    def check_silence(self, texts: Iterable[bytes]) -> None:
        """Something that is not for users has no secret at all."""
        for text in texts:
            assert self._secrets.findall(text) == [], text[:2_000]

    def check_records(self) -> None:
        """Neither the audit log, nor what servers share, nor jobs, nor the log of the server have a secret."""
        tables = ("audit", "audit_end", "rates", "processes", "used_tokens", "jobs", "tokens", "users")
        with psycopg.connect(self.url) as connection:
            for table in tables:
                rows = connection.execute(f"SELECT encode(t::text::bytea, 'escape') FROM daypack.{table} t".encode())
                self.check_silence(_readable(text) for (text,) in rows)
        with self.log.open("rb") as lines:
            lines.seek(self._log_size)
            self.check_silence(lines)


def _readable(text: str) -> bytes:
    """Return the text of a row, its bytea in clear."""
    found = re.findall(r"\\\\x((?:[0-9a-f]{2})+)", text)
    return text.encode() + b"\n".join(bytes.fromhex(part) for part in found)
