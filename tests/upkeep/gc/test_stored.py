"""Collecting in the cache of a session in a database, while other workers change the session."""

import shutil
from pathlib import Path

import pytest
from postgres_server import needs_postgres
from upkeep.erase.secrets import SECRET, leaky

import daypack
from daypack.history.home import find_home
from daypack.upkeep import caches
from daypack.upkeep.caches import plan_caches, remove_caches
from daypack.upkeep.erase.apply import apply as erase
from daypack.upkeep.erase.plan import Request
from daypack.upkeep.gc.apply import apply
from daypack.upkeep.gc.plan import plan
from daypack.upkeep.gc.policy import read_policy
from daypack.upkeep.gc.session_files import size_of

pytestmark = needs_postgres


@pytest.fixture
def root(home: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DAYPACK_STORE_URL", database_url)
    leaky(home).close()
    return home


def test_blobs_that_another_worker_erases_meanwhile_are_not_missing(root: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    with daypack.open_session("work", home=root, create=False, workspace="") as session:
        history = session.history
        shutil.rmtree(session.layout.blob)  # nothing of it was fetched here
        erase(find_home(other), Request(literal=SECRET, session="work"))
        planned = plan(history, read_policy(history), 2e9)
        assert planned.missing == ()
        apply(history, planned)


def test_caches_that_vanish_while_they_are_listed_or_removed_are_no_errors(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = find_home(root)
    real = size_of

    def vanishing(path: str) -> int:
        size = real(path)
        shutil.rmtree(path)
        return size

    with monkeypatch.context() as patch:
        patch.setattr(caches, "size_of", vanishing)
        planned = plan_caches(home, 2e10)
    assert planned.removable
    assert remove_caches(home, planned) == ()
