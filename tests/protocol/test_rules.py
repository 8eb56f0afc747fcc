"""Each rule of the protocol, and what becomes of a snapshot that breaks it."""

import json
from typing import Any, cast

import pytest
from protocol.replies import (
    GOOD,
    RUNTIME,
    SNAPSHOT,
    STAMP,
    Case,
    block,
    broken_rules,
    compact,
    drop,
    musts,
    picture,
    put,
)
from protocol.states import STATES

from daypack.protocol import SEPARATOR, Block, Reply, Snapshot, Violation, parse
from daypack.types.snapshot import PROTOCOL_VERSION


def read(whole: object, expected: Any = STAMP) -> Reply:
    return parse(f"Hi.\n{SEPARATOR}\n{compact(whole)}", expected=expected)


def state(whole: object, expected: Any = STAMP) -> Snapshot:
    snapshot = read(whole, expected).snapshot
    assert snapshot is not None
    return snapshot


def only(reply: Reply, rule: str) -> Violation:
    """The one violation of a rule, in a reply that breaks no other."""
    assert broken_rules(reply) == {rule}
    assert len(reply.violations) == 1
    return reply.violations[0]


def order(*blocks: dict[str, Any]) -> tuple[set[str], list[str]]:
    """The rules a core tier breaks, and the ids that are kept."""
    reply = read(put("memory.core", list(blocks)))
    assert reply.snapshot is not None
    return broken_rules(reply), [entry.id for entry in reply.snapshot.memory.core]


@pytest.mark.requirement("S0-V1")
def test_the_protocol_says_its_name_and_its_version():
    import daypack.protocol

    assert PROTOCOL_VERSION == 2.3
    assert "Context Protocol, Hybrid Mode (Text + JSON Snapshot)" in (daypack.protocol.__doc__ or "")
    assert state(SNAPSHOT, None).version == 2.3


@pytest.mark.requirement("S0-R1")
def test_a_reply_without_a_section_is_reported():
    violation = only(parse("Hi."), "S0-R1")
    assert violation.level == "must"


@pytest.mark.requirement("S0-R2")
def test_text_behind_the_section_is_reported_and_kept():
    reply = parse(f"Hi.\n{SEPARATOR}\n{GOOD}\nBye.", expected=STAMP)
    assert "S0-R2" in musts(reply)
    assert reply.text == "Hi.\n\nBye."
    assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("S0-R3", "X20")
def test_the_split_is_at_the_first_separator_behind_which_all_is_one_object_and_others_are_reported():
    text = f"Write `{SEPARATOR}` and then `{SEPARATOR} {{}}`.\n"
    reply = parse(f"{text}{SEPARATOR}\n{GOOD}", expected=STAMP)
    assert (reply.text, reply.snapshot) == (text, SNAPSHOT)
    assert broken_rules(reply) == {"S0-R3"}
    quoting = put("active_task", f"{SEPARATOR}{{}}")
    reply = read(quoting)
    assert (reply.text, reply.snapshot) == ("Hi.\n", quoting)
    assert only(reply, "S0-R3").level == "must"


@pytest.mark.requirement("S0-R4", "S0-R5", "X21")
def test_what_is_no_json_is_reported_with_the_place_and_the_text_comes_through():
    for rest in ("{'a': 1}", GOOD[:-1], GOOD.replace(",", ",,", 1), "{", ""):
        reply = parse(f"Hi.\n{SEPARATOR}\n{rest}", expected=STAMP)
        assert reply.text == "Hi.\n"
        assert reply.snapshot is None
        assert {"S0-R4", "S0-R5"} <= set(musts(reply))
        assert reply.raw == f"{SEPARATOR}\n{rest}"


@pytest.mark.requirement("S0-R6", "X19")
def test_json_white_space_around_the_object_is_fine_and_any_other_character_is_reported():
    for space in ("", " ", "\n", "\r\n", "\t", " \n\t\r "):
        assert parse(f"Hi.{SEPARATOR}{space}{GOOD}{space}", expected=STAMP).violations == ()
    for other in ("\ufeff", "\u00a0", "\u2003", "\v", "\f"):
        reply = parse(f"Hi.{SEPARATOR}{other}{GOOD}", expected=STAMP)
        assert "S0-R6" in musts(reply)
        assert reply.snapshot == SNAPSHOT
        assert "S0-R6" in musts(parse(f"Hi.{SEPARATOR}{GOOD}{other}", expected=STAMP))
    for token in ("<<<Context>>>", "<<< CONTEXT >>>", "&lt;&lt;&lt;CONTEXT&gt;&gt;&gt;", "\\<\\<\\<CONTEXT\\>\\>\\>"):
        assert broken_rules(parse(f"Hi.{token}{GOOD}", expected=STAMP)) == {"S0-R1"}


