"""Static embeddings: a text is the mean of its tokens' vectors. No order, no context, very fast."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daypack.errors import ModelFailed
from daypack.forks import ThreadLock
from daypack.llm.embedding.model_files import Tensors, Tokenizer

_TABLE = "embedding.weight"


class StaticEmbedder:
    """The vectors of the package wordllama, read from its files; the first text loads them."""

    name = "static:l2_supercat_256"
    weight = 0.8
    instant = True

    def __init__(self, weights: str, tokenizer: str) -> None:
        self._tensors = Tensors(weights)
        shape = self._tensors.shapes.get(_TABLE, ())
        if len(shape) != 2:
            hint = "download it again with `daypack model pull static`"
            raise ModelFailed("the file has no table of vectors", operation="read model", place=weights, hint=hint)
        self._table: NDArray[np.float32] | None = None
        self._lock = ThreadLock()
        self._tokenizer = Tokenizer(tokenizer)
        self.dimensions = shape[1]

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.name!r})"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of length 1 for each text; a text without a word has a row of zeros."""
        table, encode = self._load(), self._tokenizer.encode
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            # White space has tokens too, but no meaning.
            if not text.isspace() and (ids := encode(text)):
                table.take(ids, 0).sum(0, out=row)
        self._tokenizer.trim_cache()
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.maximum(lengths, 1e-12, out=lengths)
        return rows

    def close(self) -> None:
        """Release the table; the next text loads it again."""
        self._table = None

    def _load(self) -> NDArray[np.float32]:
        with self._lock:
            if self._table is None:
                self._table = self._tensors.read(_TABLE).astype(np.float32)
            return self._table
