"""Where a call is in its session: its neighbours of the same kind, its reply, and what the provider reported."""

from typing import NamedTuple

from daypack.history.session import History
from daypack.serve.page.calls.shapes import Cache
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.turn.evidence.observed.calls import Compacted as ObservedCompaction
from daypack.turn.evidence.turn_list import ListedTurn, newest_turns
from daypack.turn.evidence.words import EPOCHS, break_words
from daypack.turn.turn import Turn


class Place(NamedTuple):
    """The surroundings of one call; None where there is nothing, or it is not known."""

    cache: Cache
    reply: int | None = None
    previous: str | None = None
    next: str | None = None


def place_of_turn(history: History, turn: Turn) -> Place:
    """Return the surroundings of a turn that daypack prepared, among those for the same target."""
    event, target = turn.event_id or "", turn.target
    later: ListedTurn | None = None
    found: ListedTurn | None = None
    before: ListedTurn | None = None
    for listed in newest_turns(history, target):
        if found:
            before = listed
            break
        if listed.event == event:
            found = listed
        else:
            later = listed
    if found is None:
        return Place(Cache(expected=turn.expected_cached_tokens))
    cache = Cache(
        expected=turn.expected_cached_tokens,
        input=found.input_tokens,
        cached=found.cached_tokens,
        output=found.output_tokens,
        broken=_break(turn),
    )
    return Place(cache, number_of(found.reply), before.event if before else None, later.event if later else None)


def _break(turn: Turn) -> str | None:
    if turn.cache_lost:
        return "tools changed" if turn.cache_lost == "tools_changed" else turn.cache_lost
    if turn.new_epoch and turn.new_epoch != "first":
        return EPOCHS.get(turn.new_epoch, turn.new_epoch)
    return None


class ObservedPlace(NamedTuple):
    """The surroundings of a call of another program, and the compactions before it, oldest first."""

    place: Place
    compactions: list[ObservedCompaction]


def place_of_call(history: History, call: Call) -> ObservedPlace:
    """Return the surroundings of a call that another program made."""
    later: str | None = None
    compactions: list[ObservedCompaction] = []
    passed = False
    for entry in newest_calls(history):
        if isinstance(entry, Call):
            passed = passed or entry.event == call.event
            later = later if passed else entry.event
        elif passed:
            compactions.append(entry)
    broken = call.cache_break
    cache = Cache(
        input=call.input_tokens,
        cached=call.cached_tokens,
        written=call.cache_written_tokens,
        output=call.output_tokens,
        broken=break_words(broken) if broken else None,
        lost=broken.lost_tokens if broken else None,
    )
    return ObservedPlace(Place(cache, number_of(call.reply), call.previous, later), compactions[::-1])


def number_of(message: str | None) -> int | None:
    """Return the number of a message by its id."""
    number = (message or "").removeprefix("msg-")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 18 else None
