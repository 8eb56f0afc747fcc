"""An index in memory answers as its file does, follows it as it grows, and makes way for another file."""

import random
from pathlib import Path
from typing import Any

import pytest

from daypack.search import resident
from daypack.search.indexing import Doc
from daypack.search.lexical import Lexical

WORDS = [f"{first}{second}" for first in ("lamp", "reef", "moss", "kite", "dune", "fern") for second in "aeiou"]
CASES = 40


def doc(number: int, rng: random.Random) -> Doc:
    size = rng.choice((1, 3, 8, 20, 400))
    return Doc(
        number,
        " ".join(rng.choices(WORDS, [1 / (at + 1) for at in range(len(WORDS))], k=size)),
        author=rng.choice(("", "ada", "bo")),
        role=rng.choice(("user", "assistant")),
        group=rng.choice(("", "a", "b")),
        summary=rng.choice(("", "", "dunea lampo")),
    )


def query(rng: random.Random) -> str:
    return " ".join([*rng.choices(WORDS, k=rng.choice((1, 2, 4, 9, 18))), *rng.choices(("unicorn", ""), k=1)])


def answers(path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, searches: int) -> list[Any]:
    """Grow an index and search it in between, in memory from the given search on."""
    monkeypatch.setattr(resident, "FROM_SEARCHES", searches)
    rng, found, newest = random.Random(seed), list[Any](), 0
    index = Lexical(str(path / f"{seed}-{searches}.db"), postings=10**9)
    for _ in range(5):
        grown = rng.randint(1, 60)
        index.add([doc(number, rng) for number in range(newest + 1, newest + grown + 1)])
        newest += grown
        for _ in range(4):
            allowed = frozenset(rng.sample(range(1, newest + 1), newest // 2)) if rng.random() < 0.4 else None
            also = rng.sample(range(1, newest + 1), min(3, newest))
            match = index.match(query(rng), also=also, allowed=allowed, seeds=rng.choice((2, 10, 80)))
            relevances = {entry: match.relevance(entry) for entry in match.places}
            masks = {entry: mask.bit_count() for entry, mask in match.masks.items()}  # equally rare terms in any order
            found.append((match.rated, match.places, match.chunks, masks, match.worth, relevances))
    index.close()
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_memory_and_file_give_the_same_matches(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(tmp_path, monkeypatch, seed, 1) == answers(tmp_path, monkeypatch, seed, 10**9)


def test_terms_beyond_the_limit_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "MAX_BYTES", 500)
    assert answers(tmp_path, monkeypatch, 99, 1) == answers(tmp_path, monkeypatch, 99, 10**9)


def test_a_large_index_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "MAX_CHUNKS", 10)
    assert answers(tmp_path, monkeypatch, 7, 1) == answers(tmp_path, monkeypatch, 7, 10**9)


def test_another_file_replaces_what_was_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "FROM_SEARCHES", 1)
    path = tmp_path / "index.db"
    index = Lexical(str(path))
    index.add([Doc(1, "a red kite"), Doc(2, "a green lamp")])
    assert index.match("kite").rated.keys() >= {1}
    for part in tmp_path.iterdir():
        part.unlink()
    assert index.newest == 0
    index.add([Doc(1, "a green lamp"), Doc(2, "a red kite")])
    assert index.match("kite").rated[2].own > index.match("kite").rated[1].own
    index.close()
