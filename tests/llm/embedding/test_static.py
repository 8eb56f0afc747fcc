"""Static vectors: the same as with the tokenizer and the table they were made with."""

from pathlib import Path

import numpy as np
import pytest
from llm.embedding.embedders import MODELS, find_embedder
from llm.embedding.test_model_files import ENTRY, written

from daypack.errors import ModelFailed
from daypack.llm.embedders import find_files
from daypack.llm.embedding.model_files import Tensors, Tokenizer
from daypack.llm.embedding.port import Embedder
from daypack.llm.embedding.static import StaticEmbedder
from daypack.llm.models.catalogue import find_encoder

# Rows begin so, and are so close to the first, with the library and the tokenizer of the model's makers.
REFERENCE = {
    "We ship on Friday.": ((-0.099626, -0.038622, -0.134109, 0.087518), 1.0),
    "The release goes out at the end of the week.": ((0.098797, -0.009173, 0.056861, 0.017813), 0.183971),
    "我们决定用 PostgreSQL，不用 MySQL。": ((-0.089584, 0.112597, -0.082112, 0.040735), 0.114091),
    "Café 😀\tnaïve  [SEP] <s>x": ((-0.058928, 0.102506, 0.01691, -0.075662), 0.105021),
    "word " * 400: ((-0.106255, -0.025821, -0.034887, 0.003746), -0.063423),
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return find_embedder("static")


def test_rows_are_those_of_the_reference(embedder: Embedder) -> None:
    rows = embedder.encode(list(REFERENCE))
    assert (rows.shape, rows.dtype) == ((5, embedder.dimensions), np.float32)
    np.testing.assert_allclose(rows[:, :4], [begin for begin, _ in REFERENCE.values()], atol=1e-6)
    np.testing.assert_allclose(rows @ rows[0], [close for _, close in REFERENCE.values()], atol=1e-6)


@pytest.fixture
def files(embedder: Embedder) -> tuple[str, str]:
    encoder = find_encoder("static")
    found = find_files(encoder, MODELS) if encoder else None
    assert found is not None
    return found


def test_a_row_is_the_mean_of_its_pieces_and_has_the_length_1(embedder: Embedder, files: tuple[str, str]) -> None:
    table = Tensors(files[0]).read("embedding.weight").astype(np.float64)
    tokenizer = Tokenizer(files[1])
    for text in REFERENCE:
        mean = table[tokenizer.encode(text)].mean(0)
        np.testing.assert_allclose(embedder.encode([text])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_a_text_has_the_same_row_whatever_stands_beside_it(embedder: Embedder) -> None:
    texts = [*REFERENCE, "", "another"]
    together = embedder.encode(texts)
    assert [row.tolist() for row in together] == [embedder.encode([text])[0].tolist() for text in texts]


def test_blank_texts_are_zero_and_halves_of_pairs_do_no_harm(embedder: Embedder) -> None:
    rows = embedder.encode(["", " ", "\n\t", "a\ud800b", "\x00"])
    assert not rows[:3].any()
    np.testing.assert_allclose(np.linalg.norm(rows[3:], axis=1), 1, atol=1e-6)
    assert embedder.encode([]).shape == (0, embedder.dimensions)


def test_closed_it_loads_again(embedder: Embedder) -> None:
    before = embedder.encode(["one"])
    embedder.close()
    assert embedder.encode(["one"]).tolist() == before.tolist()


def test_words_are_forgotten_when_very_many_are_remembered(
    files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = Tokenizer(files[1])
    whole = tokenizer.encode("the number 49 of very many")
    monkeypatch.setattr("daypack.llm.embedding.model_files._MAX_CACHED_WORDS", 10)
    for number in range(50):
        tokenizer.encode(f"the number {number} of very many")
    assert tokenizer.cached_words > 10
    tokenizer.trim_cache()
    assert tokenizer.cached_words <= 10
    assert tokenizer.encode("the number 49 of very many") == whole


def test_files_of_something_else_are_refused(tmp_path: Path, embedder: Embedder) -> None:
    with pytest.raises(ModelFailed, match="no table of vectors"):
        StaticEmbedder(written(tmp_path / "x", {"another": ENTRY}), "tokenizer.json")
    weights = written(tmp_path / "x", {"embedding.weight": ENTRY})
    assert list(Tensors(weights).shapes) == ["embedding.weight"]
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelFailed, match="missing field"):
        StaticEmbedder(weights, str(tmp_path / "tokenizer.json")).encode(["a"])
    with pytest.raises(ModelFailed):
        Tokenizer(str(tmp_path / "none")).encode("a")
