"""Static vectors: one for each piece of a word; a text is the mean of its pieces. No order, no context, very fast."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daypack.errors import ModelFailed
from daypack.llm.embedding.safetensors import read_tensors
from daypack.llm.embedding.tokenizer import Pieces

_TABLE = "embedding.weight"


class StaticEmbedder:
    """The vectors of the package wordllama, from its files alone; loaded with the first text."""

    name = "static:l2_supercat_256"
    weight = 0.8
    instant = True

    def __init__(self, weights: str, tokenizer: str) -> None:
        tensors = read_tensors(weights)
        if _TABLE not in tensors or tensors[_TABLE].ndim != 2:
            hint = "fetch it again with `daypack model pull static`"
            raise ModelFailed("there is no table of vectors", operation="read model", place=weights, hint=hint)
        self._stored = tensors[_TABLE]
        self._table: NDArray[np.float32] | None = None
        self._lock = threading.Lock()
        self._pieces = Pieces(tokenizer)
        self.dimensions = int(self._stored.shape[1])

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.name!r})"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; a text without a word has a row of zeros."""
        table, cut = self._loaded(), self._pieces.cut
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            # Blanks have pieces too, but they say nothing.
            if not text.isspace() and (ids := cut(text)):
                table.take(ids, 0).sum(0, out=row)
        self._pieces.trim()
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.maximum(lengths, 1e-12, out=lengths)
        return rows

    def close(self) -> None:
        """Let go of the table; the next text loads it again."""
        self._table = None

    def _loaded(self) -> NDArray[np.float32]:
        with self._lock:
            if self._table is None:
                self._table = self._stored.astype(np.float32)
            return self._table
