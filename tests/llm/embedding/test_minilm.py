"""MiniLM in plain numpy: the same vectors as the reference, whatever stands beside a text."""

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from llm.embedding.embedders import find_embedder
from llm.embedding.test_model_files import ENTRY, written

from daypack.errors import ModelFailed
from daypack.llm.embedding.minilm import MAX_TOKENS, MiniLmEmbedder, _activate  # pyright: ignore[reportPrivateUsage]
from daypack.llm.embedding.port import Embedder

# Rows begin so, and are so close to the first, with the tokenizer of the model's makers and plain matrices.
REFERENCE = {
    "We ship on Friday.": ((-0.016971, -0.00389, -0.004229, -0.010228), 1.0),
    "The release goes out at the end of the week.": ((0.018054, -0.027778, 0.028597, -0.028586), 0.420756),
    "我们决定用 PostgreSQL，不用 MySQL。": ((0.009857, 0.053519, 0.049065, 0.036738), 0.067712),
    "Café 😀\tnaïve  [SEP] <s>x": ((-0.026843, 0.011473, 0.043401, -0.005548), 0.059797),
    "word " * 400: ((-0.008124, -0.095586, -0.038673, 0.049662), 0.020193),
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return find_embedder("minilm")


def test_rows_are_those_of_the_reference(embedder: Embedder) -> None:
    rows = embedder.encode(list(REFERENCE))
    assert (rows.shape, rows.dtype) == ((5, embedder.dimensions), np.float32)
    np.testing.assert_allclose(rows[:, :4], [begin for begin, _ in REFERENCE.values()], atol=2e-6)
    np.testing.assert_allclose(rows @ rows[0], [close for _, close in REFERENCE.values()], atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_a_text_has_the_same_row_whatever_stands_beside_it(embedder: Embedder) -> None:
    texts = [*REFERENCE, *("very " * count + "good" for count in range(0, 60, 3)), "", "one", "two"]
    together = embedder.encode(texts)
    alone = np.concatenate([embedder.encode([text]) for text in texts])
    backwards = embedder.encode(texts[::-1])[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(backwards, alone, atol=1e-6)


def test_of_a_long_text_only_the_first_pieces_count(embedder: Embedder) -> None:
    most = "word " * (MAX_TOKENS - 2)
    first, second, shorter = embedder.encode([most, f"{most}and something else", "word " * (MAX_TOKENS - 3)])
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.abs(first - shorter).max() > 1e-5


def test_blank_texts_are_zero_and_halves_of_pairs_do_no_harm(embedder: Embedder) -> None:
    rows = embedder.encode(["", " \n", "a\ud800b"])
    assert not rows[:2].any()
    np.testing.assert_allclose(np.linalg.norm(rows[2]), 1, atol=1e-6)
    assert embedder.encode([]).shape == (0, embedder.dimensions)


def test_threads_share_it(embedder: Embedder) -> None:
    embedder.close()  # so that they load it at once too
    texts = list(REFERENCE)
    rows: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        rows[number] = embedder.encode([texts[number]])[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([rows[number] for number in range(len(texts))], embedder.encode(texts), atol=1e-6)


def test_the_activation_is_the_exact_one() -> None:
    points = np.linspace(-12, 12, 20_001, dtype=np.float32)
    exact = [x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in points.astype(np.float64)]
    _activate(points)
    np.testing.assert_allclose(points, exact, rtol=2e-7, atol=1e-6)


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    embedder = MiniLmEmbedder(written(tmp_path / "x", {"embedding.weight": ENTRY}), "tokenizer.json")
    with pytest.raises(ModelFailed, match=r"embeddings.token_type_embeddings.weight is missing or malformed"):
        embedder.encode(["a"])
