"""The port to an embedding model: what makes vectors of texts, and which one a choice stands for.

none | static | minilm | openai:URL#NAME, the last one with an option: ?timeout=30
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from daypack.errors import ExtraMissing, ModelMissing
from daypack.llm.choice import read_embedding
from daypack.llm.completion.port import find_key
from daypack.llm.models.catalogue import ENCODERS, Encoder, find_encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """A model that makes vectors; threads may share it."""

    @property
    def name(self) -> str:
        """What to record with the vectors: another name means that they are made again."""
        ...

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; of an endpoint the first look may ask for it."""
        ...

    @property
    def weight(self) -> float:
        """How much its closeness counts beside words."""
        ...

    @property
    def instant(self) -> bool:
        """Whether it is so quick and sure that a search can embed the newest entries itself."""
        ...

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row of length 1 for each text (of zeros for a blank one), or raise ModelFailed."""
        ...

    def close(self) -> None:
        """Let go of memory; encoding again loads it again."""
        ...


def open_embedder(choice: str, *, models: str | None = None) -> Embedder | None:
    """Return the embedding model of a choice, None for "none"; `models` is the folder of pulled models.

    Nothing is loaded and nobody is asked yet: that happens with the first text.
    """
    chosen = read_embedding(choice)
    if chosen.kind == "none":
        return None
    if not _has_numpy():
        problem, hint = "numpy is not installed", "pip install 'daypack[vectors]'"
        raise ExtraMissing(problem, operation="open embedding model", place=choice, hint=hint)
    encoder = find_encoder(chosen.kind)
    if encoder is None:
        from daypack.llm.embedding.http import HttpEmbedder  # noqa: PLC0415 — HTTP and TLS cost 30 ms

        return HttpEmbedder(chosen, key=find_key(chosen.place, os.environ))
    files = find_files(encoder, models)
    if files is None:
        problem, hint = "its files are not here", f"`daypack model pull {encoder.name}` fetches them"
        raise ModelMissing(problem, operation="open embedding model", place=encoder.name, hint=hint)
    if encoder.name == "static":
        from daypack.llm.embedding.static import StaticEmbedder  # noqa: PLC0415 — numpy is 100 ms

        return StaticEmbedder(*files)
    from daypack.llm.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415 — the same

    return MiniLmEmbedder(*files)


def default_embedding(models: str | None) -> str:
    """Return the choice when nobody made one: the best that is here and can be run, else none."""
    if not _has_numpy():
        return "none"
    return next((one.name for one in ENCODERS if find_files(one, models)), "none")


def find_files(encoder: Encoder, models: str | None) -> tuple[str, str] | None:
    """Return the paths of weights and tokenizer: as they were pulled, else in the package if it is installed."""
    if models is not None:
        folder = os.path.join(models, encoder.name)
        pulled = os.path.join(folder, encoder.weights.file), os.path.join(folder, encoder.tokenizer.file)
        if all(map(os.path.isfile, pulled)):
            return pulled
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    try:
        spec = find_spec(encoder.weights.member.partition("/")[0])  # finds it without running it
    except (ImportError, ValueError):
        return None
    for place in (spec and spec.submodule_search_locations) or ():
        inside = [os.path.join(os.path.dirname(place), one.member) for one in (encoder.weights, encoder.tokenizer)]
        if all(map(os.path.isfile, inside)):
            return inside[0], inside[1]
    return None


def _has_numpy() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    return find_spec("numpy") is not None
