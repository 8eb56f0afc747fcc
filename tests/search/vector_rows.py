"""Vectors for tests: rows in groups, as texts about the same thing are, and queries near to some of them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daypack.search.vectors import Vectors

Floats = NDArray[np.float32]
DIMENSIONS = 384


def unit(rows: NDArray[np.floating]) -> Floats:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def make_rows(count: int, dimensions: int = DIMENSIONS, seed: int = 1) -> Floats:
    random = np.random.default_rng(seed)
    centres = unit(random.standard_normal((max(1, count // 30), dimensions)))
    spread = random.standard_normal((count, dimensions)) * 0.7 / dimensions**0.5
    return unit(centres[random.integers(0, len(centres), count)] + spread)


def make_queries(rows: Floats, count: int) -> Floats:
    random = np.random.default_rng(2)
    chosen = rows[random.integers(0, len(rows), count)]
    return unit(chosen + random.standard_normal(chosen.shape) * 0.6 / chosen.shape[1] ** 0.5)


def open_vectors(folder: Path, dimensions: int = DIMENSIONS, model: str = "model") -> Vectors:
    return Vectors(str(folder), model=model, dimensions=dimensions)
