"""A reply is split into text and snapshot: every fixture, what strict mode raises, and what `emit` writes."""

import json
from typing import Any

import pytest
from protocol.breaks import BREAKS
from protocol.replies import (
    GOOD,
    PICTURE,
    RUNTIME,
    SNAPSHOT,
    STAMP,
    TEMPLATE,
    Case,
    apart,
    block,
    broken_rules,
    compact,
    drop,
    musts,
    picture,
    put,
)
from protocol.splits import SPLITS
from protocol.states import STATES

from daypack.errors import BadInput, BadReply
from daypack.protocol import SEPARATOR, Runtime, Snapshot, Tiers, emit, parse

CASES = [*SPLITS, *BREAKS, *STATES]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def test_the_fixtures_are_many_and_each_has_a_name_of_its_own():
    assert len(CASES) >= 110
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.requirement("T5", "X21")
@every_case
def test_text_snapshot_and_broken_rules_of_a_reply(case: Case):
    reply = parse(case.reply, expected=case.expected)
    assert apart(reply.text, case.text) == ""
    assert (reply.snapshot is None) == (case.snapshot is None)
    if reply.snapshot is not None and case.snapshot is not None:
        seen = picture(reply.snapshot)
        assert {key: seen[key] for key in case.snapshot} == case.snapshot
    assert broken_rules(reply) == case.broken


@pytest.mark.requirement("X21")
@every_case
def test_text_and_cut_are_all_of_the_reply(case: Case):
    reply = parse(case.reply, expected=case.expected)
    start, end = reply.cut or (len(case.reply), len(case.reply))
    assert apart(reply.text, case.reply[:start] + case.reply[end:]) == ""
    assert apart(reply.raw, case.reply[start:end]) == ""
    assert (reply.raw == "") == (reply.cut is None)
    assert reply.unsent == ""
    if reply.cut:
        assert reply.raw.startswith(SEPARATOR)


@every_case
def test_the_bytes_of_a_reply_give_what_its_characters_give(case: Case):
    try:
        written = case.reply.encode()
    except UnicodeEncodeError:
        # Bytes cannot hold half a pair: what stands there instead is read as damage, and the rest is as it was.
        written = case.reply.encode(errors="surrogatepass")
        reply = parse(written, expected=case.expected)
        assert (reply.snapshot is None) == (case.snapshot is None)
        assert reply.text == case.text.encode(errors="surrogatepass").decode(errors="replace")
        return
    assert parse(written, expected=case.expected) == parse(case.reply, expected=case.expected)


@pytest.mark.requirement("X21")
@every_case
def test_strict_mode_raises_exactly_when_a_must_is_broken(case: Case):
    loose = parse(case.reply, expected=case.expected)
    if musts(loose):
        with pytest.raises(BadReply) as raised:
            parse(case.reply, expected=case.expected, strict=True)
        assert raised.value.violations == loose.violations
        assert raised.value.reply == loose
        assert len(str(raised.value)) < 4000
    else:
        assert parse(case.reply, expected=case.expected, strict=True) == loose


@every_case
def test_a_violation_says_what_is_wrong_in_a_sentence_and_holds_no_more_of_the_reply_than_needed(case: Case):
    for violation in parse(case.reply, expected=case.expected).violations:
        assert violation.level in ("must", "should")
        assert violation.problem.strip()
        assert len(violation.problem) < 1000
        assert len(violation.where) < 1000
        assert (violation.problem + violation.where).encode()


@every_case
def test_what_was_taken_from_a_reply_can_be_emitted_and_read_again(case: Case):
    reply = parse(case.reply, expected=case.expected)
    if reply.snapshot is None:
        return
    again = parse(emit(reply.text, reply.snapshot), expected=reply.snapshot)
    assert apart(again.text, reply.text) == ""
    assert again.snapshot == reply.snapshot
    assert [rule for rule in musts(again) if rule != "S0-R3"] == []


@pytest.mark.requirement("X19")
def test_the_separator_is_the_literal_token():
    assert SEPARATOR == "<<<CONTEXT>>>"


def test_a_snapshot_is_equal_to_the_object_it_stands_for_and_reads_like_it():
    snapshot = parse(f"Hi.{SEPARATOR}{TEMPLATE}").snapshot
    assert snapshot is not None
    assert snapshot == SNAPSHOT
    assert snapshot != put("version", 2.4)
    assert snapshot != drop("active_task")
    assert snapshot["memory"] == SNAPSHOT["memory"]
    assert snapshot["runtime"]["round"] == 1
    assert snapshot["active_task"] == "当前执行任务摘要"
    with pytest.raises(KeyError):
        snapshot["nothing"]


def test_a_snapshot_with_unknown_keys_is_equal_to_its_object():
    whole = {**put("memory.core.0.status", "open"), "todo": {"step": 1}}
    snapshot = parse(f"Hi.{SEPARATOR}{compact(whole)}").snapshot
    assert snapshot == whole
    assert snapshot is not None
    assert snapshot["todo"] == {"step": 1}


