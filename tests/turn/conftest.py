"""Closes the sessions that tests of a turn open."""

from collections.abc import Iterator

import pytest
from turn.scenes import close_all


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()