@pytest.mark.requirement("S0-R7")
@pytest.mark.parametrize("path", ["memory", "memory.core", "memory.working", "memory.core.0"])
def test_prose_where_state_should_be_is_refused(path: str):
    reply = read(put(path, "We spoke about Rome, and she was happy."))
    assert "S0-R7" in musts(reply)
    assert reply.snapshot is not None
    assert "Rome" not in compact(picture(reply.snapshot))


ALTERED: list[tuple[str, str, list[Any]]] = [
    ("S0-R8.1", "version", [2.4, "2.3", None, True, 2, 23]),
    ("S0-R8.2", "runtime.round", [2, 0, "1", None, True, 1.5, -1]),
    ("S0-R8.3", "runtime.workspace", ["/workspace/path", "", None, 1, "/workspace//path/", ["/workspace/path/"]]),
    ("S0-R8.4", "runtime.datetime", ["2026-02-25T10:00:00Z", "", None, 1772013600000, "2026-02-25T11:00:00.000+01:00"]),
    ("S0-R8.5", "runtime.startup_at", [1700000000, 1700000000001, "1700000000000", None, 1.5, -1]),
]


@pytest.mark.requirement("S0-R8", "S0-R8.1", "S0-R8.2", "S0-R8.3", "S0-R8.4", "S0-R8.5", "S0-N1", "S0-N6", "X22")
@pytest.mark.parametrize(("rule", "path", "values"), ALTERED, ids=[path for _, path, _ in ALTERED])
def test_a_system_field_that_differs_is_reported_and_the_host_s_value_stays(rule: str, path: str, values: list[Any]):
    for whole in (*(put(path, value) for value in values), drop(path)):
        reply = read(whole)
        assert rule in musts(reply)
        assert broken_rules(reply) <= {rule, "S0-T2"}
        assert next(violation.where for violation in reply.violations if violation.rule == rule) == path
        assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("X22")
def test_system_fields_are_compared_as_json_values():
    for old, new in (("2.3", "2.30"), ("2.3", "23e-1"), ('"round":1', '"round":1.0'), ("1700000000000", "17e11")):
        reply = parse(f"Hi.{SEPARATOR}{GOOD.replace(old, new, 1)}", expected=STAMP)
        assert reply.violations == ()
        assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("S0-N1", "S0-N6")
def test_the_host_stamps_a_snapshot_whose_runtime_is_missing_or_nonsense():
    nonsense: list[Any] = [None, [], "x", 7, {}, {"round": {}}, {**RUNTIME, "round": 99, "extra": 1}]
    for runtime in nonsense:
        assert picture(state(put("runtime", runtime)))["runtime"] == RUNTIME
    assert picture(state(drop("runtime")))["runtime"] == RUNTIME


def test_what_the_model_writes_under_memory_is_taken_as_it_stands():
    memory = {"core": [block("a")], "working": [block("b"), block("c", 0.3)], "ephemeral": []}
    reply = read(put("memory", memory))
    assert reply.violations == ()
    assert reply.snapshot is not None
    assert reply.snapshot["memory"] == memory


@pytest.mark.requirement("S0-R9", "X40")
def test_blocks_anywhere_else_than_in_the_three_tiers_are_refused():
    for path in ("memory.longterm", "memory.Core", "core", "working", "ephemeral"):
        reply = read(put(path, [block("far")]))
        violation = only(reply, "S0-R9")
        assert violation.level == "must"
        assert violation.where == path
        assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("X40")
def test_an_unknown_key_at_the_top_is_preserved():
    reply = read({**SNAPSHOT, "todo": {"summary": "计划", "steps": [1, None]}})
    assert reply.violations == ()
    assert reply.snapshot is not None
    assert reply.snapshot.extra == {"todo": {"summary": "计划", "steps": [1, None]}}


FIELDS = ["id", "type", "decay", "confidence", "round", "tags", "content"]
WRONG: dict[str, Any] = {"id": 1, "type": {}, "round": "x", "tags": "a", "content": 5}