@pytest.mark.requirement("S0-F1", "S0-F2", "S0-F3", "S0-F4")
def test_emit_writes_text_separator_and_one_json_object_and_nothing_else():
    written = emit("Hello.\n", SNAPSHOT)
    assert written.startswith(f"Hello.\n{SEPARATOR}\n{{")
    assert json.loads(written.removeprefix(f"Hello.\n{SEPARATOR}\n")) == SNAPSHOT
    assert "```" not in written
    assert written.endswith("}")
    assert written.removeprefix(f"Hello.\n{SEPARATOR}\n") == GOOD


@pytest.mark.requirement("S0-T13")
def test_text_in_any_script_comes_back_with_the_very_same_bytes():
    words = "长期核心记忆 😀 é é \u200d ﷽ \U0010ffff"
    whole = put("memory.core.0.content", words)
    written = emit(f"{words}\n", whole).encode()
    assert written.count(words.encode()) == 2
    reply = parse(written, expected=STAMP)
    assert reply.text.encode() == f"{words}\n".encode()
    assert reply.snapshot is not None
    assert reply.snapshot.memory.core[0].content.encode() == words.encode()
    assert reply.violations == ()


@pytest.mark.requirement("S0-R3")
def test_emit_writes_the_token_of_a_string_with_an_escape():
    whole = {**put("memory.core.0.content", f"{SEPARATOR}{SEPARATOR} <{SEPARATOR}"), SEPARATOR: {SEPARATOR: SEPARATOR}}
    written = emit("Hello.", whole)
    assert written.count(SEPARATOR) == 1
    assert json.loads(written.removeprefix(f"Hello.{SEPARATOR}")) == whole
    assert parse(written, expected=STAMP).violations == ()


NO_SNAPSHOT: list[tuple[str, Any]] = [
    ("nothing", {}),
    ("no version", drop("version")),
    ("no memory", drop("memory")),
    ("an unknown tier", put("memory.longterm", [])),
    ("a tier that is no list", put("memory.core", "words")),
    ("a block without an id", drop("memory.core.0.id")),
    ("a block without content", drop("memory.core.0.content")),
    ("decay above 1", put("memory.core.0.decay", 2)),
    ("decay as a string", put("memory.core.0.decay", "0.1")),
    ("decay that is no number at all", put("memory.core.0.decay", float("nan"))),
    ("confidence below 0", put("memory.core.0.confidence", -1)),
    ("a version as a string", put("version", "2.3")),
    ("a round below 0", put("runtime.round", -1)),
    ("what no JSON can say", {**SNAPSHOT, "x": object()}),
    ("Infinity", {**SNAPSHOT, "x": float("inf")}),
]


@pytest.mark.parametrize("whole", [whole for _, whole in NO_SNAPSHOT], ids=[name for name, _ in NO_SNAPSHOT])
def test_emit_refuses_what_is_no_snapshot(whole: dict[str, Any]):
    with pytest.raises(BadInput):
        emit("Hello.", whole)


def test_emit_takes_a_snapshot_or_the_object_it_stands_for():
    snapshot = parse(f"Hi.{SEPARATOR}{GOOD}").snapshot
    assert snapshot is not None
    assert emit("Hello.", snapshot) == emit("Hello.", SNAPSHOT)


def test_what_is_expected_may_be_a_snapshot_a_runtime_or_an_object():
    snapshot = parse(f"Hi.{SEPARATOR}{GOOD}").snapshot
    assert snapshot is not None
    other = f"Hi.{SEPARATOR}{compact(put('runtime.round', 5))}"
    for expected in (snapshot, snapshot.runtime, STAMP, SNAPSHOT):
        reply = parse(other, expected=expected)
        assert broken_rules(reply) == {"S0-R8.2"}
        assert reply.snapshot is not None
        assert picture(reply.snapshot) == PICTURE


def test_a_reply_that_is_not_utf_8_is_read_with_marks_where_it_is_damaged():
    reply = parse(b"a\xff\xc3(\n" + f"{SEPARATOR}{GOOD}".encode(), expected=STAMP)
    assert reply.text == "a\ufffd\ufffd(\n"
    assert reply.snapshot == SNAPSHOT


def test_an_emitted_snapshot_with_empty_tiers_is_read_without_violations():
    empty = Snapshot(version=2.3, runtime=Runtime(**RUNTIME), memory=Tiers())
    reply = parse(emit("", empty), expected=empty)
    assert (reply.text, reply.snapshot, reply.violations) == ("", empty, ())


def test_the_first_of_the_sections_that_are_whole_is_the_snapshot_and_a_quoted_one_stays_text():
    quoted = f"As in {SEPARATOR} {{}} you see.\n"
    reply = parse(f"{quoted}{SEPARATOR}\n{compact(put('memory.core', [block('a')]))}", expected=STAMP)
    assert reply.text == quoted
    assert reply.snapshot is not None
    assert [entry.id for entry in reply.snapshot.memory.core] == ["a"]
