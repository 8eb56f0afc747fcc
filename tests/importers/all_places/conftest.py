"""Fixtures: a home folder with agents, and the home of daypack."""

from pathlib import Path

import pytest
from agents_home import AgentsHome

from daypack.history.home import find_home
from daypack.history.layout import Home


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentsHome:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")
    return AgentsHome(tmp_path / "user", monkeypatch)


@pytest.fixture
def place(home: str) -> Home:
    return find_home(home)
