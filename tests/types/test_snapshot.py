import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seed_snapshot import TEMPLATE

from daypack.types.snapshot import (
    POLICIES,
    PROTOCOL_VERSION,
    Block,
    Capability,
    Runtime,
    Snapshot,
    TierPolicy,
    Tiers,
)
from tools.schemas import schema_of


@pytest.fixture
def template() -> dict[str, Any]:
    return json.loads(TEMPLATE)


def block(decay: float, confidence: float) -> Block:
    return Block("b", "hint", decay, confidence, 1, (), "x")


@pytest.mark.requirement("S0-T1", "S0-T3", "S0-T4", "S0-T5", "S0-T6", "S0-T7", "S0-T8", "S0-T9", "S0-T10")
@pytest.mark.requirement("S0-T11", "S0-T12")
def test_the_template_of_the_protocol_is_read_whole_and_written_back_unchanged(template: dict[str, Any]):
    snapshot = msgspec.json.decode(TEMPLATE, type=Snapshot)
    assert json.loads(msgspec.json.encode(snapshot)) == template
    assert snapshot.version == PROTOCOL_VERSION
    assert snapshot.runtime.startup_at == 1700000000000
    assert snapshot.memory.core == (
        Block("core-001", "identity", 0.05, 0.95, 1, ("agent", "identity"), "长期核心记忆"),
    )
    assert snapshot.memory.working == (Block("work-001", "task", 0.4, 0.78, 1, ("task", "active"), "当前任务相关记忆"),)
    assert snapshot.memory.ephemeral == (Block("temp-001", "hint", 0.75, 0.55, 1, ("temporary",), "临时上下文信息"),)
    assert snapshot.capabilities == (Capability("memory", "write_once"),)
    assert snapshot.active_task == "当前执行任务摘要"


def test_the_template_is_valid_by_its_schema_until_a_block_loses_a_field(template: dict[str, Any]):
    validator: Any = jsonschema.Draft202012Validator(schema_of(Snapshot))
    assert validator.is_valid(template)
    del template["memory"]["working"][0]["confidence"]
    assert not validator.is_valid(template)


@pytest.mark.requirement("S0-T2")
def test_the_version_is_a_json_number_and_a_string_is_refused(template: dict[str, Any]):
    assert msgspec.json.encode(msgspec.convert(template, type=Snapshot)).startswith(b'{"version":2.3,')
    with pytest.raises(msgspec.ValidationError, match="version"):
        msgspec.convert({**template, "version": "2.3"}, type=Snapshot)


@pytest.mark.requirement("S0-T13")
def test_text_in_any_script_is_written_as_the_same_utf_8_bytes():
    written = msgspec.json.encode(msgspec.json.decode(TEMPLATE, type=Snapshot))
    for text in ("长期核心记忆", "当前任务相关记忆", "临时上下文信息", "当前执行任务摘要"):
        assert f'"{text}"'.encode() in written


def test_blocks_under_another_tier_are_refused(template: dict[str, Any]):
    template["memory"]["longterm"] = template["memory"].pop("core")
    with pytest.raises(msgspec.ValidationError, match="longterm"):
        msgspec.convert(template, type=Snapshot)


def test_a_tier_that_is_left_out_is_empty_and_is_written_as_an_empty_array(template: dict[str, Any]):
    del template["memory"]["ephemeral"]
    snapshot = msgspec.convert(template, type=Snapshot)
    assert json.loads(msgspec.json.encode(snapshot))["memory"]["ephemeral"] == []


def test_a_block_without_one_of_its_seven_fields_is_refused_with_the_name_of_the_field(template: dict[str, Any]):
    whole: dict[str, Any] = template["memory"]["core"][0]
    assert list(whole) == ["id", "type", "decay", "confidence", "round", "tags", "content"]
    for field in whole:
        with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
            msgspec.convert({key: value for key, value in whole.items() if key != field}, type=Block)


@pytest.mark.parametrize("field", ["decay", "confidence"])
def test_decay_and_confidence_are_numbers_from_0_to_1(template: dict[str, Any], field: str):
    whole: dict[str, Any] = template["memory"]["core"][0]
    for value in (0, 0.0, 0.5, 1, 1.0):
        assert getattr(msgspec.convert({**whole, field: value}, type=Block), field) == value
    for value in (-0.01, 1.01, 2, "0.5", None):
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({**whole, field: value}, type=Block)


@pytest.mark.requirement("S0-R11.1", "S0-R11.2")
def test_decay_0_is_the_highest_importance_and_decay_1_the_lowest():
    assert block(0, 0.5).importance == 1
    assert block(1, 0.5).importance == 0
    assert block(0, 0.5).quality > block(1, 0.5).quality


def test_a_reliable_block_is_of_better_quality_than_an_uncertain_one():
    assert block(0.5, 1).quality > block(0.5, 0).quality


def test_quality_is_importance_and_confidence_in_equal_parts():
    assert block(0.2, 0.6).quality == pytest.approx(0.5 * 0.8 + 0.5 * 0.6)


fractions = st.floats(0, 1)


