"""Where OpenHands keeps a conversation, and what its files say about it.

<conversation>/base_state.json                 {"id":"…","agent":{"llm":{"model":"…"}},"workspace":{"working_dir":"…"}}
<conversation>/events/event-00003-<id>.json    one event, see `reader.py`
<conversation>/subagents/<id>/base_state.json  the conversation of a sub-agent
<session>/events/3.json                        before version 1, see `version0.py`; copies of events in event_cache/

A conversation is named by its state, or, before version 1, by its first event.
"""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from daypack.importers.readers.openhands import version0
from daypack.importers.transcript import Row, list_of, object_of, text_of
from daypack.plain_files import open_plain

FORMAT = "openhands"
_STATE, _FIRST = "base_state.json", "0.json"
_EVENTS, _CACHE, _SUB_AGENTS = "events", "event_cache", "subagents"
_KINDS = (
    "SystemPromptEvent",
    "MessageEvent",
    "ActionEvent",
    "ObservationEvent",
    "AgentErrorEvent",
    "UserRejectObservation",
)
_EARLY_EVENT = re.compile(r"\d+\.json")
_MOST_LEVELS = 20  # of sub-agents of sub-agents


def is_conversation(path: str, value: object) -> bool:
    """Return True if a document is the state of a conversation, with its events beside it, or its first event."""
    name = os.path.basename(path)
    if name == _FIRST:
        return os.path.basename(os.path.dirname(os.path.abspath(path))) == _EVENTS and version0.is_event(value)
    return name == _STATE and "agent" in object_of(value) and os.path.isdir(events_folder(path))


def is_trajectory(value: object) -> bool:
    """Return True if a document is a list of events."""
    return any(_is_event(event) or version0.is_event(event) for event in list_of(value))


def _is_event(value: object) -> bool:
    fields = object_of(value)
    return text_of(fields.get("kind")) in _KINDS and bool(text_of(fields.get("id"))) and "source" in fields


def rows_of(value: object) -> list[bytes]:
    """Return the events of a list as rows."""
    return [msgspec.json.encode(event) for event in list_of(value)]


def events_folder(path: str) -> str:
    """Return the folder with the events, given the file that names a conversation."""
    folder = os.path.dirname(os.path.abspath(path))
    return folder if os.path.basename(path) == _FIRST else os.path.join(folder, _EVENTS)


def session_id(path: str, state: object) -> str:
    """Return the id of a conversation: that of its state, else the name of its folder."""
    if os.path.basename(path) == _STATE and (name := text_of(object_of(state).get("id"))):
        return name
    return os.path.basename(os.path.dirname(events_folder(path)))


def session_ids(path: str, _: Sequence[Row]) -> tuple[str, str]:
    """Return the id of the session, and the name of the sub-agent's folder if the file is the state of a sub-agent."""
    main = main_file(path)
    if main is None:
        return session_id(path, _load(path)), ""
    return session_id(main, _load(main)), os.path.basename(os.path.dirname(os.path.abspath(path)))


def _load(path: str) -> object:
    try:
        with open_plain(path) as file:
            return msgspec.json.decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def model_of(state: object) -> str | None:
    """Return the model of a conversation."""
    return text_of(object_of(object_of(object_of(state).get("agent")).get("llm")).get("model"))


def cwd_of(state: object) -> str | None:
    """Return the folder that a conversation works in."""
    return text_of(object_of(object_of(state).get("workspace")).get("working_dir"))


def find_sub_agents(path: str) -> Iterator[str]:
    """Yield the states of the sub-agents of a conversation, and of theirs, in order of their paths."""
    if os.path.basename(path) == _STATE:
        yield from _below(os.path.dirname(os.path.abspath(path)), _MOST_LEVELS)


def _below(folder: str, levels: int) -> Iterator[str]:
    try:
        names = sorted(os.listdir(os.path.join(folder, _SUB_AGENTS))) if levels else []
    except OSError:
        return
    for name in names:
        child = os.path.join(folder, _SUB_AGENTS, name)
        state = os.path.join(child, _STATE)
        if os.path.isfile(state) and os.path.isdir(events_folder(state)):
            yield state
            yield from _below(child, levels - 1)


def main_file(path: str) -> str | None:
    """Return the file that names a conversation, given that of an event, a copy or a sub-agent; else None."""
    folder, name = os.path.split(os.path.abspath(path))
    beside = os.path.dirname(folder)
    kind = os.path.basename(folder)
    if kind == _EVENTS and name.startswith("event-"):
        state: str | None = os.path.join(beside, _STATE)
    elif kind == _CACHE or (kind == _EVENTS and name != _FIRST and _EARLY_EVENT.fullmatch(name)):
        state = os.path.join(beside, _EVENTS, _FIRST)
    else:
        state = os.path.join(folder, name) if name == _STATE else None
    if state is None or not os.path.isfile(state):
        return None
    for _ in range(_MOST_LEVELS):
        above = _parent_folder(state)
        if not above:
            break
        state = os.path.join(above, _STATE)
    return None if state == os.path.abspath(path) else state


def _parent_folder(path: str) -> str:
    """Return the folder of the conversation that started this one; "" if there is none."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    above = os.path.dirname(beside)
    is_below = os.path.basename(beside) == _SUB_AGENTS and os.path.isfile(os.path.join(above, _STATE))
    return above if is_below and os.path.basename(path) == _STATE else ""
