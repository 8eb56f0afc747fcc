"""Names of what left the window: paths, identifiers and addresses, the more recent and the more often used first.

A model that has lost the messages still spells these right, and finds the messages by them.
"""

from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import cast

import msgspec

from daypack.derived.raw_history import repeats_history
from daypack.text.outline import names_in
from daypack.types.history import Message

MAX_NAMES = 160  # of one session; each is part of the compaction's event
_HALF_LIFE = 40  # messages after which a name counts half
_LEAST = 0.005
_SAID = 2.0  # weight of a name that the user or the agent wrote, against 1 in an output


def rank_names(messages: Iterable[Message], through: int, former: Mapping[str, float], since: int) -> dict[str, float]:
    """Return the names of messages up to `through`, with those that had left the window by `since`; name -> weight."""
    faded = _weight_at(since, through)
    weights = {name: weight * faded for name, weight in former.items()}
    for message in messages:
        if not repeats_history(message):
            worth = _weight_at(message.seq, through) * (1.0 if message.role == "tool" else _SAID)
            for name in set(names_in(everything_in(message))):
                weights[name] = weights.get(name, 0.0) + worth
    return weights


def _weight_at(seq: int, through: int) -> float:
    return 0.5 ** ((through - seq) / _HALF_LIFE)


def choose_names(weights: Mapping[str, float], kept: str) -> dict[str, float]:
    """Return the heaviest names that the messages in the window do not contain; those count when they leave it."""
    unsaid = ((name, weight) for name, weight in weights.items() if weight >= _LEAST and name not in kept)
    best = nlargest(MAX_NAMES, unsaid, key=lambda pair: (pair[1], pair[0]))
    return {name: round(weight, 2) for name, weight in best}


def list_names(weights: Mapping[str, float], known: str, max_chars: int) -> str:
    """Return the heaviest names that a text does not contain, in at most so many characters."""
    listed: list[str] = []
    for name in sorted(weights, key=lambda name: (-weights[name], name)):
        if name not in known:
            max_chars -= len(name) + 1
            if max_chars < 0:
                break
            listed.append(name)
    return " ".join(listed)


def everything_in(message: Message) -> str:
    """Return the text of a message and the values in the arguments of its calls; their keys are the tool's words."""
    return "\n".join([message.text, *(_values(call.arguments) for call in message.tool_calls)])


def _values(arguments: str) -> str:
    try:
        found: list[str] = []
        _collect(msgspec.json.decode(arguments), found)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    return "\n".join(found)


def _collect(value: object, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, dict):
        for part in cast(dict[str, object], value).values():
            _collect(part, found)
    elif isinstance(value, list):
        for part in cast(list[object], value):
            _collect(part, found)
