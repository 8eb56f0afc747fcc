"""An embedder whose texts are the numbers of ready-made vectors, and entries that have such texts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from search.vector_rows import make_rows

from daypack.postgres.database import Database
from daypack.postgres.transaction import Scope

Floats = NDArray[np.float32]


_MEMORY = """INSERT INTO memories(tenant, number, id, title, type, description, created, crc)
    OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, '', '', '', 0, 0) ON CONFLICT DO NOTHING"""


class Numbered:
    """An embedder: the text "17" has the vector with the number 17."""

    weight = 0.5

    def __init__(self, vectors: Floats, name: str = "numbered", *, instant: bool = True) -> None:
        self.vectors = vectors
        self.name = name
        self.instant = instant
        self.dimensions = vectors.shape[1]
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Floats:
        self.texts += texts
        return self.vectors[[int(text) for text in texts]]

    def close(self) -> None:
        """Nothing is held."""


class Entries:
    """Entries 1, 2 …, each with one text, every seventh with three."""

    def __init__(self, count: int) -> None:
        self.stored: list[tuple[int, Sequence[str]]] = []
        number = 0
        for seq in range(1, count + 1):
            parts = 3 if seq % 7 == 0 else 1
            self.stored.append((seq, [str(number + part) for part in range(parts)]))
            number += parts
        self.texts = number

    def __call__(self, after: int, limit: int) -> Sequence[tuple[int, Sequence[str]]]:
        return self.stored[after : after + limit]


def make_vectors(count: int, dimensions: int = 64) -> Floats:
    """Rows in groups, some alike, some zero or without a finite length."""
    rows = make_rows(count, dimensions)
    rows[5::50] = 0
    rows[7::90] = np.inf
    rows[9::40] = rows[:1]
    return rows


def number_memory(database: Database, tenant: str, number: int) -> str:
    """Add the row of a memory with a number, unless it is there; return its id."""
    memory_id = f"{tenant} {number}"
    database.resolve("add", lambda at: at.execute(_MEMORY, (tenant, number, memory_id)), Scope(tenant))
    return memory_id
