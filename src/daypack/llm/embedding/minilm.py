"""all-MiniLM-L6-v2 in plain numpy: a 6-layer BERT encoder with mean pooling.

The texts of a batch are concatenated without padding, sorted by length: texts of equal length are adjacent, and only
attention needs their boundaries. So a vector does not depend on the other texts of its batch.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daypack.errors import ModelFailed
from daypack.forks import ThreadLock
from daypack.llm.embedding.blas import single_threaded
from daypack.llm.embedding.model_files import Tensors, Tokenizer

MAX_TOKENS = 256
_CLS, _SEP = 101, 102  # the boundary tokens the model was trained with
_LAYERS, _HEADS, _WIDTH, _INNER = 6, 12, 384, 1536
_HEAD_WIDTH = _WIDTH // _HEADS
_BATCH_TOKENS = 1024  # large enough for fast matrix products, small enough for the CPU's cache
_GELU_ROWS = 32  # activated at once
_TINY = np.float32(1e-12)

Floats = NDArray[np.float32]


class _Dense(NamedTuple):
    weight: Floats
    bias: Floats


class _Layer(NamedTuple):
    query: _Dense
    key: _Dense
    value: _Dense
    attended: _Dense
    attended_norm: _Dense
    inner: _Dense
    outer: _Dense
    outer_norm: _Dense


class _Weights(NamedTuple):
    words: Floats
    positions: Floats  # plus the vector of the only token type
    norm: _Dense
    layers: tuple[_Layer, ...]


class MiniLmEmbedder:
    """The model from its two files, loaded with the first text. Only the first 256 tokens of a text count."""

    name = "minilm:all-MiniLM-L6-v2"
    dimensions = _WIDTH
    weight = 1.0
    instant = False

    def __init__(self, weights: str, tokenizer: str) -> None:
        self._path = weights
        self._tensors = Tensors(weights)
        self._weights: _Weights | None = None
        self._lock = ThreadLock()
        self._tokenizer = Tokenizer(tokenizer)

    def __repr__(self) -> str:
        return f"MiniLmEmbedder({self.name!r})"

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text; a blank text has a row of zeros."""
        weights, encode = self._load(), self._tokenizer.encode
        rows = np.zeros((len(texts), _WIDTH), np.float32)
        tokens: list[tuple[int, list[int]]] = []
        for row, text in enumerate(texts):
            if text and not text.isspace():
                tokens.append((row, [_CLS, *encode(text)[: MAX_TOKENS - 2], _SEP]))
        with single_threaded():
            for batch in _batches(tokens):
                rows[[row for row, _ in batch]] = _forward(weights, [ids for _, ids in batch])
        return rows

    def close(self) -> None:
        """Release the weights; the next text loads them again."""
        self._weights = None

    def _load(self) -> _Weights:
        with self._lock:
            if self._weights is None:
                self._weights = _Reader(self._path, self._tensors).weights()
            return self._weights


class _Reader:
    """Reads the tensors of the model and checks their shapes."""

    def __init__(self, path: str, tensors: Tensors) -> None:
        self._path = path
        self._tensors = tensors

    def weights(self) -> _Weights:
        """Return the weights of all layers."""
        token_type = self._get("embeddings.token_type_embeddings.weight", 2, _WIDTH)[0]
        positions = self._get("embeddings.position_embeddings.weight", 512, _WIDTH)[:MAX_TOKENS] + token_type
        words = self._get("embeddings.word_embeddings.weight", 30522, _WIDTH)
        layers = tuple(self._layer(f"encoder.layer.{number}.") for number in range(_LAYERS))
        return _Weights(words, positions, self._norm("embeddings.LayerNorm"), layers)

    def _layer(self, prefix: str) -> _Layer:
        query = self._dense(f"{prefix}attention.self.query", _WIDTH, _WIDTH)
        scale = np.float32(_HEAD_WIDTH**-0.5)  # of attention scores
        return _Layer(
            _Dense(query.weight * scale, query.bias * scale),
            self._dense(f"{prefix}attention.self.key", _WIDTH, _WIDTH),
            self._dense(f"{prefix}attention.self.value", _WIDTH, _WIDTH),
            self._dense(f"{prefix}attention.output.dense", _WIDTH, _WIDTH),
            self._norm(f"{prefix}attention.output.LayerNorm"),
            self._dense(f"{prefix}intermediate.dense", _WIDTH, _INNER),
            self._dense(f"{prefix}output.dense", _INNER, _WIDTH),
            self._norm(f"{prefix}output.LayerNorm"),
        )

    def _dense(self, name: str, inputs: int, outputs: int) -> _Dense:
        # Transposed in memory: products of small matrices are faster this way.
        weight = np.ascontiguousarray(self._get(f"{name}.weight", outputs, inputs).T)
        return _Dense(weight, self._get(f"{name}.bias", outputs))

    def _norm(self, name: str) -> _Dense:
        return _Dense(self._get(f"{name}.weight", _WIDTH), self._get(f"{name}.bias", _WIDTH))

    def _get(self, name: str, *shape: int) -> Floats:
        tensor: NDArray[Any] | None = self._tensors.read(name) if self._tensors.shapes.get(name) == shape else None
        if tensor is None or tensor.dtype != np.float32:
            hint = "download it again with `daypack model pull minilm`"
            raise ModelFailed(f"{name} is missing or malformed", operation="read model", place=self._path, hint=hint)
        return tensor


