"""Rebuild: compute everything under `context/` again from the logs, without a model and without adding to them."""

import os

from msgspec import Struct

from daypack.derived.children import read_children
from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.flow.turns import Turns
from daypack.history.session import History


class Rebuilt(Struct, frozen=True):
    """What there is again."""

    messages: int
    events: int
    pins: int
    children: int
    budget: bool
    pack: str | None  # the event whose pack was written
    problem: str | None = None  # why there is no pack


def rebuild(history: History, turns: Turns) -> Rebuilt:
    """Bring back indexes, pins, children, the budget and the newest pack; nothing is appended."""
    layout = history.layout
    messages, events = history.messages.rebuild(), history.events.rebuild()
    pins = len(history.pins())
    folded = turns.desk.ledger.read()
    children = len(read_children(history, recorded=folded.children))
    path = layout.derived("budget")
    if folded.budget is not None and not os.path.lexists(path):
        atomic.make_folders(layout.context)
        atomic.replace(path, folded.budget.encode())
    event = problem = None
    if newest := folded.turns.get("model"):
        try:
            turns.write_pack(turns.replay(newest.event))
            event = newest.event
        except DaypackError as error:
            problem = str(error)
    turns.desk.ledger.save(always=True)
    return Rebuilt(messages, events, pins, children, folded.budget is not None, event, problem)
