"""Embeddings of an endpoint: scripted ones that misbehave, and a real llama.cpp."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scripted_endpoint import Endpoint, Reply, Seen, refuse

from daypack.errors import ModelFailed
from daypack.llm.choice import read_embedding
from daypack.llm.client import Retry
from daypack.llm.embedding.http import HttpEmbedder


def vector(text: str) -> list[float]:
    """A vector that tells one text from another."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


def embed(seen: Seen) -> Reply:
    """Answer as endpoints do, the last one first: the order is in the index."""
    rows = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(inputs(seen))]
    return Reply({"object": "list", "data": rows[::-1], "model": "scripted"})


def inputs(seen: Seen) -> list[str]:
    return seen.json["input"]


def ask(endpoint: Endpoint, *, key: str = "", options: str = "") -> HttpEmbedder:
    return HttpEmbedder(
        read_embedding(f"openai:{endpoint.url}/v1#m{options}"), key=key, retry=Retry(pause_seconds=0.01)
    )


def expected(texts: list[str]) -> np.ndarray:
    rows = np.array([vector(text) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_every_text_gets_its_row_of_length_1() -> None:
    texts = [f"text {'x' * number}" for number in range(70)]
    with Endpoint(embed) as endpoint:
        embedder = ask(endpoint, key="k")
        rows = embedder.encode(texts)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected(texts), atol=1e-6)
    assert [len(inputs(one)) for one in endpoint.seen] == [32, 32, 6]
    first = endpoint.seen[0]
    assert (first.method, first.path, first.headers["authorization"]) == ("POST", "/v1/embeddings", "Bearer k")
    assert first.json["model"] == "m"
    assert embedder.dimensions == 3
    assert len(endpoint.seen) == 3  # it knew that by then


def test_long_texts_make_small_batches() -> None:
    texts = ["x" * 30_000] * 5
    with Endpoint(embed) as endpoint:
        ask(endpoint).encode(texts)
    assert [len(inputs(one)) for one in endpoint.seen] == [2, 2, 1]


def test_blank_texts_are_not_sent_and_halves_of_pairs_are_replaced() -> None:
    with Endpoint(embed) as endpoint:
        rows = ask(endpoint).encode(["", "one", " \n", "a\ud800b"])
        assert not rows[[0, 2]].any()
        np.testing.assert_allclose(rows[[1, 3]], expected(["one", "a\ufffdb"]), atol=1e-6)
        assert inputs(endpoint.seen[0]) == ["one", "a\ufffdb"]
        assert ask(endpoint).encode([" "]).tolist() == [[0, 0, 0]]
        assert ask(endpoint).encode([]).shape == (0, 3)


def test_a_text_that_is_too_long_is_cut_and_the_others_are_not() -> None:
    def answer(seen: Seen) -> Reply:
        if any(len(text) > 1000 for text in inputs(seen)):
            return refuse(500, "input (3001 tokens) is too large to process")
        return embed(seen)

    texts = ["short", "x" * 3001, "y" * 900]
    with Endpoint(answer) as endpoint:
        rows = ask(endpoint).encode(texts)
    np.testing.assert_allclose(rows, expected(["short", "x" * 750, "y" * 900]), atol=1e-6)


def test_a_busy_endpoint_is_asked_again() -> None:
    with Endpoint(lambda seen: refuse(503, "loading") if len(endpoint.seen) < 3 else embed(seen)) as endpoint:
        assert ask(endpoint).encode(["one"]).shape == (1, 3)
    assert len(endpoint.seen) == 3


def always(reply: Reply) -> Callable[[Seen], Reply]:
    return lambda _seen: reply


def rows_of(*rows: Any) -> Callable[[Seen], Reply]:
    return always(Reply({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (always(refuse(401, "bad key sk-secret")), "HTTP 401: bad key …"),
        (always(refuse(404, "no such model")), "HTTP 404: no such model"),
        (always(refuse(500, "out of memory")), "HTTP 500: out of memory"),
        (always(refuse(400, "too many tokens")), "HTTP 400: too many tokens"),
        (always(refuse(429, "busy")), "HTTP 429: busy"),
        (always(Reply(b"<html>")), "not 2 vectors of some numbers"),
        (always(Reply({"data": []})), "not 2 vectors of some numbers"),
        (always(Reply({"data": [{"index": 0}, {"index": 1}]})), "not 2 vectors of some numbers"),
        (rows_of([1, 2]), "not 2 vectors"),
        (rows_of([1, 2], [1, 2], [1, 2]), "not 2 vectors"),
        (rows_of([1, 2], [1, 2, 3]), "not 2 vectors"),
        (rows_of([], []), "not 2 vectors"),
        (rows_of([1, None], [1, 2]), "not 2 vectors"),
        (rows_of([1e300, 1], [1, 2]), "not 2 vectors"),
        (rows_of([[1, 2]], [[1, 2]]), "not 2 vectors"),
        (always(Reply(b'{"data": []}', cut_at=5)), "cut off"),
        (always(Reply(status=302, headers={"Location": "http://elsewhere.invalid/"})), "redirects to"),
    ],
)
def test_what_is_no_answer_is_a_failure_that_names_the_endpoint(answer: Callable[[Seen], Reply], problem: str) -> None:
    with Endpoint(answer) as endpoint, pytest.raises(ModelFailed) as caught:
        ask(endpoint, key="sk-secret").encode(["one", "two"])
    assert problem in caught.value.problem
    assert "sk-secret" not in str(caught.value)
    assert caught.value.place == f"openai:{endpoint.url}/v1#m"
    assert caught.value.hint
    assert len(endpoint.seen) <= Retry().attempts


def test_an_endpoint_that_changes_its_dimensions_is_refused() -> None:
    def answer(seen: Seen) -> Reply:
        return Reply({"data": [{"embedding": [1, 2, 3][: 1 + len(endpoint.seen)]}]})

    with Endpoint(answer) as endpoint:
        embedder = ask(endpoint)
        embedder.encode(["one"])
        with pytest.raises(ModelFailed, match="not 1 vectors of 2 numbers"):
            embedder.encode(["one"])


def test_the_time_limit_holds() -> None:
    late = always(Reply({"data": []}, delay_seconds=1.5))
    with Endpoint(late) as endpoint, pytest.raises(ModelFailed, match="no response in time"):
        ask(endpoint, options="?timeout=1").encode(["one"])


@pytest.fixture(scope="module")
def llama(small_model: str) -> Iterator[str]:
    """The address of a llama.cpp that embeds, with room for 256 tokens."""
    library: Any = import_module("xllamacpp")
    params: Any = library.CommonParams()
    params.model.path = small_model
    params.n_ctx = params.n_batch = params.n_ubatch = 256
    params.n_parallel = params.n_threads_http = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = -1
    params.embedding = True
    params.pooling_type = library.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server: Any = library.Server(params)
    yield server.listening_address
    del server


def test_a_real_llama_cpp_embeds(llama: str) -> None:
    embedder = HttpEmbedder(read_embedding(f"openai:{llama}/v1#small"))
    texts = [
        "The cat sat on the mat.",
        "A cat is sitting on a mat.",
        "Interest rates rose in May.",
        "",
        "many words " * 400,
    ]
    rows = embedder.encode(texts)
    assert rows.shape == (5, embedder.dimensions) == (5, 576)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 1, 0, 1], atol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    np.testing.assert_allclose(embedder.encode(texts[1:2])[0], rows[1], atol=1e-3)