@pytest.mark.requirement("S0-R10", "S0-R10.1", "S0-R10.2", "S0-R10.3", "S0-R10.4", "S0-R10.5", "S0-R10.6", "S0-R10.7")
@pytest.mark.parametrize("tier", ["core", "working", "ephemeral"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_a_violation_that_names_it(field: str, tier: str):
    reply = read(drop(f"memory.{tier}.0.{field}"))
    rule = f"S0-R10.{FIELDS.index(field) + 1}"
    assert rule in musts(reply)
    violation = next(violation for violation in reply.violations if violation.rule == rule)
    assert field in violation.problem + violation.where
    assert f"memory.{tier}[0]" in violation.where
    kept: list[Any] = picture(state(drop(f"memory.{tier}.0.{field}")))[tier]
    assumed: dict[str, Any] = {"confidence": 0.5, "type": "note", "tags": [], "round": 1}
    old = SNAPSHOT["memory"][tier][0]
    assert kept == ([{**old, field: assumed[field]}] if field in assumed else [])
    if field in WRONG:
        assert rule in musts(read(put(f"memory.{tier}.0.{field}", WRONG[field])))


@pytest.mark.requirement("S0-R11", "S0-R12")
@pytest.mark.parametrize(("field", "rule"), [("decay", "S0-R11"), ("confidence", "S0-R12")])
def test_decay_and_confidence_are_numbers_from_0_to_1_both_included(field: str, rule: str):
    for value in (0, 0.0, 1e-300, 0.5, 1, 1.0):
        reply = read(put(f"memory.core.0.{field}", value))
        assert musts(reply) == []
        assert reply.snapshot is not None
        assert getattr(reply.snapshot.memory.core[0], field) == value
    for value in (-0.001, 1.001, -1, 2, 95, 1e300, "2", "-1", "nan", "inf"):
        reply = read(put(f"memory.core.0.{field}", value))
        assert musts(reply) == [rule, "S0-R10"]
        assert state(put(f"memory.core.0.{field}", value)).memory.core == ()
    others: list[Any] = [True, False, "much", [], {}]
    for value in others:
        assert rule in musts(read(put(f"memory.core.0.{field}", value)))
    reply = read(put(f"memory.core.0.{field}", str(SNAPSHOT["memory"]["core"][0][field])))
    assert only(reply, rule).where == f"memory.core[0].{field}"
    assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("X21")
@pytest.mark.parametrize("case", STATES, ids=lambda case: case.name)
def test_every_block_that_was_sent_is_kept_or_reported_as_refused(case: Case):
    sent = json.loads(case.reply.partition(SEPARATOR)[2]).get("memory")
    reply = parse(case.reply, expected=case.expected)
    assert reply.snapshot is not None
    refused = [one for one in reply.violations if one.rule == "S0-R10" and one.where.endswith("]")]
    for tier in ("core", "working", "ephemeral"):
        blocks: Any = cast(dict[str, Any], sent).get(tier) if isinstance(sent, dict) else None
        if isinstance(blocks, list):
            gone = [one for one in refused if one.where.startswith(f"memory.{tier}[")]
            assert len(cast(list[Any], blocks)) == len(getattr(reply.snapshot.memory, tier)) + len(gone)


LIMITS = [("core", 0.35, 0.70), ("working", 0.65, 0.55), ("ephemeral", 0.80, 0.40)]


@pytest.mark.requirement("S0-R13", "S0-R13.1")
@pytest.mark.parametrize(("tier", "decay", "confidence"), LIMITS, ids=[tier for tier, _, _ in LIMITS])
def test_a_block_that_should_have_been_left_out_is_reported(tier: str, decay: float, confidence: float):
    assert read(put(f"memory.{tier}", [block("a", decay, confidence)])).violations == ()
    for weak in (block("a", decay + 0.01, 1), block("a", 0, confidence - 0.01), block("a", 0.99, 0.01)):
        reply = read(put(f"memory.{tier}", [weak]))
        assert only(reply, "S0-R13").level == "should"
        assert picture(state(put(f"memory.{tier}", [weak])))[tier] == [weak]


def test_an_id_that_stands_twice_in_a_tier_is_reported_and_both_blocks_are_handed_on():
    better, worse = block("a", 0.1, content="better"), block("a", 0.3, content="worse")
    newer, older = block("a", content="newer"), block("a", round=0, content="older")
    for pair in ((better, worse), (worse, better), (newer, older), (older, newer)):
        reply = read(put("memory.core", list(pair)))
        assert "S0-R14" in broken_rules(reply)
        assert musts(reply) == []
        assert reply.snapshot is not None
        assert reply.snapshot["memory"]["core"] == list(pair)


@pytest.mark.requirement("S0-R15", "S0-R11.1", "S0-R12.2")
def test_a_tier_goes_from_the_best_block_to_the_worst():
    vital, usual, idle = block("vital", 0, 0.9), block("usual", 0.2, 0.9), block("idle", 0.9, 0.9)
    assert order(vital, usual) == (set(), ["vital", "usual"])
    assert order(usual, vital)[0] == {"S0-R15"}
    assert order(usual, idle)[0] == {"S0-R13"}
    assert order(idle, usual)[0] == {"S0-R13", "S0-R15"}
    sure, fair, vague = block("sure", 0.2, 1), block("fair", 0.2, 0.9), block("vague", 0.2, 0.1)
    assert order(sure, fair) == (set(), ["sure", "fair"])
    assert order(fair, sure)[0] == {"S0-R15"}
    assert order(fair, vague)[0] == {"S0-R13"}
    assert order(vague, fair)[0] == {"S0-R13", "S0-R15"}


def test_a_block_with_decay_1_or_confidence_0_asks_to_be_forgotten_and_is_no_poor_block():
    for gone in (block("a", 1, 0.9), block("a", 0.1, 0), block("a", 1, 0)):
        assert order(gone) == (set(), ["a"])
    assert order(block("gone", 1), block("here")) == (set(), ["gone", "here"])


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_nobody_knows_changes_nothing_about_the_others(field: str):
    values: list[Any] = ["", " ", "\r", 0, 1, 2, -1, "0.5", True, None, [], {}, ["a", 1], "text"]
    for value in values:
        plain = put(f"memory.core.0.{field}", value)
        more = put("memory.core.0", {**plain["memory"]["core"][0], "unknown": 1})
        assert broken_rules(read(more)) == broken_rules(read(plain)), value
        kept: list[Any] = picture(state(plain))["core"]
        assert picture(state(more))["core"] == [{**entry, "unknown": 1} for entry in kept], value


@pytest.mark.requirement("S0-R15")
def test_the_same_thing_under_two_ids_is_reported():
    reply = read(put("memory.core", [block("a", content="Same."), block("b", 0.2, content="Same.")]))
    assert only(reply, "S0-R15").level == "should"


@pytest.mark.requirement("S0-F1", "X23")
@pytest.mark.parametrize("root", [[SNAPSHOT], [], "text", 2.3, None, True], ids=str)
def test_a_root_that_is_no_object_is_refused(root: object):
    reply = read(root)
    assert reply.snapshot is None
    assert reply.text == "Hi.\n"
    assert {"S0-F1", "X23"} <= set(musts(reply))


@pytest.mark.requirement("S0-F2", "S0-F3", "S0-F4", "X21")
@pytest.mark.parametrize(
    ("rule", "rest"),
    [
        ("S0-F2", f"```json\n{GOOD}\n```"),
        ("S0-F3", f"<context>{GOOD}</context>"),
        ("S0-F4", GOOD.replace(",", ", // why\n", 1)),
        ("S0-F4", GOOD.replace(",", ", /* why */", 1)),
    ],
)
def test_fences_tags_and_comments_are_reported_and_repaired(rule: str, rest: str):
    reply = parse(f"Hi.\n{SEPARATOR}\n{rest}", expected=STAMP)
    assert rule in musts(reply)
    assert reply.text == "Hi.\n"
    assert reply.snapshot == SNAPSHOT


@pytest.mark.requirement("X23")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_what_is_no_finite_number_is_refused(number: str):
    for whole in (GOOD.replace("0.05", number), GOOD.replace("{", f'{{"x":[{number}],', 1)):
        reply = parse(f"Hi.\n{SEPARATOR}\n{whole}", expected=STAMP)
        assert (reply.text, reply.snapshot) == ("Hi.\n", None)
        assert "X23" in musts(reply)


@pytest.mark.requirement("X23")
def test_a_key_that_stands_twice_in_one_object_is_refused():
    for old, new in (("{", '{"x":1,"x":1,'), ('"round":1', '"round":1,"round":1'), ('"id"', '"id":"y","id"')):
        reply = parse(f"Hi.\n{SEPARATOR}\n{GOOD.replace(old, new, 1)}", expected=STAMP)
        assert (reply.text, reply.snapshot) == ("Hi.\n", None)
        assert only(reply, "X23").level == "must"


def test_a_round_of_the_future_is_reported():
    violation = only(read(put("memory.core.0.round", 5)), "S0-R10.5")
    assert violation.level == "should"
    assert violation.where == "memory.core[0].round"


def test_a_block_knows_what_it_is_worth():
    entry = state(SNAPSHOT).memory.core[0]
    assert isinstance(entry, Block)
    assert entry.quality == pytest.approx(0.95)
    assert entry.importance == pytest.approx(0.95)
