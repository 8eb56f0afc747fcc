"""What is emitted is read back byte for byte, whatever the text and the snapshot are."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol.pieces import few, modest, replies, snapshots, words
from protocol.replies import broken_rules, musts

from daypack.errors import BadInput
from daypack.protocol import SEPARATOR, Splitter, emit, parse


@pytest.mark.requirement("S0-F1", "S0-T13")
@few
@given(replies(), snapshots())
def test_an_emitted_reply_gives_back_its_text_and_its_snapshot(text: str, whole: dict[str, Any]):
    written = emit(text, whole)
    reply = parse(written, expected={"version": whole["version"], "runtime": whole["runtime"]})
    assert reply.text == text
    assert reply.snapshot == whole
    assert reply.snapshot is not None
    assert emit(reply.text, reply.snapshot) == written
    assert broken_rules(reply) == ({"S0-R3"} if SEPARATOR in text else set())
    assert parse(written.encode()).text == text


@pytest.mark.requirement("S0-R5", "S0-R3")
@few
@given(words, snapshots())
def test_emitted_json_is_plain_json_in_which_the_token_does_not_stand(text: str, whole: dict[str, Any]):
    written = emit(text, whole)
    before, token, behind = written.partition(SEPARATOR)
    assert before == text
    assert token
    assert SEPARATOR not in behind
    assert json.loads(behind) == whole
    assert musts(parse(written, strict=True)) == []


@few
@given(words, snapshots())
def test_an_emitted_reply_that_is_streamed_shows_its_text_and_holds_nothing_back_for_the_end(
    text: str, whole: dict[str, Any]
):
    splitter = Splitter()
    shown = "".join([splitter.feed(letter) for letter in emit(text, whole)])
    reply = splitter.close()
    assert (shown, reply.unsent) == (text, "")
    assert reply.snapshot == whole


@modest
@given(replies())
def test_any_reply_is_read_without_an_error_and_nothing_of_it_is_lost(text: str):
    reply = parse(text)
    start, end = reply.cut or (len(text), len(text))
    assert reply.text == text[:start] + text[end:]
    assert reply.raw == text[start:end]
    assert reply.text.startswith(text.partition(SEPARATOR)[0])
    if SEPARATOR not in text:
        assert reply.text == text
        assert broken_rules(reply) == {"S0-R1"}


@modest
@given(replies())
def test_the_words_of_a_reply_read_once_are_not_cut_when_they_are_sent_again(text: str):
    """A text that still quotes the token is kept whole once a good snapshot stands behind it."""
    once = parse(text).text
    good: dict[str, Any] = {"version": 2.3, "runtime": {}, "memory": {"core": [], "working": [], "ephemeral": []}}
    assert parse(f"{once}{SEPARATOR}\n{json.dumps(good)}").text == once


_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        1,
        -1,
        5,
        0.5,
        1.5,
        1e300,
        10**25,
        2**63,
        -0.0,
        "",
        " ",
        "x",
        "0.5",
        "1",
        SEPARATOR,
        "\u2028",
        "\0",
    ),
    *([], {}, ["x", 5, None, " y "], {"a": {"b": [1]}}, [[[]]], "half \ud800"),
)
_NAMES = ("id", "type", "decay", "confidence", "content", "tags", "round", "core", "memory", "runtime", "more")


def _places(holder: Any) -> list[Any]:
    return [*holder] if isinstance(holder, dict) else [*range(len(holder))]


@st.composite
def mutated_snapshots(draw: st.DrawFn) -> dict[str, Any]:
    """A good snapshot in which values were replaced, removed and added at any place."""
    whole: dict[str, Any] = draw(snapshots())
    # A block that is to go: nothing else has to be known of it.
    whole["memory"]["working"] = [*whole["memory"]["working"], {"id": "gone", "decay": 1}]
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = whole
        name = draw(st.sampled_from(_places(holder)))
        while isinstance(holder[name], (dict, list)) and holder[name] and draw(st.integers(0, 3)):
            holder = holder[name]
            name = draw(st.sampled_from(_places(holder)))
        change = draw(st.sampled_from(("replace", "remove", "add")))
        if change == "remove" and len(holder) > 1:
            del holder[name]
        elif change == "add" and isinstance(holder, dict):
            holder[draw(st.sampled_from(_NAMES))] = deepcopy(draw(st.sampled_from(_ODD)))
        else:
            holder[name] = deepcopy(draw(st.sampled_from(_ODD)))
    return whole


@pytest.mark.requirement("S0-F1")
@settings(modest, max_examples=300)
@given(words, mutated_snapshots(), st.booleans())
def test_every_snapshot_that_was_read_can_be_emitted_and_is_read_the_same(
    text: str, whole: dict[str, Any], stamped: bool
):
    expected = {"round": 4, "workspace": "/w", "datetime": "2026-11-15", "startup_at": 1} if stamped else None
    once = parse(f"{text}{SEPARATOR}\n{json.dumps(whole)}", expected=expected)
    assert once.snapshot is not None
    written = emit(once.text, once.snapshot)
    assert written == emit(once.text, once.snapshot.as_object())
    again = parse(written, expected=expected)
    assert (again.text, again.snapshot) == (once.text, once.snapshot)
    assert parse(written).snapshot == once.snapshot


@pytest.mark.parametrize("block", [{"id": "old", "decay": 1}, {"id": "old", "confidence": 0, "content": " "}])
def test_a_block_that_is_to_go_needs_no_content_to_be_emitted_again(block: dict[str, Any]):
    memory = {"core": [block], "working": [], "ephemeral": []}
    runtime = {"round": 4, "workspace": "/w", "datetime": "2026-11-15", "startup_at": 1}
    reply = parse(f"Hello.{SEPARATOR}\n{json.dumps({'version': 2.3, 'runtime': runtime, 'memory': memory})}")
    assert reply.snapshot is not None
    assert parse(emit(reply.text, reply.snapshot)).snapshot == reply.snapshot
    with pytest.raises(BadInput, match="content"):  # a caller's own block says what goes
        emit("Hello.", {"version": 2.3, "runtime": runtime, "memory": memory})
