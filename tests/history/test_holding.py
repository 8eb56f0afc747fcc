"""Records whose lines contain a word: the same as decoding all of them and looking."""

import random
import warnings
from pathlib import Path

import pytest

import daypack
from daypack.session import Session
from daypack.types.history import Event

WORDS = (b'"note.kept"', b"needle")


@pytest.fixture
def session(home: str) -> Session:
    return daypack.open_session("work", home=home, durability="os")


def wanted(session: Session, start: int = 1, stop: int | None = None) -> list[Event]:
    return [event for event in session.history.events.records(start, stop) if holds(event)]


def holds(event: Event) -> bool:
    return event.type == "note.kept" or "needle" in str(event.data)


def found(session: Session, start: int = 1, stop: int | None = None) -> list[Event]:
    return [event for event in session.history.events.holding(WORDS, start, stop) if holds(event)]


def write(session: Session, count: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.choice(("note.kept", "note.other", "note.more"))
        session.append_event(kind, {"text": chance.choice(("hay", "a needle", "x" * 5000))})


def test_only_lines_with_a_word_are_decoded(session: Session) -> None:
    write(session, 300)
    assert found(session) == wanted(session) != []
    assert len(list(session.history.events.holding(WORDS))) == len(wanted(session))
    assert found(session, 40, 90) == wanted(session, 40, 90)
    assert list(session.history.events.holding((b"absent",))) == []


def test_an_empty_log_has_none(session: Session) -> None:
    assert list(session.history.messages.holding((b"x",))) == []


def test_lines_beside_damage_and_by_hand_are_found(session: Session) -> None:
    write(session, 40)
    session.close()
    path = Path(session.layout.events)
    lines = path.read_bytes().split(b"\n")
    lines[7] = lines[7][:30] + b"#" + lines[7][31:]
    lines.insert(20, b'{"type":"note.kept","data":{"text":"by hand"}}')
    path.write_bytes(b"\n".join(lines))
    with warnings.catch_warnings(), daypack.open_session("work", home=session.layout.root, create=False) as again:
        warnings.simplefilter("ignore")
        assert found(again) == wanted(again)
        assert any(event.data.get("text") == "by hand" for event in found(again))


def test_lines_appended_while_reading_are_not_in_the_range(session: Session) -> None:
    write(session, 5000)
    before, seen = wanted(session), list[Event]()
    for event in session.history.events.holding(WORDS):
        seen += [event] if holds(event) else []
        if len(seen) == 10:
            write(session, 20, seed=2)
    assert seen == before
