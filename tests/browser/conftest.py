"""A real browser for the tests of the page: one per worker; a page of its own, and where it writes a home, per test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.driver.chromium import Chromium, start_chromium
from browser.driver.page import Page, open_page
from browser.driver.viewed import Viewed, start_view

from daypack.memory.tools import open_memory
from daypack.serve.sample import make_sample
from tools.browser import find, problem

FOLDER = Path(__file__).parents[2] / ".venv" / "browser"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser; the tests are skipped only if there is none to be had."""
    program = find(FOLDER)
    if program is None or problem(FOLDER):
        pytest.skip(problem(FOLDER))
    with start_chromium(program) as chromium:
        yield chromium


@pytest.fixture
def any_page(chromium: Chromium) -> Iterator[Page]:
    """An empty page."""
    with open_page(chromium) as page:
        yield page


@pytest.fixture
def page(any_page: Page) -> Iterator[Page]:
    """An empty page. Whatever is done with it: no error in the console, no dialog, no request to anywhere else."""
    yield any_page
    assert any_page.console == []
    assert any_page.dialogs == []
    assert {url for url in any_page.requests if not url.startswith(("http://127.0.0.1:", "file:", "data:"))} == set()


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the sample. Nothing writes to it."""
    home = tmp_path_factory.mktemp("sample") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAYPACK_EMBEDDING_MODEL", "none")
        with open_memory(home=home) as memories:
            make_sample(memories, home=str(home), uid=None, agent="default")
    return home


@pytest.fixture(scope="session")
def sample(sample_home: Path) -> Iterator[Viewed]:
    """A server that shows the sample, for tests that only look."""
    with start_view(str(sample_home)) as viewed:
        yield viewed


@pytest.fixture
def own_sample(sample_home: Path, tmp_path: Path) -> Iterator[Viewed]:
    """A server with a copy of the sample, for tests that change it."""
    home = tmp_path / "own"
    shutil.copytree(sample_home, home)
    with start_view(str(home)) as viewed:
        yield viewed
