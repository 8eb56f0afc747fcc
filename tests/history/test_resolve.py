"""Source references resolve to what they name, or say what is missing."""

import pytest

from daypack.errors import SourceMissing
from daypack.history.resolve import resolve, settle, text_of
from daypack.session import Session
from daypack.types.source import parse_source


@pytest.fixture
def talk(session: Session) -> Session:
    """Five messages with a tool call, whose events are the first two, and two other events."""
    session.append("user", "one")
    session.append("assistant", "two", tool_calls=[{"id": "call 7", "name": "f"}])
    session.append("tool", "three", tool_call_id="call 7")
    session.append("user", "four")
    session.append("assistant", "five")
    session.append_event("first", {})
    session.append_event("second", {"text": "what happened"})
    return session


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("messages:2", "two"),
        ("messages:2-4", "two\n\nthree\n\nfour"),
        ("messages:tail:2", "four\n\nfive"),
        ("tail:1", "five"),
        ("1-2", "one\n\ntwo"),
        ("messages:4-99", "four\n\nfive"),
        ("user:latest", "four"),
        ("tool:call 7", "three"),
        ("events:ev-4", "what happened"),
    ],
)
def test_a_reference_resolves_to_its_text(talk: Session, source: str, text: str) -> None:
    assert text_of(resolve(talk.history, parse_source(source))) == text


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(("source", "settled"), [("user:latest", "messages:4"), ("tail:2", "messages:4-5")])
def test_a_moving_reference_is_written_as_the_number_it_stands_for(talk: Session, source: str, settled: str) -> None:
    assert str(settle(talk.history, parse_source(source))) == settled
    before = settle(talk.history, parse_source(source))
    talk.append("user", "six")
    assert text_of(resolve(talk.history, before)).startswith("four")


@pytest.mark.parametrize("source", ["messages:9", "events:ev-9", "events:other", "tool:none", "swap:sha256-abc"])
def test_what_is_not_in_the_session_is_said_to_be_missing(talk: Session, source: str) -> None:
    with pytest.raises(SourceMissing) as missing:
        resolve(talk.history, parse_source(source))
    assert source in str(missing.value)


@pytest.mark.parametrize("source", ["user:latest", "messages:tail:3"])
def test_nothing_is_latest_in_an_empty_session(session: Session, source: str) -> None:
    with pytest.raises(SourceMissing):
        resolve(session.history, parse_source(source))
