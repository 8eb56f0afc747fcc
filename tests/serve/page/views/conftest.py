"""A page over the home of a test."""

from collections.abc import Iterator

import pytest
from turn.scenes import close_all

from daypack.memory.tools import open_memory
from daypack.serve.page.views.opened import OpenedHome


@pytest.fixture
def page(home: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenedHome]:
    """The sessions and memories of the local user; memories are searched by words alone."""
    monkeypatch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
    with open_memory(home=home) as memories:
        opened = OpenedHome(home, None, memories)
        yield opened
        opened.close()
    close_all()
