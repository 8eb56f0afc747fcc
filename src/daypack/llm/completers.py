"""Opens the completion model that a choice names."""

import os

from daypack.errors import BadConfig, ModelMissing
from daypack.llm.choice import Choice, read_choice
from daypack.llm.completion.port import Completer
from daypack.llm.models.catalogue import DEFAULT, find_model


def open_completer(choice: str, *, models: str | None = None) -> Completer | None:
    """Return the model of a choice, None for "none"; `models` is the folder of pulled models.

    The first completion loads the model or connects to its server.
    """
    chosen = read_choice(choice)
    if chosen.kind == "none":
        return None
    if chosen.kind == "openai":
        from daypack.llm.completion.http import HttpCompleter  # noqa: PLC0415 — HTTP and TLS cost 30 ms
        from daypack.llm.endpoint import find_key  # noqa: PLC0415

        return HttpCompleter(chosen, key=find_key(chosen.place, os.environ))
    from daypack.llm.completion.llama import LlamaCompleter  # noqa: PLC0415 — the package is optional

    return LlamaCompleter(chosen, find_model_file(chosen, models))


def check_completer(choice: str, *, models: str | None = None) -> None:
    """Raise if a choice is invalid or names a file that does not exist; nothing is opened."""
    chosen = read_choice(choice)
    if chosen.kind == "llama":
        find_model_file(chosen, models)


def find_model_file(chosen: Choice, models: str | None) -> str:
    """Return the path of the GGUF file that a llama choice names."""
    path = chosen.place
    hint = "name an existing GGUF file: llama:PATH"
    if chosen.model:
        if models is None:
            raise BadConfig("no model folder was given", operation="open model", place=chosen.name, hint=hint)
        path = os.path.join(models, find_model(chosen.model).file)
        hint = f"run `daypack model pull {chosen.model}`"
    if not os.path.isfile(path):
        raise ModelMissing("the model file does not exist", operation="open model", place=path, hint=hint)
    return path


def default_completion_model(models: str | None) -> str:
    """Return the choice for an unset setting: the default model if it is pulled and can run, else "none"."""
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms, only needed before a compaction

    is_pulled = models is not None and os.path.isfile(os.path.join(models, find_model(DEFAULT).file))
    return f"llama:{DEFAULT}" if is_pulled and find_spec("xllamacpp") else "none"
