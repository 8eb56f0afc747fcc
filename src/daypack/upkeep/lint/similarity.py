"""Similarity by meaning, where an embedding model is installed; prompt texts are never sent to a server."""

import os
from collections.abc import Callable, Sequence

from daypack.config import from_environment, from_file, settle
from daypack.errors import DaypackError
from daypack.history.layout import Home

Similarity = Callable[[Sequence[str]], Sequence[Sequence[float]] | None]  # texts -> the cosine of each with each


def open_similarity(home: Home) -> Similarity | None:
    """Return the similarity by the best installed model, None if the settings want no model; it is loaded when used."""
    settings = settle([("environment", from_environment(os.environ)), (home.config, from_file(home.config))])
    return None if settings.embedding_model == "none" else lambda texts: _cosines(home.models, texts)


def _cosines(models: str, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
    from daypack.llm.embedders import default_embedding_model, open_embedder  # noqa: PLC0415 — only in doubt

    try:
        embedder = open_embedder(default_embedding_model(models), models=models)
        rows = embedder.encode(texts) if embedder else None
    except DaypackError:
        return None  # words alone decide
    return (rows @ rows.T).tolist() if rows is not None else None
