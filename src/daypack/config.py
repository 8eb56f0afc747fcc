"""Settings: one typed value, merged from layers. The first layer that has a setting decides.

argument or flag > environment > the session's meta.json > home/<uid>/config.toml > default
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

from msgspec import Struct

from daypack.errors import BadConfig

Durability = Literal["sync", "os"]
Locking = Literal["flock", "single_writer"]
Redaction = Literal["on", "off"]


class Config(Struct, frozen=True):
    """All settings.

    `durability`: "sync" acknowledges an append when it is on disk, "os" when the kernel has it.
    `locking`: "single_writer" is for file systems without locks, with one writing process.
    `model`: the model the session is for, which determines how tokens are counted.
    `workspace`: the folder whose AGENTS.md and other files go into packs; empty: none. Default: the folder in which the
    session was created.
    `compaction_model`: the model for compaction: none, openai:URL#NAME, llama:PATH or llama:NAME. Default: the pulled
    local model, else none.
    `embedding_model`: the model for vector search in memories: none, static, minilm or openai:URL#NAME. Default: the
    best that is installed.
    `redaction`: "off" keeps secrets in packs and exports.
    """

    durability: Durability = "sync"
    locking: Locking = "flock"
    model: str | None = None
    workspace: str | None = None
    compaction_model: str | None = None
    embedding_model: str | None = None
    redaction: Redaction = "on"


class Settings(TypedDict, total=False):
    """The same settings as keyword arguments; omitted settings come from the other layers."""

    durability: Durability
    locking: Locking
    model: str
    workspace: str
    compaction_model: str
    embedding_model: str
    redaction: Redaction


_ALLOWED: dict[str, tuple[str, ...]] = {
    "durability": get_args(Durability),
    "locking": get_args(Locking),
    "redaction": get_args(Redaction),
}


def settle(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> Config:
    """Merge named layers, highest first; unknown keys are ignored."""
    chosen: dict[str, Any] = {}
    for name in Config.__struct_fields__:
        for layer, values in layers:
            value = values.get(name)
            if value is not None:
                chosen[name] = _checked(name, value, layer)
                break
    return Config(**chosen)


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in the environment: DAYPACK_DURABILITY and so on."""
    names = ((name, f"DAYPACK_{name.upper()}") for name in Config.__struct_fields__)
    return {name: environ[variable] for name, variable in names if environ.get(variable)}


def from_file(path: str) -> dict[str, Any]:
    """Return the settings in a config.toml; {} if the file is missing."""
    if not os.path.exists(path):
        return {}
    import tomllib  # noqa: PLC0415 — 15 ms, only with such a file

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:
        raise BadConfig(str(error), operation="read settings", place=path, hint="fix or delete the file") from error


def _checked(name: str, value: object, layer: str) -> object:
    allowed = _ALLOWED.get(name)
    if not isinstance(value, str) or (allowed and value not in allowed):
        choice = f"one of {', '.join(allowed)}" if allowed else "text"
        raise BadConfig(f"{name} is {value!r}", operation="read settings", place=layer, hint=f"it must be {choice}")
    return value
