"""The small model, and an environment without keys and proxies."""

import os

import pytest
from small_model import find_small_model


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in (
            "DAYPACK_API_KEY",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "DAYPACK_MODEL_HUB",
        ):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def small_model() -> str:
    """The path of a GGUF file of 98 MB that answers in a second or two."""
    return find_small_model()
