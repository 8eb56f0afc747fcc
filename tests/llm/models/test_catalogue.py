"""The models that are offered, and the one that is not."""

import pytest

from daypack.errors import BadConfig
from daypack.llm.models.catalogue import DEFAULT, MODELS, Origin, find_model


@pytest.mark.requirement("S1-M2")
def test_the_default_is_qwen3_of_1_7b_at_q4_from_its_makers() -> None:
    model = find_model(DEFAULT)
    assert model.name == "qwen3-1.7b"
    assert model.origins[0] == Origin("Qwen/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf")
    assert 1.0e9 < model.about_bytes < 1.2e9


@pytest.mark.requirement("S1-P3", "S1-P3.1", "S1-M1")
def test_the_smallest_models_offered_are_of_1_7b_and_1b_and_the_one_of_0_6b_is_warned_of() -> None:
    offered = {model.name: model.about_bytes for model in MODELS if model.offered}
    assert set(offered) == {"qwen3-1.7b", "gemma-3-1b"}
    assert 0.65e9 < offered["gemma-3-1b"] < 0.8e9
    with pytest.raises(BadConfig, match="leaks thinking tags, ignores templates"):
        find_model("qwen3-0.6b")


def test_a_file_is_named_by_its_model_alone_and_no_digest_is_made_up() -> None:
    assert len({model.file for model in MODELS}) == len(MODELS)
    assert all(model.sha256 is None for model in MODELS)
