"""Generated memory entries of 300 bytes with a natural word distribution, and clustered vectors."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from typing import TYPE_CHECKING
from zlib import crc32

import orjson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RAW_BYTES = 300
SUMMARY_CHARS = 100
DIMENSIONS = 384
_VOCABULARY = 20_000
_GROUP = 50  # rows around one centre
_BLOCK = 50_000


class Texts:
    """Yields texts that are all different: of 20,000 words, the n-th as likely as 1/n."""

    def __init__(self, seed: int) -> None:
        syllables = [first + second for first, second in product("bdfgklmnprstvz", "aeiou")]
        pairs = [first + second for first, second in product(syllables, syllables)]
        longer = [first + second for first, second in product(pairs, syllables)]
        chance = random.Random(7)
        self._words = [*chance.sample(pairs, len(pairs)), *chance.sample(longer, _VOCABULARY - len(pairs))]
        self._weights = list(accumulate(1 / (place + 10) for place in range(_VOCABULARY)))
        self._chance = random.Random(seed)

    def take(self, count: int) -> Iterator[str]:
        """Yield so many texts of `RAW_BYTES` bytes."""
        for _ in range(count):
            words = self._chance.choices(self._words, cum_weights=self._weights, k=RAW_BYTES // 5)
            yield " ".join(words)[:RAW_BYTES]

    def question(self) -> str:
        """Return six words, drawn as those of texts are."""
        return " ".join(self._chance.choices(self._words, cum_weights=self._weights, k=6))


def archive(texts: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of an exported memory with these entries."""
    yield orjson.dumps({"daypack": "memory", "format": 1, "title": "bench"})
    for text in texts:
        yield orjson.dumps({"entry": {"raw_entry": text, "summary": text[:SUMMARY_CHARS], "role": "user"}})


def make_vectors(count: int) -> "NDArray[np.float32]":
    """Return rows of length one, each near to the centre of its group."""
    import numpy as np

    chance = np.random.default_rng(11)
    centres = _to_units(chance.standard_normal((max(1, count // _GROUP), DIMENSIONS), np.float32))
    rows = centres[chance.integers(0, len(centres), count)]
    for begin in range(0, count, _BLOCK):
        block = rows[begin : begin + _BLOCK]
        block += chance.standard_normal(block.shape, np.float32) * np.float32(0.6 / DIMENSIONS**0.5)
        block[:] = _to_units(block)
    return rows


def make_queries(rows: "NDArray[np.float32]", count: int) -> "NDArray[np.float32]":
    """Return vectors near to some of the rows."""
    import numpy as np

    chance = np.random.default_rng(12)
    chosen = rows[chance.integers(0, len(rows), count)]
    return _to_units(chosen + chance.standard_normal(chosen.shape, np.float32) * np.float32(0.5 / DIMENSIONS**0.5))


def _to_units(rows: "NDArray[np.floating]") -> "NDArray[np.float32]":
    import numpy as np

    return (rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]).astype(np.float32)


class ReadyMade:
    """An embedding model that looks its vectors up, so that no model is measured."""

    name = "ready-made"
    dimensions = DIMENSIONS
    weight = 1.0
    instant = True

    def __init__(self, rows: "NDArray[np.float32]") -> None:
        self._rows = rows

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return the vector of each text."""
        return self._rows[[crc32(text.encode()) % len(self._rows) for text in texts]]

    def close(self) -> None:
        """Nothing is loaded."""
