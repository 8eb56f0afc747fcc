"""The choice of a model: what is understood, and what is said about the rest."""

import os

import pytest

from daypack.errors import BadConfig
from daypack.llm.choice import Choice, read_choice


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("none", Choice("none")),
        ("openai:http://127.0.0.1:8080/v1#qwen3", Choice("openai", "http://127.0.0.1:8080/v1", "qwen3")),
        ("openai:http://localhost:11434#qwen3:1.7b", Choice("openai", "http://localhost:11434/v1", "qwen3:1.7b")),
        (
            "openai:https://a.example/api/v1/#Qwen/Qwen3-1.7B",
            Choice("openai", "https://a.example/api/v1", "Qwen/Qwen3-1.7B"),
        ),
        ("openai:http://[::1]:80/v1#m?window=32768", Choice("openai", "http://[::1]:80/v1", "m", 32768)),
        ("openai:http://h/v1#m?window=9&timeout=30", Choice("openai", "http://h/v1", "m", 9, 30)),
        ("llama:qwen3-1.7b", Choice("llama", "", "qwen3-1.7b")),
        ("llama:Gemma-3-1B?threads=4", Choice("llama", "", "gemma-3-1b", threads=4)),
        ("llama:/models/x.gguf", Choice("llama", "/models/x.gguf")),
        ("llama:x.gguf?window=512", Choice("llama", "x.gguf", "", 512)),
        ("llama:/odd?name/x.gguf", Choice("llama", "/odd?name/x.gguf")),
    ],
)
def test_a_choice_is_read(text: str, chosen: Choice) -> None:
    assert read_choice(text) == chosen
    assert read_choice(chosen.spell()) == chosen


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("", "not a model choice", "none, openai:URL#NAME, llama:PATH or llama:NAME"),
        ("gpt-5", "not a model choice", "openai:URL#NAME"),
        ("anthropic:x", "not a model choice", "openai:URL#NAME"),
        ("llama:", "names no model", "llama:PATH"),
        ("openai:http://h/v1", "names no model", "#NAME"),
        ("openai:h/v1#m", "has no address", "http://"),
        ("openai:ftp://h/v1#m", "has no address", "http://"),
        ("openai:http://h:99999/v1#m", "invalid address", "ort"),
        ("openai:http://h/v1#m?window=0", "has window=0", "above 0"),
        ("openai:http://h/v1#m?threads=2", "has an option 'threads'", "window, timeout"),
        ("llama:qwen3-9b", "no model 'qwen3-9b'", "qwen3-1.7b and gemma-3-1b"),
    ],
)
def test_what_is_no_choice_is_refused_with_a_hint(text: str, problem: str, hint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_choice(text)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text", ["openai:http://me:pa55@h/v1#m", "openai:http://me:pa55@h/v1", "openai:ftp://me:pa55@h#m"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_choice(text)
    assert "pa55" not in str(caught.value)


def test_the_recorded_name_has_no_folders_and_no_options() -> None:
    assert read_choice("llama:/home/ada/secret/x.gguf?window=512").name == "llama:x.gguf"
    assert read_choice("openai:http://h/v1#m?window=512").name == "openai:http://h/v1#m"
    assert read_choice("none").name == "none"


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert read_choice("llama:~/x.gguf").place == os.path.join("/home/ada", "x.gguf")