def _batches(tokens: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Split texts into batches, sorted by their number of tokens."""
    batch: list[tuple[int, list[int]]] = []
    size = 0
    for row, ids in sorted(tokens, key=lambda text: len(text[1])):
        if batch and size + len(ids) > _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append((row, ids))
        size += len(ids)
    if batch:
        yield batch


def _forward(weights: _Weights, texts: list[list[int]]) -> Floats:
    """Return the vectors of texts, given as token ids and sorted by length."""
    sizes = np.array([len(ids) for ids in texts])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    groups = [(size, len(list(same))) for size, same in groupby(int(size) for size in sizes)]
    states = weights.words.take(np.concatenate(texts), 0)
    states += np.concatenate([weights.positions[:size] for size in sizes])
    _normalise(states, weights.norm)
    for layer in weights.layers:
        attended = _dense(_attend(states, layer, groups), layer.attended)
        attended += states
        states = _normalise(attended, layer.attended_norm)
        inner = _dense(states, layer.inner)
        for start in range(0, len(inner), _GELU_ROWS):
            _activate(inner[start : start + _GELU_ROWS])
        outer = _dense(inner, layer.outer)
        outer += states
        states = _normalise(outer, layer.outer_norm)
    rows = np.add.reduceat(states, starts, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _dense(states: Floats, dense: _Dense) -> Floats:
    product = states @ dense.weight
    product += dense.bias
    return product


def _normalise(states: Floats, norm: _Dense) -> Floats:
    """Apply layer normalisation in place."""
    states -= states.mean(1, keepdims=True)
    deviation = np.einsum("ij,ij->i", states, states)
    deviation /= np.float32(_WIDTH)
    deviation += _TINY
    np.sqrt(deviation, out=deviation)
    states /= deviation[:, None]
    states *= norm.weight
    states += norm.bias
    return states


def _attend(states: Floats, layer: _Layer, groups: list[tuple[int, int]]) -> Floats:
    """Apply self-attention within each text."""
    queries, keys, values = (_dense(states, dense) for dense in (layer.query, layer.key, layer.value))
    attended = np.empty_like(states)
    start = 0
    for size, count in groups:
        rows = slice(start, start + size * count)
        start += size * count
        query, key, value, out = (
            matrix[rows].reshape(count, size, _HEADS, _HEAD_WIDTH).transpose(0, 2, 1, 3)
            for matrix in (queries, keys, values, attended)
        )
        # Keys are rows and queries columns: reductions along columns are faster.
        scores = key @ query.transpose(0, 1, 3, 2)
        scores -= scores.max(2, keepdims=True)
        np.exp(scores, out=scores)
        weighted = scores.transpose(0, 1, 3, 2) @ value
        np.divide(weighted, scores.sum(2)[..., None], out=out)
    return attended


def _activate(states: Floats) -> None:
    """Apply the exact GELU in place: x · Φ(x).

    The tail 1 - Φ(|x|) follows Abramowitz and Stegun 7.1.26, with an error below 1.5e-7.
    """
    size = np.abs(states)
    share = size * np.float32(0.3275911 * 0.5**0.5)
    share += np.float32(1)
    np.divide(np.float32(1), share, out=share)
    tail = share * np.float32(1.061405429 / 2)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(factor / 2)
        tail *= share
    tail *= size
    np.multiply(states, states, out=size)
    size *= np.float32(-0.5)
    tail *= np.exp(size, out=size)
    np.maximum(states, np.float32(0), out=states)
    states -= tail
