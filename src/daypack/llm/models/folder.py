"""The folder of pulled models: one file per model and a JSON file with its origin.

Qwen3-1.7B-Q4_K_M.gguf.json   {"url":"https://…","sha256":"ab…","size_bytes":1107409472,"verified":"hub"}
"""

import os
import re
from collections.abc import Mapping

import msgspec

from daypack.errors import BadConfig, ModelMissing
from daypack.llm.models.catalogue import Model
from daypack.llm.models.download import Fetched, Progress, fetch
from daypack.plain_files import open_plain

HUB = "https://huggingface.co"


def find_hub(named: str | None, environ: Mapping[str, str]) -> str:
    """Return the address of the hub: the argument, else DAYPACK_MODEL_HUB, else the public hub."""
    hub = (named or environ.get("DAYPACK_MODEL_HUB") or HUB).rstrip("/")
    if not re.match(r"https?://[^/@]+(/|$)", hub):
        raise BadConfig(
            "is not an address", operation="pull model", place=hub, hint="it begins with https:// or http://"
        )
    return hub


def addresses(model: Model, hub: str) -> list[str]:
    """Return the possible addresses of a model file; an address that ends in .gguf is the file itself."""
    if hub.endswith(".gguf"):
        return [hub]
    return [f"{hub}/{origin.repository}/resolve/main/{origin.file}" for origin in model.origins]


def pull(
    model: Model, folder: str, *, hub: str = HUB, sha256: str | None = None, progress: Progress | None = None
) -> tuple[Fetched, bool]:
    """Download a model into the folder; return what is there and whether it is new."""
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise BadConfig("is not a sha256", operation="pull model", place=sha256, hint="64 hexadecimal digits")
    path = os.path.join(folder, model.file)
    expected = sha256 or model.sha256
    here = read_origin(path)
    if here is not None and (expected is None or here.sha256 == expected.lower()):
        return here, False
    *others, last = addresses(model, hub)
    for url in others:
        try:
            return fetch(url, path, sha256=expected, progress=progress), True
        except ModelMissing:
            continue  # the next repository may have it
    return fetch(last, path, sha256=expected, progress=progress), True


def read_origin(path: str) -> Fetched | None:
    """Return the origin of a model file; None if it is missing or has changed in size."""
    try:
        with open_plain(f"{path}.json") as file:
            fetched = msgspec.json.decode(file.read(), type=Fetched)
        return fetched if os.path.getsize(path) == fetched.size_bytes else None
    except (OSError, msgspec.MsgspecError):
        return None


def list_files(folder: str) -> dict[str, int]:
    """Return the GGUF files of a folder with their sizes."""
    try:
        with os.scandir(folder) as found:
            return {file.name: file.stat().st_size for file in sorted(found, key=_name) if _is_model(file)}
    except FileNotFoundError:
        return {}


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _is_model(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".gguf") and entry.is_file()
