"""Sessions that were imported with recorded requests, and without."""

from collections.abc import Iterator

import pytest
from recorded_requests import ROW_TYPES, import_recording

import daypack
from daypack.session import Session


@pytest.fixture
def notes(home: str) -> Iterator[Session]:
    """The recorded session."""
    with daypack.open_session(import_recording(home), home=home, create=False) as session:
        yield session


@pytest.fixture
def older(home: str) -> Iterator[Session]:
    """The recorded session as an older program would have left it: without the rows about requests."""
    name = import_recording(home, "older", leave_out=ROW_TYPES)
    with daypack.open_session(name, home=home, create=False) as session:
        yield session
