import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.types.snapshot import PROTOCOL_VERSION, Block, Capability, Snapshot
from tools.schemas import schema_of

TEMPLATE = """\
{
  "version": 2.3,
  "runtime": {
    "round": 1,
    "workspace": "/workspace/path/",
    "datetime": "2026-02-25T10:00:00.000Z",
    "startup_at": 1700000000000
  },
  "memory": {
    "core": [
      {
        "id": "core-001",
        "type": "identity",
        "decay": 0.05,
        "confidence": 0.95,
        "round": 1,
        "tags": ["agent", "identity"],
        "content": "长期核心记忆"
      }
    ],
    "working": [
      {
        "id": "work-001",
        "type": "task",
        "decay": 0.4,
        "confidence": 0.78,
        "round": 1,
        "tags": ["task", "active"],
        "content": "当前任务相关记忆"
      }
    ],
    "ephemeral": [
      {
        "id": "temp-001",
        "type": "hint",
        "decay": 0.75,
        "confidence": 0.55,
        "round": 1,
        "tags": ["temporary"],
        "content": "临时上下文信息"
      }
    ]
  },
  "capabilities": [{ "name": "memory", "scope": "write_once" }],
  "active_task": "当前执行任务摘要"
}
"""


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
