"""Asking the views of a page as its server does."""

from typing import Any

import msgspec

from daypack.serve.page.views import registry
from daypack.serve.page.views.asked import Asked, Viewer
from daypack.serve.page.views.opened import OpenedHome

OWNER = Viewer(user="local", owner=True, writes=True)
READER = Viewer(user="local", owner=True, writes=False)
OTHER = Viewer(user="eve", owner=False, writes=True)


def look(home: OpenedHome, view: str, viewer: Viewer = OWNER, /, **arguments: object) -> Any:
    """Return what a view answers, as JSON would have it."""
    texts = {name: str(value) for name, value in arguments.items()}
    return _as_json(registry.show(home, Asked(view, texts, viewer)))


def do(home: OpenedHome, action: str, viewer: Viewer = OWNER, /, **arguments: object) -> Any:
    """Carry out an action and return its answer."""
    texts = {name: str(value) for name, value in arguments.items()}
    return _as_json(registry.act(home, Asked(action, texts, viewer)))


def _as_json(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
