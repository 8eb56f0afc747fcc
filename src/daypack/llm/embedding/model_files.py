"""The two files of a local embedding model: tensors (safetensors) and tokenizer (tokenizer.json)."""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from splintr import AnyTokenizer, from_json

from daypack.errors import ModelFailed, ModelMissing
from daypack.forks import ThreadLock, forks

_MAX_CACHED_WORDS = 50_000

# Each file is loaded once in a process: the library reads it with threads of its own, which a forked child does not
# have, so that loading it again there would never end.
_known: "dict[tuple[str, int, int, int], AnyTokenizer]" = {}
_loading = ThreadLock()

_Result = TypeVar("_Result")


class Tensors:
    """A safetensors file. It is mapped into memory only while a tensor is copied out of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.shapes = self._read(_read_shapes)

    def read(self, name: str) -> NDArray[Any]:
        """Return a tensor; raise ModelFailed if there is none of that name."""
        return self._read(lambda file: file.get_tensor(name))

    def _read(self, read: Callable[[Any], _Result]) -> _Result:
        try:
            with cast("Any", safe_open)(self._path, "numpy") as file:
                return read(file)
        except FileNotFoundError as error:
            problem, hint = "the model file does not exist", "`daypack model list` lists the installed models"
            raise ModelMissing(problem, operation="read model", place=self._path, hint=hint) from error
        except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
            problem, hint = f"invalid safetensors file: {error}", "download it again with `daypack model pull`"
            raise ModelFailed(problem, operation="read model", place=self._path, hint=hint) from error


def _read_shapes(file: Any) -> dict[str, tuple[int, ...]]:  # noqa: ANN401 — untyped library
    return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 — not a dict


class Tokenizer:
    """A tokenizer.json, loaded when the first text is encoded; threads may share it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._loaded: AnyTokenizer | None = None

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without boundary tokens."""
        encode = (self._loaded or self._load()).encode_raw
        try:
            return encode(text)
        except UnicodeEncodeError:  # a lone surrogate
            return encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))

    @property
    def cached_words(self) -> int:
        """How many words the tokenizer has cached; only BPE tokenizers cache."""
        return self._loaded.cache_len if self._loaded and self._loaded.family == "BPE" else 0

    def trim_cache(self) -> None:
        """Clear a large cache: the tokenizer never evicts."""
        if self._loaded and self.cached_words > _MAX_CACHED_WORDS:
            self._loaded.clear_cache()

    def _load(self) -> AnyTokenizer:
        with _loading, forks.postponed():
            self._loaded = _known.get(key := _identity(self._path))
            if self._loaded is None:
                try:
                    self._loaded = _known[key] = from_json(self._path)
                except ValueError as error:
                    hint = "download it again with `daypack model pull`"
                    raise ModelFailed(str(error), operation="read tokenizer", place=self._path, hint=hint) from error
            return self._loaded


def _identity(path: str) -> tuple[str, int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return path, 0, 0, 0
    return path, status.st_ino, status.st_size, status.st_mtime_ns
