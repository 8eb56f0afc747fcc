"""The pieces a text is cut into for an embedding model, by the tokenizer.json that comes with it."""

import threading

from splintr import AnyTokenizer, from_json

from daypack.errors import ModelFailed

_MAX_CACHED = 50_000


class Pieces:
    """A tokenizer that is loaded with the first text; threads may share it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._loaded: AnyTokenizer | None = None

    def cut(self, text: str) -> list[int]:
        """Return the ids of the pieces, none of them a boundary."""
        encode = (self._loaded or self._load()).encode_raw
        try:
            return encode(text)
        except UnicodeEncodeError:  # half of a pair, which no bytes stand for
            return encode(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))

    @property
    def remembered(self) -> int:
        """How many words and their pieces are remembered; only one family of tokenizers does."""
        return self._loaded.cache_len if self._loaded and self._loaded.family == "BPE" else 0

    def trim(self) -> None:
        """Forget words when very many are remembered: the tokenizer never forgets by itself."""
        if self._loaded and self.remembered > _MAX_CACHED:
            self._loaded.clear_cache()

    def _load(self) -> AnyTokenizer:
        with self._lock:
            if self._loaded is None:
                try:
                    self._loaded = from_json(self._path)
                except ValueError as error:
                    hint = "fetch it again with `daypack model pull`"
                    raise ModelFailed(str(error), operation="read tokenizer", place=self._path, hint=hint) from error
            return self._loaded
