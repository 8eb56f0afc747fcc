"""The port to a model: what is asked, what comes back, and which model a choice stands for.

A model may fail, be slow or answer nonsense: whoever calls has a way without it, and checks what it said.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from daypack.errors import BadConfig, ModelMissing
from daypack.llm.choice import Choice, read_choice
from daypack.llm.models.catalogue import DEFAULT, find_model

Finish = Literal["stop", "length", "other"]
Constraint = Literal["", "grammar", "schema"]


class Prompt(Struct, frozen=True):
    """One question to a model.

    `grammar` (GBNF) or `schema` (JSON Schema) binds the answer where the backend can. With both, the grammar is used
    where there are grammars, else the schema; `Completion.constraint` tells which.
    """

    system: str
    user: str
    max_tokens: int = 1024
    grammar: str | None = None
    schema: dict[str, Any] | None = None
    seed: int = 7


class Completion(Struct, frozen=True):
    """What a model answered. A text that was cut off has finish "length": it is not whole."""

    text: str
    finish: Finish
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    constraint: Constraint = ""


class Completer(Protocol):
    """A model that can be asked, from one thread at a time."""

    @property
    def name(self) -> str:
        """What to record as the model of an answer."""
        ...

    @property
    def window_tokens(self) -> int:
        """How many tokens prompt and answer may have together; the first look may load the model or ask for it."""
        ...

    def complete(self, prompt: Prompt) -> Completion:
        """Answer, or raise ModelFailed."""
        ...

    def close(self) -> None:
        """Let go of memory and connections; asking again opens them again."""
        ...


def open_completer(choice: str, *, models: str | None = None) -> Completer | None:
    """Return the model of a choice, None for "none"; `models` is the folder of pulled models.

    Nothing is loaded and nobody is asked yet: that happens with the first question.
    """
    chosen = read_choice(choice)
    if chosen.kind == "none":
        return None
    if chosen.kind == "openai":
        from daypack.llm.completion.http import HttpCompleter  # noqa: PLC0415 — HTTP and TLS cost 30 ms

        return HttpCompleter(chosen, key=find_key(chosen.place, os.environ))
    from daypack.llm.completion.llama import LlamaCompleter  # noqa: PLC0415 — few have it installed

    return LlamaCompleter(chosen, model_path(chosen, models))


def model_path(chosen: Choice, models: str | None) -> str:
    """Return the GGUF file a llama choice stands for."""
    path = chosen.place
    hint = "name a GGUF file that is there: llama:PATH"
    if chosen.model:
        if models is None:
            raise BadConfig("no folder of models was named", operation="open model", place=chosen.name, hint=hint)
        path = os.path.join(models, find_model(chosen.model).file)
        hint = f"`daypack model pull {chosen.model}` fetches it"
    if not os.path.isfile(path):
        raise ModelMissing("there is no such model file", operation="open model", place=path, hint=hint)
    return path


def default_choice(models: str | None) -> str:
    """Return the choice when nobody made one: the default model if it is here and can be run, else none."""
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms, only asked before a compaction

    here = models is not None and os.path.isfile(os.path.join(models, find_model(DEFAULT).file))
    return f"llama:{DEFAULT}" if here and find_spec("xllamacpp") else "none"


def find_key(url: str, environ: Mapping[str, str]) -> str:
    """Return the key for an address; OpenAI's own is not shown to whoever listens on the way."""
    if key := environ.get("DAYPACK_API_KEY"):
        return key
    from daypack.llm.client import is_private  # noqa: PLC0415 — with HTTP

    return environ.get("OPENAI_API_KEY", "") if is_private(url) else ""
