"""Fixtures for hooks."""

import pytest
from hooks.hook_process import HookProgram


@pytest.fixture
def hook(home: str) -> HookProgram:
    """The program, in a new home."""
    return HookProgram(home)
