"""Fixtures: a user's home, with agents and without."""

from pathlib import Path

import pytest
from user_home import PROGRAMS, UserHome


@pytest.fixture
def user(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> UserHome:
    """A home without any agent."""
    return UserHome(tmp_path / "user", capsys, monkeypatch)


@pytest.fixture
def all_agents(user: UserHome) -> UserHome:
    """A home with all agents, none of which has been started."""
    user.install(*PROGRAMS)
    return user
