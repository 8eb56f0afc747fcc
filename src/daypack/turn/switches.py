"""Switches: instruction blocks that are on or off, recorded as events."""

import os
from contextlib import suppress

from daypack.errors import BadInput
from daypack.history.draft import draft_event
from daypack.history.layout import Layout, check_name
from daypack.history.session import History
from daypack.prompts import SHIPPED_PROMPTS
from daypack.turn.ledger import SWITCH, Ledger
from daypack.turn.survey.survey import IDENTITY
from daypack.types.names import did_you_mean


def switch(history: History, ledger: Ledger, name: str, *, on: bool) -> None:
    """Switch a block on or off; refuse a name that has no text and was never switched."""
    if on not in (True, False):
        hint = f"session.switch({name!r}, on=True), or on=False"
        raise BadInput(f"must be True or False, got {on!r}", operation="switch", place="on", hint=hint)
    known = block_names(history.layout)
    if check_name(name, "switch") not in known and name not in ledger.read().switches:
        suggestion = did_you_mean(name, known)
        own = f"for a block of your own, write {os.path.join(history.layout.prompts, f'{name}.md')} first"
        raise BadInput(
            f"no block {name!r}; there are {', '.join(known)}",
            operation="switch",
            place="name",
            hint=f"{suggestion} {own[0].upper()}{own[1:]}" if suggestion else own,
        )
    history.append_event(draft_event(SWITCH, {"name": name, "on": bool(on)}))


def block_names(layout: Layout) -> list[str]:
    """Return the names that can be switched: identity, the blocks of daypack, and the user's own in prompts/."""
    others = _texts(SHIPPED_PROMPTS)  # prompts for compactions and memories, which a user may replace
    return sorted({IDENTITY, *_texts(os.path.join(SHIPPED_PROMPTS, "blocks")), *(_texts(layout.prompts) - others)})


def _texts(folder: str) -> set[str]:
    with suppress(OSError):
        return {name.removesuffix(".md") for name in os.listdir(folder) if name.endswith(".md")}
    return set()
