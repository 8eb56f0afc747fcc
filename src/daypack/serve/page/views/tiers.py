"""The model's own memory in its three tiers, as it was after each round."""

import threading
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.derived.tiers import SNAPSHOT, Accepted, Policies, Projection, Store, merge, project, read_accepted
from daypack.errors import NotFound
from daypack.history.logs.reader import Reader
from daypack.protocol.rule_texts import RULES
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.turn.evidence.words import DROPPED_BLOCKS
from daypack.turn.ledger import TURN
from daypack.types.history import Event
from daypack.types.kinds import TIERS
from daypack.types.snapshot import Block

_TYPES = f'"{TURN}"'.encode(), f'"{SNAPSHOT}"'.encode()


class _Round(Struct):
    """A round: the snapshots of its replies, and how many blocks each tier shows after it."""

    round: int
    at: str | None = None
    message: int | None = None
    snapshots: list[Accepted] = []
    shown: dict[str, int] = {}


class _Rounds:
    """The rounds of one log, continued when it has grown."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.rounds: list[_Round] = []
        self._store = Store()
        self._turns = _Turns()
        self._seq = 0  # of the newest event that was searched

    def extend(self, session: Session) -> None:
        """Add the events since the last call."""
        history, policies = session.history, session.turns.inputs.policies
        last, newest = history.events.reader.newest().seq, history.messages.reader.newest().seq
        for event in history.events.holding(_TYPES, self._seq + 1, last):
            if event.type == TURN:
                self._turns.count(event)
            elif event.type == SNAPSHOT:
                with suppress(msgspec.ValidationError):  # of another program that only shares the type
                    self._add(event, read_accepted(event.data), newest, policies)
        self._seq = last

    def _add(self, event: Event, accepted: Accepted, newest: int, policies: Policies) -> None:
        message = int(accepted.message.removeprefix("msg-"))
        if message > newest:
            return  # the ledger ignores it too
        accepted = replace(accepted, round=min(accepted.round, self._turns.rounds))
        merge(self._store, accepted)
        number = self._store.round
        if not self.rounds or self.rounds[-1].round != number:
            self.rounds.append(_Round(number))
        found = self.rounds[-1]
        found.at, found.message, found.snapshots = event.ts, message, [*found.snapshots, accepted]
        found.shown = _counts(project(self._store, number, policies))


class _Turn(Struct):
    """The fields of a turn by which rounds are counted; the others must be there, or the ledger ignores it."""

    target: str
    renderer: str
    stable: dict[str, Any]
    user: int | None = None


class _Turns:
    """Counts the user messages that were packed for a model, as the ledger does."""

    def __init__(self) -> None:
        self.rounds = 0
        self._last_user = 0

    def count(self, event: Event) -> None:
        with suppress(msgspec.ValidationError):
            turn = msgspec.convert(event.data, _Turn)
            if turn.target == "model" and (turn.user or 0) > self._last_user:
                self._last_user, self.rounds = turn.user or 0, self.rounds + 1


_known: "WeakKeyDictionary[Reader[Event], _Rounds]" = WeakKeyDictionary()
_lock = threading.Lock()  # two requests must not extend the same rounds


def show_tiers(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return what the tiers showed after a round, by default after the newest."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        ledger = session.turns.inputs.ledger.read()
        rounds = _read_rounds(session) if ledger.tiers.message else []
        if rounds and ledger.rounds > rounds[-1].round:
            # A turn was packed since, which shows the blocks as they are now: one round older.
            rounds = [*rounds, _Round(ledger.rounds, shown=_counts(session.tiers))]
        numbers = [known.round for known in rounds]
        wanted = asked.number("round", numbers[-1] if numbers else ledger.rounds)
        if rounds and wanted not in numbers:
            hint = f"there are {numbers[0]} to {numbers[-1]}"
            raise NotFound(f"no snapshot is of round {wanted}", operation="tiers", place=session.name, hint=hint)
        at = numbers.index(wanted) if rounds else -1
        before, now = _states(session, rounds[: at + 1])
        return {
            "protocol": ledger.switches.get("protocol", False),
            "round": wanted,
            "rounds": [_row(known) for known in rounds],
            "active_task": now.active_task,
            **{
                tier: [_block(block, now.round, _state(block, before.of(tier))) for block in now.of(tier)]
                for tier in TIERS
            },
            "omitted": [
                {
                    "tier": dropped.tier,
                    "id": dropped.block.id,
                    "content": dropped.block.content,
                    "reason": dropped.reason,
                    "words": DROPPED_BLOCKS.get(dropped.reason, dropped.reason),
                    "note": dropped.note,
                }
                for dropped in now.omitted
            ],
            "violations": [
                {"rule": rule, "words": RULES.get(rule, ""), "count": count}
                for rule, count in sorted(now.violation_counts.items(), key=lambda pair: (-pair[1], pair[0]))
            ],
        }


def _read_rounds(session: Session) -> list[_Round]:
    reader = session.history.events.reader
    reader.count()  # notices that the log was replaced
    with _lock:
        found = _known.get(reader)
        if found is None or found.generation != reader.generation:
            found = _known[reader] = _Rounds(reader.generation)
        found.extend(session)
        return [*found.rounds]


def _states(session: Session, rounds: list[_Round]) -> tuple[Projection, Projection]:
    """Return what was shown after the last of these rounds, and after the one before it."""
    inputs, store = session.turns.inputs, Store()
    shown = [Projection(round=0)]
    for place, known in enumerate(rounds, 1):
        for accepted in known.snapshots:
            merge(store, accepted)
        if place > len(rounds) - 2:
            shown.append(project(store, known.round, inputs.policies, redacting=inputs.redacting))
    return shown[-2] if len(shown) > 1 else shown[0], shown[-1]


def _row(known: _Round) -> dict[str, Any]:
    return {"round": known.round, "at": known.at, "message": known.message, **known.shown}


def _counts(shown: Projection) -> dict[str, int]:
    return {tier: len(shown.of(tier)) for tier in TIERS}


def _block(block: Block, current: int, state: str) -> dict[str, Any]:
    return {
        "id": block.id,
        "type": block.type,
        "content": block.content,
        "importance": round(block.importance, 6),
        "confidence": block.confidence,
        "round": block.round,
        "age": max(0, current - block.round),
        "tags": block.tags,
        "state": state,
    }


def _state(block: Block, before: tuple[Block, ...]) -> str:
    former = next((known for known in before if known.id == block.id), None)
    if former is None:
        return "new"
    return "kept" if replace(former, round=block.round) == block else "changed"
