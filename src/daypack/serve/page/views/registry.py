"""The views and actions of the page by name: a view reads, an action writes; each is imported when first asked for."""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from daypack.errors import NotFound
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome

View = Callable[[OpenedHome, Asked], object]


class _Place(NamedTuple):
    """The module and function of a view.

    `owner`: only the owner of the home may ask for it. `folders`: it reads those of many sessions.
    """

    module: str
    function: str
    owner: bool = True
    folders: bool = False


VIEWS: dict[str, _Place] = {
    "sessions": _Place("sessions", "list_sessions", folders=True),
    "session": _Place("strip", "show_strip"),
    "call": _Place("call", "show_call"),
    "item": _Place("call", "show_item"),
    "request": _Place("call", "show_request"),
    "diff": _Place("difference", "show_difference"),
    "fit": _Place("fit", "show_fit"),
    "messages": _Place("messages", "list_messages"),
    "message": _Place("messages", "show_message"),
    "recall": _Place("messages", "show_recalled"),
    "find": _Place("search", "find_messages", folders=True),
    "compactions": _Place("compactions", "list_compactions"),
    "compaction": _Place("compactions", "show_compaction"),
    "children": _Place("children", "list_children"),
    "tiers": _Place("tiers", "show_tiers"),
    "health": _Place("health", "show_health", folders=True),
    "doctor": _Place("health", "examine", folders=True),
    "memories": _Place("memories", "list_memories", owner=False),
    "memory": _Place("memories", "show_memory", owner=False),
    "entries": _Place("memories", "list_entries", owner=False),
    "document": _Place("memories", "show_document", owner=False),
    "memory-search": _Place("memories", "search_memory", owner=False),
}
ACTIONS: dict[str, _Place] = {
    "undo": _Place("compactions", "undo"),
    "hide-memory": _Place("memories", "hide_memory", owner=False),
    "restore-memory": _Place("memories", "restore_memory", owner=False),
    "erase-memory": _Place("memories", "erase_memory", owner=False),
    "erase-entry": _Place("memories", "erase_entry", owner=False),
}


def show(home: OpenedHome, asked: Asked) -> object:
    """Return what a view shows."""
    return _run(VIEWS, home, asked)


def act(home: OpenedHome, asked: Asked) -> object:
    """Carry out an action and return its result."""
    if asked.view in ACTIONS:
        asked.require_write()
    return _run(ACTIONS, home, asked)


def _run(places: dict[str, _Place], home: OpenedHome, asked: Asked) -> object:
    place = places.get(asked.view)
    if place is None:
        raise NotFound(f"no view {asked.view[:40]!r}", operation="page", hint=f"there are {', '.join(places)}")
    if place.owner:
        asked.require_owner()
    if place.folders:
        home.refresh()
    view: View = getattr(import_module(f"daypack.serve.page.views.{place.module}"), place.function)
    return view(home, asked)
