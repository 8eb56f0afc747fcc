"""Replies of the hybrid protocol for tests: blocks, the snapshot that holds them, and sessions that ask for one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turn.scenes import stage

from daypack.protocol import SEPARATOR
from daypack.session import Session
from daypack.turn.items import CHANGED, Item
from daypack.turn.turn import Turn
from daypack.types.history import Event, Message

Blocks = Sequence[dict[str, Any]]
ADA = "The user is Ada."
BOAT = "The boat is painted red."
SHIPPED = (Path(__file__).parents[2] / "src/daypack/prompts/blocks/protocol.md").read_text(encoding="utf-8")


def block(identity: str = "core-001", content: str = ADA, **fields: Any) -> dict[str, Any]:
    """A block as a model writes it: good enough for every tier."""
    given: dict[str, Any] = {"type": "note", "decay": 0.1, "confidence": 0.9, "round": 1, "tags": [], **fields}
    return {"id": identity, **given, "content": content}


def section(stamp: dict[str, Any] | None, **fields: Any) -> str:
    """The separator and a snapshot with the system's fields as they were sent; tiers and other keys as given."""
    sent: dict[str, Any] = stamp or {}
    value: dict[str, Any] = {"version": sent.get("version", 2.3), "runtime": sent.get("runtime", {})}
    value["memory"] = {tier: list(fields.pop(tier, ())) for tier in ("core", "working", "ephemeral")}
    return SEPARATOR + json.dumps({**value, "capabilities": [], "active_task": "", **fields}, ensure_ascii=False)


def reply_to(turn: Turn, text: str = "Yes.", **fields: Any) -> str:
    """A reply that keeps every rule."""
    assert turn.expected is not None
    return text + section(turn.expected, **fields)


def talking(home: str, name: str = "work", **settings: Any) -> Session:
    """A session with the protocol on."""
    session = stage(home, name, **settings)
    session.switch("protocol", on=True)
    return session


def ask(session: Session, text: str = "Go on.", **how: Any) -> Turn:
    session.append("user", text)
    return session.prepare(**how)


def exchange(session: Session, text: str = "Yes.", **fields: Any) -> Turn:
    """One round: a question, a turn, and a reply with these blocks."""
    turn = ask(session)
    session.accept(reply_to(turn, text, **fields))
    return turn


def taken_in(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == "context.snapshot"]


def kept_of(message: Message) -> dict[str, Any]:
    """What was cut from a message, as it stands beside its words; empty: nothing was."""
    own: dict[str, Any] = (message.meta or {}).get("daypack", {})
    return own.get("section", {})


def volatile(turn: Turn, item_id: str) -> Item | None:
    """What stands behind the tail under an id."""
    return next((item for item in turn.parts.volatile if item.id == item_id), None)


def noted(turn: Turn, item_id: str) -> Item | None:
    """What was added to the tail about a change of an item; the newest note counts."""
    added = (item for addition in reversed(turn.parts.additions) for item in addition.items)
    return next((item for item in added if item.id == item_id + CHANGED), None)


def frozen(turn: Turn, item_id: str) -> Item | None:
    """What stands in the prefix under an id."""
    return next((item for item in turn.parts.epoch.prefix if item.id == item_id), None)


def refs(turn: Turn) -> list[str]:
    return [item.item_ref or "" for item in turn.items]


def remembering(home: str, **settings: Any) -> Session:
    """A session whose model remembers something in every tier; the next turn begins an epoch."""
    session = talking(home, **settings)
    exchange(
        session,
        core=[block(tags=["user", "two words"])],
        working=[block("work-001", BOAT, type="task", decay=0.4, confidence=0.75)],
        ephemeral=[block("temp-001", "The tide turns at noon.", type="hint", decay=0.75, confidence=0.55)],
        active_task="Paint the hull.",
    )
    session.refresh()
    return session
