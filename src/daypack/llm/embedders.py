"""Opens the embedding model that a choice names, and finds its files.

none | static | minilm | openai:URL#NAME, the last with an option: ?timeout=30
"""

import os

from daypack.errors import ExtraMissing, ModelMissing
from daypack.llm.choice import read_embedding
from daypack.llm.embedding.port import Embedder
from daypack.llm.models.catalogue import ENCODERS, Encoder, find_encoder


def open_embedder(choice: str, *, models: str | None = None) -> Embedder | None:
    """Return the embedding model of a choice, None for "none"; `models` is the folder of pulled models.

    The first text loads the model or connects to its server.
    """
    chosen = read_embedding(choice)
    if chosen.kind == "none":
        return None
    if missing := _missing_package():
        problem, hint = f"{missing} is not installed", "pip install 'daypack[vectors]'"
        raise ExtraMissing(problem, operation="open embedding model", place=choice, hint=hint)
    encoder = find_encoder(chosen.kind)
    if encoder is None:
        from daypack.llm.embedding.http import HttpEmbedder  # noqa: PLC0415 — HTTP and TLS cost 30 ms
        from daypack.llm.endpoint import find_key  # noqa: PLC0415

        return HttpEmbedder(chosen, key=find_key(chosen.place, os.environ))
    files = find_files(encoder, models)
    if files is None:
        problem, hint = "the model is not installed", f"run `daypack model pull {encoder.name}`"
        raise ModelMissing(problem, operation="open embedding model", place=encoder.name, hint=hint)
    if encoder.name == "static":
        from daypack.llm.embedding.static import StaticEmbedder  # noqa: PLC0415 — numpy is 100 ms

        return StaticEmbedder(*files)
    from daypack.llm.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415 — the same

    return MiniLmEmbedder(*files)


def default_embedding_model(models: str | None) -> str:
    """Return the choice for an unset setting: the best model that is installed, else "none"."""
    if _missing_package():
        return "none"
    return next((encoder.name for encoder in ENCODERS if find_files(encoder, models)), "none")


def find_files(encoder: Encoder, models: str | None) -> tuple[str, str] | None:
    """Return the paths of weights and tokenizer: the pulled files, else those of the installed package."""
    if models is not None:
        folder = os.path.join(models, encoder.name)
        pulled = os.path.join(folder, encoder.weights.file), os.path.join(folder, encoder.tokenizer.file)
        if all(map(os.path.isfile, pulled)):
            return pulled
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    try:
        spec = find_spec(encoder.weights.member.partition("/")[0])  # finds the package without running it
    except (ImportError, ValueError):
        return None
    for folder in (spec and spec.submodule_search_locations) or ():
        parent = os.path.dirname(folder)
        installed = os.path.join(parent, encoder.weights.member), os.path.join(parent, encoder.tokenizer.member)
        if all(map(os.path.isfile, installed)):
            return installed
    return None


def _missing_package() -> str:
    """Return the first package of the extra `vectors` that is not installed, "" if all are."""
    from importlib.util import find_spec  # noqa: PLC0415 — 4 ms

    return next((name for name in ("numpy", "safetensors") if find_spec(name) is None), "")
