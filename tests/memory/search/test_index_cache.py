"""Indexes are opened when they are used, closed when they are idle, and share one embedding model."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from daypack.errors import ModelMissing
from daypack.memory.search import index_cache as module
from daypack.memory.search.index import IndexParts
from daypack.memory.search.index_cache import IndexCache
from daypack.memory.store.port import StoreFeed
from daypack.memory.store.sqlite import SqliteStore


class Opened:
    """An index that knows whether it is open."""

    live: ClassVar[set[str]] = set()
    embedders: ClassVar[list[object]] = []

    def __init__(self, parts: IndexParts, _: object) -> None:
        self.name = Path(parts.words.path).parent.name
        self.live.add(self.name)
        self.embedders.append(parts.vectors and vars(parts.vectors)["_embedder"])

    def close(self) -> None:
        self.live.discard(self.name)


class Model:
    """An embedding model that counts how often it was opened and closed."""

    name = "model"
    opened: ClassVar[int] = 0
    closed: ClassVar[int] = 0

    def __init__(self) -> None:
        Model.opened += 1

    def close(self) -> None:
        Model.closed += 1


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexCache]:
    Opened.live.clear()
    Opened.embedders.clear()
    Model.opened = Model.closed = 0
    monkeypatch.setattr("daypack.memory.search.index.Index", Opened)
    monkeypatch.setattr(module, "MAX_OPEN", 3)
    indexes = IndexCache(str(tmp_path), Model)  # type: ignore[arg-type]
    yield indexes
    indexes.close()


def feed(name: str, user: str = "me") -> StoreFeed:
    return StoreFeed(SqliteStore("nowhere"), user, name)


def use(indexes: IndexCache, name: str) -> None:
    with indexes.use(feed(name)):
        pass


def test_the_most_recently_used_stay_open(indexes: IndexCache) -> None:
    for name in "abcad":
        use(indexes, name)
    assert Opened.live == {"c", "a", "d"}
    indexes.close()
    assert Opened.live == set()


def test_one_that_is_in_use_is_not_closed(indexes: IndexCache) -> None:
    with indexes.use(feed("a")):
        for name in "bcdef":
            use(indexes, name)
        indexes.close()
        assert Opened.live == {"a"}
    indexes.close()
    assert Opened.live == set()


def test_all_share_one_model_that_is_opened_once(indexes: IndexCache) -> None:
    threads = [threading.Thread(target=use, args=(indexes, name)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (Model.opened, Model.closed) == (1, 0)
    assert len(set(map(id, Opened.embedders))) == 1
    assert indexes.has_vectors
    indexes.close()
    assert Model.closed == 1


def test_a_model_that_cannot_be_opened_is_a_problem_and_no_error(tmp_path: Path, indexes: IndexCache) -> None:
    def missing() -> None:
        raise ModelMissing("its files are not here", hint="pull it")

    without = IndexCache(str(tmp_path), missing)
    use(without, "a")
    assert Opened.embedders[-1] is None
    assert not without.has_vectors
    assert without.problem == "without vectors: its files are not here (hint: pull it)"


def test_an_index_reads_for_the_user_it_was_opened_for(indexes: IndexCache) -> None:
    with indexes.use(feed("a")) as mine, indexes.use(feed("a", "zoe")) as theirs, indexes.use(feed("a")) as again:
        assert mine is again
        assert mine is not theirs


def test_erasing_removes_the_folder(indexes: IndexCache, tmp_path: Path) -> None:
    use(indexes, "a")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "words.sqlite").write_text("words")
    indexes.erase("a")
    assert Opened.live == set()
    assert not (tmp_path / "a").exists()
    indexes.erase("never")
