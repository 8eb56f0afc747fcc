"""Raw history is the only input of a compactor, by its type, and holds nothing that was brought back or is secret."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from turn.scenes import MARKER, SECRET

from daypack.derived.artifacts import artifacts
from daypack.derived.compaction import compaction
from daypack.derived.compaction import extractive as modelfree
from daypack.derived.compaction import with_model as modelled
from daypack.derived.raw_history import Raw, raw_of, read_raw, repeats_history
from daypack.session import Session
from daypack.text.injected import RECALLED
from daypack.types.history import Message


@pytest.mark.requirement("X11")
@pytest.mark.parametrize(
    "function", [artifacts.read_artifacts, modelfree.extract, modelled.fill, modelled.transcript, modelfree.finished]
)
def test_by_its_type_a_compactor_is_given_raw_history_and_no_summary(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    types = {name: str(one.annotation) for name, one in parameters.items()}
    assert parameters["raw"].annotation is Raw
    for name, one in types.items():
        assert name == "raw" or not any(
            word in one for word in ("Message", "Summary", "ContextDoc", "Records", "Folded", "Compaction")
        ), (name, one)


def test_a_compaction_reads_messages_through_raw_alone() -> None:
    source = inspect.getsource(compaction)
    assert "raw_of(" in source
    for name in ("atomic", "derived(", "parse(", "captured("):
        assert name not in source  # no file of an earlier compaction is opened


def test_what_was_brought_back_is_left_out_wherever_it_stands(session: Session) -> None:
    session.append("user", "Find the port.")
    session.append("assistant", "", tool_calls=[{"id": "a", "name": "recall", "arguments": "{}"}])
    session.append("tool", session.call("recall", {"id": "msg-1"}), tool_call_id="a")
    session.append("user", "This session is continued. The port is 8081.", meta={"foreign_summary": True})
    session.append("user", f"{RECALLED}messages:1] is what a user may write.")
    session.append("assistant", "Done.")
    raw = read_raw(session.history, 1, 6, redacting=True)
    assert [one.seq for one in raw.messages] == [1, 2, 5, 6]
    assert (raw.start, raw.stop, raw.source) == (1, 6, "messages:1-6")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message(role="tool", content="y", tool_call_id="a", meta={"daypack": {"recalled": {}}}), True),
        (Message(role="tool", content=f"{RECALLED}x] y", tool_call_id="a"), False),
        (Message(role="assistant", content=f"{RECALLED}x]"), False),
        (Message(role="system", content="s", meta={"foreign_summary": True}), True),
        (Message(role="user", content="s", meta={"foreign_summary": False}), False),
    ],
)
def test_only_answers_of_our_tools_and_foreign_summaries_count_as_brought_back(
    message: Message, *, expected: bool
) -> None:
    assert repeats_history(message) is expected


def test_secrets_are_out_of_what_a_compactor_reads_unless_redaction_is_off(session: Session) -> None:
    session.append("user", f"The token is {SECRET}.")
    cleared = read_raw(session.history, 1, 1, redacting=True)
    assert cleared.messages[0].text == f"The token is {MARKER}."
    assert SECRET in read_raw(session.history, 1, 1, redacting=False).messages[0].text
    assert raw_of((), 1, 0, redacting=True).messages == ()
