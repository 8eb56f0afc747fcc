"""Fixtures for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import daypack
from daypack.session import Session


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HOME",
        "UID",
        "AGENT",
        "SESSION",
        "DURABILITY",
        "LOCKING",
        "MODEL",
        "COMPACTION_MODEL",
        "EMBEDDING_MODEL",
        "TOKEN",
        "API_KEY",
        "WORKSPACE",
        "REDACTION",
    ):
        monkeypatch.delenv(f"DAYPACK_{name}", raising=False)


@pytest.fixture
def home(tmp_path: Path) -> str:
    """A root folder for sessions."""
    return str(tmp_path / "home")


@pytest.fixture
def session(home: str) -> Iterator[Session]:
    """An empty session that does not wait for the disk."""
    with daypack.open_session("work", home=home, durability="os") as session:
        yield session
