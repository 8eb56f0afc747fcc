"""Embeddings over HTTP: llama.cpp's server, Ollama, vLLM, OpenAI and whatever speaks like them."""

import threading
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from daypack.llm.choice import Choice
from daypack.llm.client import Deadline
from daypack.llm.completion.replies import read_refusal
from daypack.llm.endpoint import HINTS, Endpoint

_BATCH_TEXTS = 32
_BATCH_CHARS = 64_000
_SHORTEST_CHARS = 200  # a text that is refused at this length is not refused for its length
_LENGTH_SIGNS = ("context", "length", "too large", "too long", "token")

Floats = NDArray[np.float32]


class _Vector(Struct):
    embedding: list[float]
    index: int = 0


class _Answer(Struct):
    data: list[_Vector]


class HttpEmbedder:
    """A model behind an address. How many numbers a vector has is learnt from the first answer.

    Every question has its own time limit. A text that is too long for the model is cut until it takes it.
    """

    weight = 1.0
    instant = False

    def __init__(self, chosen: Choice, *, key: str = "", pause_seconds: float = 0.5) -> None:
        self.name = chosen.name
        self._model = chosen.model
        self._path = f"{urlsplit(chosen.place).path}/embeddings"
        self._seconds = float(chosen.deadline_seconds)
        self._key = key
        self._endpoint = Endpoint(chosen.name, chosen.place, key=key, pause_seconds=pause_seconds)
        self._dimensions = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"HttpEmbedder({self.name!r})"

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; the first look asks for one."""
        if not self._dimensions:
            self._ask(["dimensions"])
        return self._dimensions

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one row of length 1 for each text; a blank text, which endpoints refuse, has a row of zeros."""
        places = [at for at, text in enumerate(texts) if text and not text.isspace()]
        found = [row for batch in _batches([_well_formed(texts[at]) for at in places]) for row in self._ask(batch)]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if found:
            rows[places] = found
        return rows

    def close(self) -> None:
        """Do nothing: no connection is kept between questions."""

    def _ask(self, texts: list[str]) -> list[Floats]:
        asked = {"model": self._model, "input": texts}
        answer = self._endpoint.send("POST", self._path, asked, Deadline(self._seconds))
        if answer.status == 200:
            return self._read(answer.body, len(texts))
        refusal, _ = read_refusal(answer.body, self._key)
        if answer.status in (400, 413, 422, 500) and any(sign in refusal.lower() for sign in _LENGTH_SIGNS):
            if len(texts) > 1:  # one of them is too long, or all of them together
                middle = len(texts) // 2
                return self._ask(texts[:middle]) + self._ask(texts[middle:])
            if len(texts[0]) > _SHORTEST_CHARS:
                return self._ask([texts[0][: len(texts[0]) // 2]])
        hint = HINTS.get(answer.status, "does this endpoint have embeddings, and this model?")
        raise self._endpoint.failed(f"HTTP {answer.status}: {refusal}", hint)

    def _read(self, body: bytes, count: int) -> list[Floats]:
        """Read the vectors of an answer; their order is what each says of itself."""
        try:
            found = sorted(msgspec.json.decode(body, type=_Answer).data, key=lambda one: one.index)
            with np.errstate(over="ignore"):  # then it is infinite, and refused below
                rows = np.array([one.embedding for one in found], np.float32)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            rows = np.zeros((0, 0), np.float32)
        with self._lock:
            wanted = self._dimensions or rows.size // count
            if not wanted or rows.shape != (count, wanted) or not np.isfinite(rows).all():
                told = read_refusal(body, self._key)[0]
                problem = f"the answer is not {count} vectors of {wanted or 'some'} numbers: {told}"
                raise self._endpoint.failed(problem, "is this an endpoint for embeddings?")
            self._dimensions = wanted
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(rows / np.maximum(lengths, 1e-12))


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Cut texts into batches of bounded size."""
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


def _well_formed(text: str) -> str:
    """Replace halves of pairs, which no bytes stand for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
