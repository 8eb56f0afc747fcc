"""From a choice to a model: what is opened, what is missing, which key is sent where."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_endpoint import Endpoint, chat, in_turn

from daypack.errors import BadConfig, ModelMissing
from daypack.llm.client import Client
from daypack.llm.completers import default_completion_model, open_completer
from daypack.llm.completion.port import Prompt
from daypack.llm.models.catalogue import find_model


def test_no_model_is_a_choice_too() -> None:
    assert open_completer("none") is None


def test_a_model_that_was_not_pulled_is_missing_and_the_way_to_it_told(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"daypack model pull qwen3-1\.7b"):
        open_completer("llama:qwen3-1.7b", models=str(tmp_path))
    with pytest.raises(ModelMissing, match="llama:PATH"):
        open_completer(f"llama:{tmp_path}/x.gguf")
    with pytest.raises(BadConfig, match="no model folder"):
        open_completer("llama:qwen3-1.7b")


@pytest.mark.requirement("S1-M4")
def test_a_pulled_model_is_opened_by_its_name(tmp_path: Path) -> None:
    (tmp_path / find_model("gemma-3-1b").file).write_bytes(b"GGUF")
    completer = open_completer("llama:gemma-3-1b", models=str(tmp_path))
    assert completer is not None
    assert completer.name == "llama:gemma-3-1b"


@pytest.mark.requirement("S1-M5")
def test_without_a_choice_it_is_the_default_model_where_it_is_and_else_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_completion_model(None) == "none"
    assert default_completion_model(str(tmp_path)) == "none"
    (tmp_path / find_model("qwen3-1.7b").file).write_bytes(b"GGUF")
    (tmp_path / "xllamacpp.py").write_text("", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert default_completion_model(str(tmp_path)) == "llama:qwen3-1.7b"
    monkeypatch.setattr("importlib.util.find_spec", {"xllamacpp": None}.get)
    assert default_completion_model(str(tmp_path)) == "none"


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, None),
        ({"DAYPACK_API_KEY": "ours"}, "Bearer ours"),
        ({"OPENAI_API_KEY": "theirs"}, None),
        ({"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "URL/v1"}, "Bearer theirs"),
        ({"OPENAI_API_KEY": "theirs", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, None),
        ({"DAYPACK_API_KEY": "ours", "DAYPACK_API_URL": "URL"}, "Bearer ours"),
        ({"DAYPACK_API_KEY": "ours", "DAYPACK_API_URL": "https://model.invalid/v1"}, None),
        ({"DAYPACK_API_KEY": "ours", "DAYPACK_COMPACTION_MODEL": "openai:https://model.invalid/v1#m"}, None),
        ({"DAYPACK_API_KEY": "ours", "DAYPACK_EMBEDDING_MODEL": "openai:URL/v1#m"}, "Bearer ours"),
        ({"DAYPACK_API_KEY": "ours", "OPENAI_API_KEY": "theirs"}, "Bearer ours"),
    ],
)
def test_the_key_comes_from_the_environment(
    environment: dict[str, str], sent: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Endpoint(in_turn(chat("yes"))) as endpoint:
        for name, value in environment.items():
            monkeypatch.setenv(name, value.replace("URL", endpoint.url))
        completer = open_completer(f"openai:{endpoint.url}/v1#m")
        assert completer is not None
        assert completer.complete(Prompt("", "?")).text == "yes"
        assert endpoint.seen[-1].headers.get("authorization") == sent
        assert "ours" not in repr(completer)


def test_the_key_of_openai_does_not_travel_unprotected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    monkeypatch.setenv("NO_PROXY", "")
    with Endpoint(in_turn(chat("yes"))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        completer = open_completer("openai:http://model.invalid/v1#m")
        assert completer is not None
        completer.complete(Prompt("", "?"))
        assert all("authorization" not in seen.headers for seen in proxy.seen)
        assert proxy.seen[-1].path == "http://model.invalid/v1/chat/completions"


@pytest.mark.parametrize("choice", ["openai:http://model.invalid/v1#m", "openai:http://192.0.2.7:8080/v1#m"])
def test_a_key_is_refused_for_an_address_where_others_could_read_it(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_API_KEY", "ours")
    with pytest.raises(BadConfig, match="not sent over a network without encryption") as caught:
        open_completer(choice)
    assert "https" in caught.value.hint
    assert "ours" not in str(caught.value)
    monkeypatch.setenv("DAYPACK_API_URL", "https://model.invalid")
    assert open_completer(choice) is not None, "the key is for another address"
    with pytest.raises(ValueError, match="without encryption"):
        Client("http://model.invalid", key="ours")


def test_opening_the_port_loads_neither_http_nor_a_model_library() -> None:
    code = "import sys, daypack.llm.completers as p; p.open_completer('none'); print(sorted(sys.modules))"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    for heavy in ("xllamacpp", "http.client", "ssl", "hashlib", "urllib.parse"):
        assert f"'{heavy}'" not in loaded, heavy
