"""What is emitted is read back byte for byte, whatever the text and the snapshot are."""

import json
from typing import Any

import pytest
from hypothesis import given
from protocol.pieces import few, modest, replies, snapshots, words
from protocol.replies import broken_rules, musts

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
