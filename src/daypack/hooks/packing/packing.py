"""Pack one call of opencode: which of its messages are sent, and which texts stand for the others.

The answer names opencode's own messages; the plug-in sends them as they are. Nothing is packed while all of them fit.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import BadInput
from daypack.history.layout import Home
from daypack.hooks.composition import Fenced
from daypack.hooks.packing.lanes import AGENT, Lane, Lanes, count_tokens
from daypack.importers.readers.opencode import call_id, message_id
from daypack.turn.budget import budget_for
from daypack.turn.turn import Turn

# opencode compacts itself when a request and its reply reach the limit: the rest is for the reply.
LIMIT_SHARE = 0.9
_LEAST_ROOM_TOKENS = 1_000
_MOST_DENSITY = 3.0  # tokens that the provider counts for each that we count


class Used(Struct, frozen=True):
    """What the provider counted in a call: its input tokens, and the last message that was sent."""

    tokens: int
    last: str


class PackRequest(Struct, frozen=True):
    """The messages that opencode would send, and the space for them.

    `limit` are the tokens that a request may have, `overhead` those of the system prompt and the tools, as the plug-in
    estimates them, `user` is the newest message of the user.
    """

    session: str
    visible: tuple[str, ...]
    user: str
    model: str
    limit: int
    overhead: int = 0
    used: Used | None = None


class Kept(Struct, frozen=True, omit_defaults=True):
    """A message that is sent: outputs that are replaced, by the id of their call, and texts that follow it."""

    id: str
    outputs: dict[str, str] = {}
    after: tuple[str, ...] = ()


class Packed(Struct, frozen=True):
    """What is sent instead of all messages: texts before the first message, then the messages."""

    head: tuple[str, ...]
    messages: tuple[Kept, ...]
    turn: str  # the event that recorded it


class Packer:
    """Packs the calls of one process of opencode."""

    def __init__(self, home: Home, database: str) -> None:
        self._lanes = Lanes(home, database)
        self._density: dict[str, float] = {}  # model -> the provider's tokens for each of ours, at most

    def close(self) -> None:
        """Close the sessions."""
        self._lanes.close()

    def pack(self, request: PackRequest) -> Packed | None:
        """Return what is sent; None if all messages fit."""
        try:
            lane = self._lanes.find(request.session, request.visible)
            overhead = lane.overhead or request.overhead
            density = self._measure(request, lane, overhead)
            room = int((LIMIT_SHARE * request.limit - overhead) / density)
            if room < _LEAST_ROOM_TOKENS:
                problem = f"the limit of {request.limit:,} tokens leaves {max(0, room):,} for messages"
                raise BadInput(problem, operation="pack", place=request.session)
            turn = lane.session.prepare(budget=budget_for(room), model=request.model or None)
        except BaseException:
            self._lanes.forget(request.session)
            raise
        packed = _plan(request, lane, turn)
        _check(request, lane, packed)
        if not _leaves_out(packed, lane.stored):
            return None  # also if something could be added: results of sub-agents, which their calls returned
        return replace(packed, head=(*packed.head, _where(lane.session.name)))

    def _measure(self, request: PackRequest, lane: Lane, overhead: int) -> float:
        """Return how many tokens the provider counts for each of ours; never less than before, so that packs stay."""
        known = self._density.get(request.model, 1.0)
        if request.used is None or request.used.last not in request.visible:
            return known
        inputs = lane.session.turns.inputs
        recorded = inputs.ledger.read().turns.get("model")
        last = lane.session.messages(recorded.last, recorded.last) if recorded else ()
        if recorded and any(message_id(message.client_key) == request.used.last for message in last):
            tokens = recorded.stable_tokens  # that call was packed
        else:
            before = set(request.visible[: request.visible.index(request.used.last) + 1])
            messages = [each for each in lane.session.messages() if message_id(each.client_key) in before]
            tokens = count_tokens(lane.session, messages, request.model)
        density = (request.used.tokens - overhead) / max(1, tokens)
        self._density[request.model] = known = min(_MOST_DENSITY, max(known, density))
        return known


def _plan(request: PackRequest, lane: Lane, turn: Turn) -> Packed:
    """Return a turn in terms of opencode's messages; those that say nothing stay between the others."""
    given = turn.assembly.given
    replaced = turn.parts.epoch.stubbed | turn.parts.repeats.keys()
    head: list[str] = list(filter(None, (turn.system, turn.quoted)))
    kept: dict[str, dict[str, Any]] = {}
    for message in given.messages:
        if message.role == "tool" and not message.client_key:
            continue  # for a call without a result: opencode says so itself
        name = message_id(message.client_key)
        if not name:
            (next(reversed(kept.values()))["after"] if kept else head).append(message.text)
            continue
        entry = kept.setdefault(name, {"outputs": {}, "after": []})
        if message.role == "tool" and message.seq in replaced:
            entry["outputs"][call_id(message.client_key)] = message.text
    if given.volatile and kept:
        next(reversed(kept.values()))["after"] += given.volatile
    return Packed(tuple(head), tuple(_in_order(request.visible, lane.stored, kept)), turn.event_id or "")


def _where(session: str) -> str:
    """Return where the model finds what is not shown: the same text in every call."""
    text = (
        "daypack keeps every message of this session; those not shown here are left out of the window, not lost. "
        f"`daypack search {session} WORDS --agent {AGENT}` finds them, "
        f"`daypack recall {session} ID --agent {AGENT}` prints one; ID is sha256-…, messages:12-14 or child:NAME. "
        'Where a text says "recall returns it", it means this command.'
    )
    return Fenced("note", "daypack: what is not shown").show([text])


def _in_order(visible: Sequence[str], stored: Sequence[str], kept: dict[str, dict[str, Any]]) -> list[Kept]:
    silent = set(visible) - set(stored)
    first = next((at for at, name in enumerate(visible) if name in kept), len(visible))
    names = [name for name in visible[first:] if name in kept or name in silent]
    return [
        Kept(name, kept[name]["outputs"], tuple(kept[name]["after"])) if name in kept else Kept(name) for name in names
    ]


def _check(request: PackRequest, lane: Lane, packed: Packed) -> None:
    """Refuse a pack that lacks what every call must have."""
    kept = {message.id for message in packed.messages}
    needed = {request.user, *lane.stored[-1:]}
    if missing := sorted(needed - kept):
        raise BadInput(f"the pack lacks {', '.join(missing)}", operation="pack", place=request.session)


def _leaves_out(packed: Packed, stored: Sequence[str]) -> bool:
    shown = {message.id for message in packed.messages}
    return any(message.outputs for message in packed.messages) or not shown.issuperset(stored)
