"""Workers on a new database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from history.postgres.workers import Workers


@pytest.fixture
def workers(database_url: str, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(database_url, tmp_path)
    yield workers
    workers.close()
