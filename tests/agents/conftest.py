"""Fixtures of the tests with real coding agents: one machine and one story of the model per module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from coding_agents import Machine, Story
from model_endpoint import ModelEndpoint

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run one agent at a time, with the tests of a module in one process: they look at one conversation."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("agents"))


@pytest.fixture(scope="module")
def story() -> Story:
    return Story()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, story: Story) -> Iterator[Machine]:
    with ModelEndpoint(answer=story.answer, strict=False) as endpoint:
        yield Machine(tmp_path_factory.mktemp("machine"), endpoint)