@given(
    st.builds(
        Block,
        st.text(),
        st.text(),
        fractions,
        fractions,
        st.integers(0, 2**53),
        st.lists(st.text(), max_size=8).map(tuple),
        st.text(),
    )
)
def test_a_block_survives_writing_and_reading_and_its_quality_stays_between_0_and_1(some: Block):
    assert msgspec.json.decode(msgspec.json.encode(some), type=Block) == some
    assert 0 <= some.quality <= 1


@pytest.mark.requirement("S0-R11.1", "S0-R11.2", "S0-R12.1", "S0-R12.2", "X16")
@given(fractions, st.floats(0.000001, 0.999999))
def test_the_extremes_of_decay_and_confidence_rank_first_and_last_among_equals(other: float, between: float):
    assert block(0, other).quality > block(between, other).quality > block(1, other).quality
    assert block(other, 1).quality > block(other, between).quality > block(other, 0).quality


@pytest.mark.requirement("X16", "S0-N11")
@given(fractions, fractions)
def test_importance_is_one_minus_decay_and_quality_the_mean_of_it_and_confidence(decay: float, confidence: float):
    some = block(decay, confidence)
    assert some.importance == 1 - decay
    assert some.quality == 0.5 * (1 - decay) + 0.5 * confidence
    assert some.deletes == (decay == 1 or confidence == 0)


@pytest.mark.requirement("G1")
def test_the_policies_of_the_tiers_are_these():
    assert dict(POLICIES) == {
        "core": TierPolicy(max_decay=0.35, min_confidence=0.7, max_items=24, max_rounds=None),
        "working": TierPolicy(max_decay=0.65, min_confidence=0.55, max_items=48, max_rounds=12),
        "ephemeral": TierPolicy(max_decay=0.8, min_confidence=0.4, max_items=24, max_rounds=3),
    }


@pytest.mark.requirement("G1")
def test_a_policy_says_why_a_block_falls_short_and_nothing_of_one_on_the_edge():
    policy = POLICIES["core"]
    assert policy.shortfall(block(0.35, 0.7)) == ("", "")
    assert policy.shortfall(block(0.36, 0.7)) == ("threshold_decay", "decay 0.36 is over 0.35")
    assert policy.shortfall(block(0.35, 0.69)) == ("threshold_confidence", "confidence 0.69 is under 0.7")
    assert policy.shortfall(block(1, 0))[0] == "threshold_decay"


def test_a_snapshot_is_the_json_object_it_stands_for(template: dict[str, Any]):
    snapshot = msgspec.convert(template, type=Snapshot)
    assert snapshot.as_object() == template
    assert snapshot == template
    assert template == snapshot
    assert snapshot["memory"]["core"][0]["id"] == "core-001"
    assert list(snapshot.as_object()) == list(template)
    with pytest.raises(KeyError):
        snapshot["colour"]


def test_snapshots_that_differ_are_not_equal(template: dict[str, Any]):
    snapshot = msgspec.convert(template, type=Snapshot)
    assert snapshot == msgspec.convert(template, type=Snapshot)
    template["memory"]["core"][0]["decay"] = 0.06
    assert snapshot != template
    assert snapshot != msgspec.convert(template, type=Snapshot)
    assert snapshot != [template]
    assert snapshot != "snapshot"
    with pytest.raises(TypeError):
        hash(snapshot)


def test_an_object_without_optional_keys_is_written_with_all_of_them():
    bare = Snapshot(2.3, Runtime(1, "/w/", "2026-02-25T10:00:00.000Z", 5), Tiers())
    assert bare.as_object() == {
        "version": 2.3,
        "runtime": {"round": 1, "workspace": "/w/", "datetime": "2026-02-25T10:00:00.000Z", "startup_at": 5},
        "memory": {"core": [], "working": [], "ephemeral": []},
        "capabilities": [],
        "active_task": "",
    }


def test_keys_and_fields_the_protocol_does_not_know_stand_beside_the_others(template: dict[str, Any]):
    odd = Block("b", "hint", 0.5, 0.5, 1, ("t",), "x", {"mood": "calm"})
    snapshot = Snapshot(2.3, Runtime(1, "", "", 0), Tiers(core=(odd,)), extra={"weather": [1]})
    value = snapshot.as_object()
    assert value["weather"] == [1]
    assert "extra" not in value
    assert value["memory"]["core"] == [
        {"id": "b", "type": "hint", "decay": 0.5, "confidence": 0.5, "round": 1, "tags": ["t"], "content": "x",
         "mood": "calm"}
    ]  # fmt: skip
    assert json.loads(msgspec.json.encode(snapshot))["extra"] == {"weather": [1]}  # inside daypack they stay apart


@pytest.mark.parametrize("bad", [{"max_decay": 1.1}, {"min_confidence": -1}, {"max_items": -1}, {"max_rounds": -1}])
def test_a_policy_out_of_range_is_refused(bad: dict[str, Any]):
    given_policy = {"max_decay": 0.5, "min_confidence": 0.5, "max_items": 3, **bad}
    with pytest.raises(msgspec.ValidationError, match=next(iter(bad))):
        msgspec.convert(given_policy, TierPolicy)
