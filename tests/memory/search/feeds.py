"""Doubles for an index: a feed made of lists, and an embedder that knows a handful of words."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daypack.errors import ModelFailed
from daypack.memory.search.index import Index, RankedEntry
from daypack.types.memory import ContextDocument, Entry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIME = "2026-11-16T08:00:00.000Z"
MEANINGS = ("dog puppy hound", "car vehicle lorry", "bread loaf bakery", "rain storm weather", "money price cost")


def entry(seq: int, raw: str, summary: str = "", **about: Any) -> Entry:
    return Entry(
        entry_id=f"entry-{seq}", memory_id="m", seq=seq, created_at=TIME, raw_entry=raw, summary=summary, **about
    )


def document(version: int, content: str) -> ContextDocument:
    return ContextDocument(document_id=f"d-{version}", memory_id="m", version=version, created_at=TIME, content=content)


def many(count: int) -> list[Entry]:
    """Entries of several sessions, the same for the same count."""
    words = [word for meaning in MEANINGS for word in meaning.split()]
    texts = (f"The {words[n % 15]} number {n} and the {words[n * 7 % 15]} of {n % 97}" for n in range(1, count + 1))
    return [entry(seq, text, session=f"s{seq // 30}") for seq, text in enumerate(texts, 1)]


class ListFeed:
    """What a store would give."""

    def __init__(self, entries: Sequence[Entry] = (), documents: Sequence[ContextDocument] = ()) -> None:
        self.stored = list(entries)
        self.versions = list(documents)

    def newest(self) -> tuple[int, int]:
        return (self.stored[-1].seq if self.stored else 0, self.versions[-1].version if self.versions else 0)

    def entries(self, after: int, limit: int) -> Sequence[Entry]:
        return [one for one in self.stored if one.seq > after][:limit]

    def documents(self, after: int, limit: int) -> Sequence[ContextDocument]:
        return [one for one in self.versions if one.version > after][:limit]


class Knowing:
    """An embedder: words of one meaning are one dimension, all other words another."""

    dimensions = 16
    weight = 0.5
    instant = False

    def __init__(self, name: str = "knowing") -> None:
        self.name = name
        self.texts: list[str] = []
        self.failing = False

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        if self.failing:
            raise ModelFailed("does not answer", operation="embed")
        self.texts += texts
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                found = [number for number, meaning in enumerate(MEANINGS) if word.strip(".,?") in meaning.split()]
                row[found[0] if found else 8 + len(word) % 8] += 1.0 if found else 0.1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    def close(self) -> None:
        """Nothing is held."""


def seqs(found: list[RankedEntry]) -> list[int]:
    return [one.seq for one in found]


def answers(index: Index) -> list[list[RankedEntry]]:
    """What an index says to a few questions, to the last digit."""
    queries = ("a puppy", "number 7", "the price of bread in the storm", "lorry", "nothing of the kind")
    return [index.search(query, 25) for query in queries]


def vectors_in(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("vectors-"))
