"""all-MiniLM-L6-v2 in plain numpy: six layers of a BERT, the mean of what they say of each piece.

Texts of a batch stand one below the other, without padding, sorted by length: those of equal length are neighbours, and
only attention has to know where one ends. So a vector does not depend on the texts it was made with.
"""

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daypack.errors import ModelFailed
from daypack.llm.embedding.blas import one_thread
from daypack.llm.embedding.safetensors import read_tensors
from daypack.llm.embedding.tokenizer import Pieces

MAX_PIECES = 256
_BEGIN, _END = 101, 102  # what the model was shown before and after every text
_LAYERS, _HEADS, _WIDTH, _INNER = 6, 12, 384, 1536
_PART = _WIDTH // _HEADS
_BATCH_PIECES = 1024  # enough for matrices to be fast, few enough for the cache
_ROWS_AT_ONCE = 32
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
    places: Floats  # with the vector of the only kind of text there is
    norm: _Dense
    layers: tuple[_Layer, ...]


class MiniLmEmbedder:
    """The model from its two files; loaded with the first text. Of a long text only the first 256 pieces count."""

    name = "minilm:all-MiniLM-L6-v2"
    dimensions = _WIDTH
    weight = 1.0
    instant = False

    def __init__(self, weights: str, tokenizer: str) -> None:
        self._path = weights
        self._tensors = read_tensors(weights)
        self._weights: _Weights | None = None
        self._lock = threading.Lock()
        self._pieces = Pieces(tokenizer)

    def __repr__(self) -> str:
        return f"MiniLmEmbedder({self.name!r})"

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text; a blank text has a row of zeros."""
        weights, cut = self._loaded(), self._pieces.cut
        rows = np.zeros((len(texts), _WIDTH), np.float32)
        found: list[tuple[int, list[int]]] = []
        for at, text in enumerate(texts):
            if text and not text.isspace():
                found.append((at, [_BEGIN, *cut(text)[: MAX_PIECES - 2], _END]))
        with one_thread():
            for batch in _batches(found):
                rows[[at for at, _ in batch]] = _forward(weights, [ids for _, ids in batch])
        return rows

    def close(self) -> None:
        """Let go of the weights; the next text loads them again."""
        self._weights = None

    def _loaded(self) -> _Weights:
        with self._lock:
            if self._weights is None:
                self._weights = _Reader(self._path, self._tensors).weights()
            return self._weights


class _Reader:
    """Finds the tensors of the model in a file, each of the right shape."""

    def __init__(self, path: str, tensors: dict[str, NDArray[Any]]) -> None:
        self._path = path
        self._tensors = tensors

    def weights(self) -> _Weights:
        """Return them all."""
        kind = self._get("embeddings.token_type_embeddings.weight", 2, _WIDTH)[0]
        places = self._get("embeddings.position_embeddings.weight", 512, _WIDTH)[:MAX_PIECES] + kind
        words = self._get("embeddings.word_embeddings.weight", 30522, _WIDTH)
        layers = tuple(self._layer(f"encoder.layer.{number}.") for number in range(_LAYERS))
        return _Weights(words, places, self._norm("embeddings.LayerNorm"), layers)

    def _layer(self, at: str) -> _Layer:
        query = self._dense(f"{at}attention.self.query", _WIDTH, _WIDTH)
        scale = np.float32(_PART**-0.5)  # of the products of queries and keys
        return _Layer(
            _Dense(query.weight * scale, query.bias * scale),
            self._dense(f"{at}attention.self.key", _WIDTH, _WIDTH),
            self._dense(f"{at}attention.self.value", _WIDTH, _WIDTH),
            self._dense(f"{at}attention.output.dense", _WIDTH, _WIDTH),
            self._norm(f"{at}attention.output.LayerNorm"),
            self._dense(f"{at}intermediate.dense", _WIDTH, _INNER),
            self._dense(f"{at}output.dense", _INNER, _WIDTH),
            self._norm(f"{at}output.LayerNorm"),
        )

    def _dense(self, name: str, inward: int, outward: int) -> _Dense:
        # The other way round in memory than in the file: small matrices are multiplied faster so.
        weight = np.ascontiguousarray(self._get(f"{name}.weight", outward, inward).T)
        return _Dense(weight, self._get(f"{name}.bias", outward))

    def _norm(self, name: str) -> _Dense:
        return _Dense(self._get(f"{name}.weight", _WIDTH), self._get(f"{name}.bias", _WIDTH))

    def _get(self, name: str, *shape: int) -> Floats:
        found = self._tensors.get(name)
        if found is None or found.dtype != np.float32 or found.shape != shape:
            hint = "fetch it again with `daypack model pull minilm`"
            raise ModelFailed(f"{name} is not as it should be", operation="read model", place=self._path, hint=hint)
        return found


def _batches(found: list[tuple[int, list[int]]]) -> Iterator[list[tuple[int, list[int]]]]:
    """Cut texts into batches, sorted by how many pieces they have."""
    batch: list[tuple[int, list[int]]] = []
    size = 0
    for one in sorted(found, key=lambda one: len(one[1])):
        if batch and size + len(one[1]) > _BATCH_PIECES:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch


def _forward(weights: _Weights, texts: list[list[int]]) -> Floats:
    """Return the vectors of texts that are sorted by length."""
    sizes = np.array([len(ids) for ids in texts])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    groups = [(size, len(list(same))) for size, same in groupby(int(one) for one in sizes)]
    states = weights.words.take(np.concatenate(texts), 0)
    states += np.concatenate([weights.places[:size] for size in sizes])
    _normalise(states, weights.norm)
    for layer in weights.layers:
        attended = _dense(_attend(states, layer, groups), layer.attended)
        attended += states
        states = _normalise(attended, layer.attended_norm)
        inner = _dense(states, layer.inner)
        for at in range(0, len(inner), _ROWS_AT_ONCE):
            _activate(inner[at : at + _ROWS_AT_ONCE])
        outer = _dense(inner, layer.outer)
        outer += states
        states = _normalise(outer, layer.outer_norm)
    rows = np.add.reduceat(states, starts, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def _dense(states: Floats, dense: _Dense) -> Floats:
    made = states @ dense.weight
    made += dense.bias
    return made


def _normalise(states: Floats, norm: _Dense) -> Floats:
    """Give every row the mean 0 and the variance 1, in place, then the model's own."""
    states -= states.mean(1, keepdims=True)
    spread = np.einsum("ij,ij->i", states, states)
    spread /= np.float32(_WIDTH)
    spread += _TINY
    np.sqrt(spread, out=spread)
    states /= spread[:, None]
    states *= norm.weight
    states += norm.bias
    return states


def _attend(states: Floats, layer: _Layer, groups: list[tuple[int, int]]) -> Floats:
    """Let every piece look at the pieces of its own text."""
    queries, keys, values = (_dense(states, one) for one in (layer.query, layer.key, layer.value))
    made = np.empty_like(states)
    at = 0
    for size, count in groups:
        rows = slice(at, at + size * count)
        at += size * count
        query, key, value, out = (
            one[rows].reshape(count, size, _HEADS, _PART).transpose(0, 2, 1, 3) for one in (queries, keys, values, made)
        )
        # Keys go down and queries across: reductions along columns are the fast ones.
        looks = key @ query.transpose(0, 1, 3, 2)
        looks -= looks.max(2, keepdims=True)
        np.exp(looks, out=looks)
        shares = looks.transpose(0, 1, 3, 2) @ value
        np.divide(shares, looks.sum(2)[..., None], out=out)
    return made


def _activate(states: Floats) -> None:
    """Apply the exact GELU in place: x · Φ(x).

    The tail 1 - Φ(|x|) is by Abramowitz and Stegun 7.1.26, whose error is below 1.5e-7.
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
