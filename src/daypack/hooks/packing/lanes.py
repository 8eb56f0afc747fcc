"""Lanes: the session of daypack that holds exactly the messages that opencode would send.

That is the session of opencode itself, as long as its window only grew. After the user took messages back, or opencode
compacted, history has messages that may not be sent again. From there on the window has a session of its own,
`<session>--window-<first message that differs>`, with the messages that are visible.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from daypack.errors import BadInput
from daypack.history.draft import drafts_from
from daypack.history.layout import Home, safe_name
from daypack.history.sessions import CHILD
from daypack.importers.import_file import Destination, take_in
from daypack.importers.opencode_store import Store, StoredSession, session_path
from daypack.importers.readers.opencode import OpenCode, message_id
from daypack.importers.transcript import Draft, object_of, parse_row
from daypack.session import Session, open_session
from daypack.turn.survey.message_cost import message_cost
from daypack.types.history import Message
from daypack.types.memory import Remembered

AGENT = "opencode"
_WINDOW = f"{CHILD}window-"
_MOST_LANES = 50  # of one session: as often the user may take messages back
_SHORT_ID = 12


class Lane(NamedTuple):
    """A session, the ids of opencode's messages that are visible, and those of them that it has.

    `overhead` are the tokens of the system prompt and the tools, as the first call of the session shows them; 0 if its
    provider reported none.
    """

    session: Session
    visible: list[str]
    stored: list[str]
    overhead: int = 0


class _NoMemory:
    """In place of the memory that a take-in binds the session to: what belongs to a prompt comes with the prompt."""

    def document(self) -> str | None:
        return None

    def search(self, query: str, limit: int) -> Sequence[Remembered]:  # noqa: ARG002 — required by MemoryPort
        return ()


class Lanes:
    """Finds the lane of each session of opencode and brings it up to date."""

    def __init__(self, home: Home, database: str) -> None:
        self._home = home
        self._store = Store(database)
        self._lanes: dict[str, Lane] = {}
        self._sessions: dict[str, StoredSession] = {}

    def find(self, session: str, visible: Sequence[str]) -> Lane:
        """Return the lane with the visible messages, in their order; those that say nothing are not stored."""
        lane = self._lanes.get(session)
        if lane is None or lane.visible != list(visible[: len(lane.visible)]):
            self.forget(session)
            lane = self._open(session, visible)
        new = visible[len(lane.visible) :]
        stored = lane.stored + self._append(lane.session, session, new)
        lane = lane._replace(visible=list(visible), stored=stored)
        self._lanes[session] = lane
        return lane

    def forget(self, session: str) -> None:
        """Close the lane of a session: it is opened anew when it is needed."""
        if lane := self._lanes.pop(session, None):
            lane.session.close()

    def close(self) -> None:
        """Close all of them."""
        for session in list(self._lanes):
            self.forget(session)

    def _open(self, session: str, visible: Sequence[str]) -> Lane:
        """Take in the session, and open it, or the lane that the visible messages continue."""
        stored = self._find_stored(session)
        take_in(session_path(self._store.path, session), Destination(self._home.root, AGENT, self._home.uid))
        lane = self._read(stored.name)
        overhead = _overhead(lane.session)
        for _ in range(_MOST_LANES):
            shown = (
                [each for each in visible if each in set(lane.stored)] if stored.name == lane.session.name else visible
            )
            common = _count_common(lane.stored, shown)
            if common == len(lane.stored):
                return lane._replace(visible=_covered(visible, lane.stored), overhead=overhead)
            lane.session.close()
            first = shown[min(common, len(shown) - 1)] if shown else visible[-1]
            lane = self._read(safe_name(f"{stored.name}{_WINDOW}{first[-_SHORT_ID:]}"))
        lane.session.close()
        raise BadInput(f"more than {_MOST_LANES} windows", operation="pack", place=session)

    def _read(self, name: str) -> Lane:
        session = open_session(name, agent=AGENT, home=self._home.root, uid=self._home.uid, workspace="")
        session.memory = _NoMemory()
        ids = (message_id(message.client_key) for message in session.messages())
        return Lane(session, [], list(dict.fromkeys(each for each in ids if each)))

    def _find_stored(self, session: str) -> StoredSession:
        if session not in self._sessions:
            named = Store(session_path(self._store.path, session))
            self._sessions |= {each.id: each for each in named.sessions()}
        return self._sessions[session]

    def _append(self, lane: Session, session: str, ids: Sequence[str]) -> list[str]:
        """Append messages that are new to a lane, and return the ids of those that say something."""
        if not ids:
            return []

        def store_blob(data: bytes) -> str:
            return lane.history.blobs.put(data)

        reader = OpenCode(store_blob, agent=session if self._sessions[session].above else "")
        rows = self._store.pick(session, ids)
        drafts = [draft.message for draft in _read_rows(reader, rows)]
        lane.history.append(drafts_from(drafts))
        return list(dict.fromkeys(message_id(draft["client_key"]) for draft in drafts))


def count_tokens(session: Session, messages: Iterable[Message], model: str | None = None) -> int:
    """Return the tokens of messages as packs count them."""
    meter = session.turns.inputs.meter(model or None)
    return sum(message_cost(message, meter.counter, model=meter.model).tokens for message in messages)


def _overhead(session: Session) -> int:
    """Return the input tokens of the first call without those of the messages before it."""
    before: list[Message] = []
    for message in session.messages():
        usage = object_of((message.meta or {}).get("usage"))
        cache = object_of(usage.get("cache"))
        counts = (usage.get("input"), cache.get("read"), cache.get("write"))
        if tokens := sum(count for count in counts if isinstance(count, int)):
            return max(0, tokens - count_tokens(session, before))
        before.append(message)
    return 0


def _read_rows(reader: OpenCode, rows: Sequence[bytes]) -> Iterator[Draft]:
    for number, raw in enumerate(rows, 1):
        yield from (step for step in reader.read(parse_row(number, raw)) if isinstance(step, Draft))


def _count_common(stored: Sequence[str], visible: Sequence[str]) -> int:
    pairs = zip(stored, visible, strict=False)
    return next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(stored), len(visible)))


def _covered(visible: Sequence[str], stored: Sequence[str]) -> list[str]:
    """Return the visible messages up to the last that is stored."""
    last = max((at for at, each in enumerate(visible) if each in set(stored)), default=-1)
    return list(visible[: last + 1])


def find_database() -> str:
    """Return the database of the opencode that started this process."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "opencode", os.environ.get("OPENCODE_DB") or "opencode.db")
