"""A real browser for the tests of the page: one per worker, and a page of its own per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser.driver.chromium import Chromium, start_chromium
from browser.driver.page import Page, open_page

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
def page(chromium: Chromium) -> Iterator[Page]:
    """An empty page."""
    with open_page(chromium) as page:
        yield page
