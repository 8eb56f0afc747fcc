"""Sessions, clocks and memories for the tests of a turn, and ways to look at everything a turn gives out."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import daypack
from daypack.history.draft import draft_from
from daypack.session import Session
from daypack.turn.dialects import NAMES
from daypack.turn.evidence.export import SCOPES, encode, export
from daypack.turn.items import Excerpt
from daypack.turn.turn import Turn
from daypack.types.history import Event, Message
from daypack.types.memory import Remembered

START = 1_800_000_000.0
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
MARKER = "[redacted:github-token]"
OPEN: list[Session] = []  # closed after each test
KIT: dict[str, Any] = {"durability": "os", "model": "gpt-4o", "workspace": ""}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def stage(home: str, name: str = "work", *, clock: Callable[[], float] | None = None, **settings: Any) -> Session:
    """Open a session without a workspace and with a clock of its own."""
    given: dict[str, Any] = {**KIT, **settings}
    session = daypack.open_session(name, home=home, **given)
    session.history.clock = clock or Clock()
    OPEN.append(session)
    return session


def close_all() -> None:
    while OPEN:
        OPEN.pop().close()


def release(session: Session) -> None:
    """Close a session's files, as closing it does; the session can still be used and opens them again."""
    session.turns.close()
    session.history.close()


def converse(session: Session, turns: int, *, words: int = 12) -> None:
    """Append questions and answers on a few topics."""
    for number in range(1, turns + 1):
        topic = ("harbour", "glacier", "orchard", "violin", "lantern")[number % 5]
        session.append("user", f"Question {number} about the {topic}: " + f"{topic} {number} " * words)
        session.append("assistant", f"Answer {number} on the {topic}: " + f"{topic} fact {number} " * words)


def append_raw(session: Session, *drafts: Mapping[str, Any]) -> tuple[Message, ...]:
    """Append messages as an import does: also results that answer no call."""
    return session.history.append([draft_from(draft) for draft in drafts])


def turn_events(session: Session) -> list[Event]:
    return [event for event in session.events() if event.type == "context.turn"]


def outputs(turn: Turn) -> tuple[bytes, str, bytes]:
    """The three documents of a turn."""
    return turn.pack_json, turn.pack_md, msgspec.json.encode(turn.envelope)


def logs(session: Session) -> tuple[bytes, bytes]:
    """The bytes of both logs."""
    return Path(session.layout.messages).read_bytes(), Path(session.layout.events).read_bytes()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sent(turn: Turn) -> str:
    """What is sent, in every dialect, one after the other."""
    return "\n".join(msgspec.json.encode(turn.request(name)).decode() for name in NAMES)


def given_out(turn: Turn) -> str:
    """Everything a turn says about itself, to anybody who asks it."""
    said = [sent(turn), turn.pack_json.decode(), turn.pack_md, msgspec.json.encode(turn.envelope).decode()]
    said += [turn.explain(), turn.system, turn.quoted, repr(turn), repr(turn.injections), repr(turn.assembly)]
    return "\n".join(said)


def exported(session: Session, call: str | None = None) -> str:
    """All exports of a session, one after the other."""
    scopes = [scope for scope in SCOPES if scope != "tool_invocation" or call]
    return "\n".join(encode(export(session.turns, scope, call=call)).decode() for scope in scopes)


def item(kind: str = "manual_note", content: Any = "a note", **fields: Any) -> dict[str, Any]:
    """An item as a caller hands it in."""
    return {"context_kind": kind, "content": content, **fields}


class FakeMemory:
    """A memory with a document and entries; or one that fails."""

    def __init__(
        self, document: str | None = None, entries: Sequence[Remembered] = (), error: Exception | None = None
    ) -> None:
        self.text = document
        self.entries = entries
        self.error = error
        self.queries: list[str] = []

    def document(self) -> str | None:
        if self.error:
            raise self.error
        return self.text

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        self.queries.append(query)
        if self.error:
            raise self.error
        return self.entries[:limit]


def reasons(turn: Turn) -> dict[str, str]:
    """Why things were left out: id -> reason."""
    return {left.item: left.reason for left in turn.omitted}


def excerpts_in(turn: Turn) -> list[Excerpt]:
    """The parts of earlier messages that a turn quotes, those of the turns before it in its epoch first."""
    return [found for found in turn.inserted if isinstance(found, Excerpt)]


def in_tail(turn: Turn) -> list[int]:
    return [message.seq for message in turn.parts.messages]


def lost(turn: Turn, missing_id: str) -> Any:
    """The one missing thing with this id."""
    [found] = [one for one in turn.missing if one.id == missing_id]
    return found
