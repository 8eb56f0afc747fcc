"""The port to an embedding model: texts in, vectors out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """An embedding model; threads may share it."""

    @property
    def name(self) -> str:
        """The name to record with vectors; a changed name means that all vectors are computed again."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector; for an endpoint the first access may send a request."""
        ...

    @property
    def weight(self) -> float:
        """The weight of vector similarity relative to word matches."""
        ...

    @property
    def instant(self) -> bool:
        """True if it is fast and reliable enough for a search to embed the newest entries itself."""
        ...

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row of length 1 for each text (zeros for a blank text), or raise ModelFailed."""
        ...

    def close(self) -> None:
        """Release memory; the next encoding loads the model again."""
        ...
