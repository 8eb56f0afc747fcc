"""Embeddings over HTTP: llama.cpp's server, Ollama, vLLM, OpenAI and compatible endpoints."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from daypack.forks import ThreadLock
from daypack.llm.choice import Choice
from daypack.llm.client import MODEL_RETRY, Retry
from daypack.llm.endpoint import Endpoint
from daypack.types.deadline import Deadline

_BATCH_TEXTS = 32
_BATCH_CHARS = 64_000
_SHORTEST_CHARS = 200  # a refusal of so short a text has another reason than its length
_LENGTH_WORDS = ("context", "length", "too large", "too long", "token")

Floats = NDArray[np.float32]


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _Body(Struct):
    data: list[_Vector]


class HttpEmbedder:
    """A model on a server; the first response shows the length of its vectors.

    Every request has its own time limit. A text that is too long for the model is halved until it is accepted.
    """

    weight = 1.0
    instant = False

    def __init__(self, chosen: Choice, *, key: str = "", retry: Retry = MODEL_RETRY) -> None:
        self.name = chosen.name
        self._model = chosen.model
        self._path = f"{urlsplit(chosen.place).path}/embeddings"
        self._seconds = float(chosen.deadline_seconds)
        self._endpoint = Endpoint(chosen.name, chosen.place, key=key, retry=retry)
        self._dimensions = 0
        self._lock = ThreadLock()

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.name!r})"

    @property
    def dimensions(self) -> int:
        """The length of a vector; the first access sends a request."""
        if not self._dimensions:
            self._embed(["dimensions"])
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text; a blank text, which endpoints refuse, has a row of zeros."""
        positions = [position for position, text in enumerate(texts) if text and not text.isspace()]
        batches = _batches([_replace_surrogates(texts[position]) for position in positions])
        vectors = [vector for batch in batches for vector in self._embed(batch)]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if vectors:
            rows[positions] = vectors
        return rows

    def close(self) -> None:
        """Do nothing: no connection is kept between requests."""

    def _embed(self, texts: list[str]) -> list[Floats]:
        body = {"model": self._model, "input": texts}
        response = self._endpoint.send("POST", self._path, body, Deadline.after(self._seconds))
        if response.status == 200:
            return self._read(response.body, len(texts))
        refusal = self._endpoint.read_refusal(response.body).text.lower()
        if response.status in (400, 413, 422, 500) and any(word in refusal for word in _LENGTH_WORDS):
            if len(texts) > 1:  # one of them is too long, or all of them together
                middle = len(texts) // 2
                return self._embed(texts[:middle]) + self._embed(texts[middle:])
            if len(texts[0]) > _SHORTEST_CHARS:
                return self._embed([texts[0][: len(texts[0]) // 2]])
        raise self._endpoint.failed_status(response, "check that this endpoint has embeddings and this model")

    def _read(self, body: bytes, count: int) -> list[Floats]:
        """Read the vectors of a response in the order of their indexes."""
        try:
            vectors = sorted(msgspec.json.decode(body, type=_Body).data, key=lambda vector: vector.index)
            with np.errstate(over="ignore"):  # an overflow gives infinity, which is refused below
                rows = np.array([vector.embedding for vector in vectors], np.float32)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            rows = np.zeros((0, 0), np.float32)
        with self._lock:
            dimensions = self._dimensions or rows.size // count
            if not dimensions or rows.shape != (count, dimensions) or not np.isfinite(rows).all():
                text = self._endpoint.read_refusal(body).text
                problem = f"the response is not {count} vectors of {dimensions or 'some'} numbers: {text}"
                raise self._endpoint.failed(problem, "is this an endpoint for embeddings?")
            self._dimensions = dimensions
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(rows / np.maximum(lengths, 1e-12))


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Split texts into batches of limited size."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == _BATCH_TEXTS or size + len(text) > _BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
