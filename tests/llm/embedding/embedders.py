"""The embedding models the tests run, from a folder with what `daypack model pull` puts there: .venv/models."""

import os
from pathlib import Path

import pytest

from daypack.errors import ExtraMissing, ModelMissing
from daypack.llm.embedders import open_embedder
from daypack.llm.embedding.port import Embedder

MODELS = os.environ.get("DAYPACK_TEST_MODELS") or str(Path(__file__).resolve().parents[3] / ".venv" / "models")


def find_embedder(name: str) -> Embedder:
    """Return "minilm" or "static"; the test is left out where it is not here."""
    try:
        found = open_embedder(name, models=MODELS)
    except (ExtraMissing, ModelMissing) as error:
        pytest.skip(f"{name} is not in {MODELS}: {error.problem}; {error.hint}")
    assert found is not None
    return found
