"""Odd rows, events and blobs of requests are imported, listed, explained and compared, or refused."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
from campaigns import Campaign
from recorded_requests import import_recording, load_recording

import daypack
from daypack.cli.event_words import describe_event
from daypack.errors import DaypackError
from daypack.files import blobs
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.turn.evidence.observed.calls import Call, newest_calls
from daypack.turn.evidence.observed.diff import compare_observed
from daypack.turn.evidence.observed.explain import why_missing
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.request import ObservedTurn, RequestReader
from daypack.turn.evidence.observed.sources import parts_of, total_by_source
from daypack.turn.ledger import OBSERVED, USAGE
from daypack.types.history import Event
from daypack.upkeep.doctor import examine_session

ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 10**15, "", "x", "sha256:zz", "ev-1", "ev-99999", "2026", [], {}, [1], [[]], [{}]),
    *({"a": 1}, "messages:0", "messages:2", "messages:3-1", "messages:1-99999999", "0" * 64, "\x00"),
]
BLOBS: list[Any] = [
    *(None, 1, "x", [], {"content": []}, {"role": 1, "content": 2}, {"role": "user", "content": "text"}),
    *({"system": 1, "tools": 2}, {"system": [1], "tools": ["x", {"name": None}]}),
    {"role": "user", "content": [{"type": 7}, {}, {"type": "text", "text": 5}, {"type": "image", "source": 3}]},
    {"role": "user", "content": [{"type": "tool_result", "content": [1, {"type": "image"}]}, {"type": "tool_use"}]},
    {"role": "system", "content": [{"type": "tool_addition", "tool": 1}, {"type": "thinking"}, 1]},
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAYPACK_DURABILITY", "os")


def places(value: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every place in a JSON value."""
    if isinstance(value, dict):
        members = cast(dict[str, object], value).items()
    else:
        members = enumerate(cast(list[object], value)) if isinstance(value, list) else ()
    for name, member in members:
        yield (*before, name)
        yield from places(member, (*before, name))


def damage(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with an odd one at some of its places."""
    damaged = deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        *steps, last = chance.choice(list(places(damaged)) or [(0,)])
        holder = damaged
        for step in steps:
            holder = holder[step]
        holder[last] = deepcopy(chance.choice(ODD))
    return damaged


def read_everything(session: Session) -> None:
    """Read the calls of a session in every way; only errors of daypack may come."""
    reader, links = RequestReader(session.history), Links(session.history)
    before: ObservedTurn | None = None
    for call in newest_calls(session.history):
        if not isinstance(call, Call):
            continue
        why_missing(session.history, call, "messages:1")
        if call.content != "recorded":
            continue
        turn = reader.open(call.event)
        with suppress(DaypackError):
            turn.verify()
        total_by_source(parts_of(turn, links))
        if before:
            compare_observed(before, turn, links)
        before = turn
    for event in session.events():
        describe_event(event, len)
    list(examine_session(session.history.layout))


def test_rows_with_any_value_at_any_place(home: str, tmp_path: Path, campaign: Campaign) -> None:
    chance = random.Random(campaign.seed)
    rows = [json.loads(line) for line in load_recording().lines]
    for number in range(campaign.size("damaged transcripts", 100)):
        damaged = [damage(row, chance) if chance.random() < 0.1 else row for row in rows]
        at = chance.randrange(len(rows))
        damaged[at:] = chance.sample(damaged[at:], len(rows) - at)
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in damaged))
        name = f"s{number}"
        with suppress(DaypackError):
            import_file("claude-code", str(path), Destination(home, agent="default", session=name))
            with daypack.open_session(name, home=home, create=False) as session:
                read_everything(session)


def test_events_and_blobs_of_other_programs(home: str, campaign: Campaign) -> None:
    chance = random.Random(campaign.seed)
    with daypack.open_session(import_recording(home), home=home, create=False) as session:
        known = [event for event in session.events() if event.type in (OBSERVED, USAGE, "import.row")]
        for _ in range(campaign.size("damaged transcripts", 1000)):
            event = chance.choice(known)
            session.history.append_event(Event(type=event.type, data=damage(event.data, chance)))
        for value in BLOBS:
            digest = f"sha256:{blobs.put(session.history.layout.blob, json.dumps(value).encode())[7:]}"
            data = {"program": "x", "request": digest, "shape": digest, "tail": [{"digest": digest}]}
            session.history.append_event(Event(type=OBSERVED, data=data))
        read_everything(session)
