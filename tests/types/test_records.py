import json
from typing import Any, TypeVar

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.types.kinds import TARGETS, is_known
from daypack.types.records import (
    ContextDoc,
    Decision,
    DedupRecord,
    ErrorRecord,
    Fact,
    Pack,
    PackItem,
    Ref,
    Summary,
    SwapRecord,
    SwapReference,
    Todo,
)
from tools.schemas import schema_of

R = TypeVar("R", bound=msgspec.Struct)

FACTS = """\
{"id":"f1","text":"CortexFS root contains status, bin, model, agent, tool, home, shared.","source":"messages:12-18"}
{"id":"f2","text":"Model ABI must not expose provider API formats.","source":"messages:80-96"}
"""
DECISIONS = """\
{"id":"d1","decision":"DESIGN.md is an index; normative details live under spec/.","source":"messages:200-230"}
{"id":"d2","decision":"Child agents are owned and die with the parent by default.","source":"user:latest"}
"""
REFS = """\
{"id":"r1","path":"/project/DESIGN.md","kind":"file","summary":"current design draft"}
{"id":"r2","path":"context/swap/chunk/sha256-abc","kind":"swap","summary":"old discussion about model ABI"}
"""
SWAP = """\
{"id":"sha256-abc","kind":"message_range","source":"messages.jsonl","range":"1-120",\
"summary":"initial design discussion","tokens":18000}
{"id":"sha256-def","kind":"tool_output","source":"events.jsonl","event":"ev-991",\
"summary":"full test log from failed build","tokens":45000}
"""
SWAP_CHUNK = """\
{"source":"messages.jsonl","start_event":"msg-001","end_event":"msg-120","hash":"sha256:..."}
"""
DEDUP = """\
{"hash":"sha256-abc","refs":["messages:1-40","swap:old-design"],"bytes":12000,"tokens":3000}
{"hash":"sha256-def","refs":["tool:test-output-1","tool:test-output-2"],"bytes":80000,"tokens":20000}
"""
PACK: dict[str, Any] = {
    "session": "default",
    "agent": "coder",
    "budget_tokens": 32000,
    "items": [
        {"kind": "system", "source": "context/pinned/system.md", "tokens": 1200},
        {"kind": "summary", "source": "context/summary.md", "tokens": 1800},
        {"kind": "facts", "source": "context/facts.jsonl", "tokens": 900},
        {"kind": "recent_messages", "source": "messages.jsonl", "range": "tail:40", "tokens": 6000},
        {"kind": "child_result", "source": "context/child/rev-123/result.md", "tokens": 1000},
    ],
}


def same_lines(text: str, type_: type[R]) -> list[R]:
    """Read JSON lines, see that they are written back byte for byte, and return them."""
    found = [msgspec.json.decode(line, type=type_) for line in text.splitlines()]
    assert [msgspec.json.encode(record).decode() for record in found] == text.splitlines()
    return found


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        (FACTS, Fact),
        (DECISIONS, Decision),
        (REFS, Ref),
        (SWAP, SwapRecord),
        (SWAP_CHUNK, SwapReference),
        (DEDUP, DedupRecord),
        (json.dumps(PACK), Pack),
    ],
)
def test_an_example_line_is_valid_by_its_schema_and_is_not_without_its_first_field(
    text: str, type_: type[msgspec.Struct]
):
    validator: Any = jsonschema.Draft202012Validator(schema_of(type_))
    for line in text.splitlines():
        document: dict[str, Any] = json.loads(line)
        assert validator.is_valid(document)
        del document[next(iter(document))]
        assert not validator.is_valid(document)


@pytest.mark.requirement("S4-CP8")
def test_facts_are_read_and_written_as_id_text_and_source():
    assert [(fact.id, fact.source) for fact in same_lines(FACTS, Fact)] == [
        ("f1", "messages:12-18"),
        ("f2", "messages:80-96"),
    ]


@pytest.mark.requirement("S4-CP9")
def test_decisions_are_read_and_written_as_id_decision_and_source():
    assert [(decision.id, decision.source) for decision in same_lines(DECISIONS, Decision)] == [
        ("d1", "messages:200-230"),
        ("d2", "user:latest"),
    ]


@pytest.mark.requirement("S4-CP10")
def test_refs_are_read_and_written_as_id_path_kind_and_summary():
    refs = same_lines(REFS, Ref)
    assert [(ref.id, ref.kind) for ref in refs] == [("r1", "file"), ("r2", "swap")]
    assert refs[1].path == "context/swap/chunk/sha256-abc"


def test_the_sample_facts_and_decisions_are_kept_word_for_word():
    assert [fact.text for fact in same_lines(FACTS, Fact)] == [
        "CortexFS root contains status, bin, model, agent, tool, home, shared.",
        "Model ABI must not expose provider API formats.",
    ]
    assert [decision.decision for decision in same_lines(DECISIONS, Decision)] == [
        "DESIGN.md is an index; normative details live under spec/.",
        "Child agents are owned and die with the parent by default.",
    ]


@pytest.mark.requirement("S4-SW3", "S4-SW4", "S4-SW5")
def test_a_swap_record_names_its_content_by_range_or_by_event():
    by_range, by_event = same_lines(SWAP, SwapRecord)
    assert (by_range.kind, by_range.range, by_range.event, by_range.tokens) == ("message_range", "1-120", None, 18000)
    assert (by_event.kind, by_event.range, by_event.event, by_event.tokens) == ("tool_output", None, "ev-991", 45000)
    assert by_event.source == "events.jsonl"
    assert is_known("swap_kind", by_range.kind)


@pytest.mark.requirement("S4-SW7")
def test_a_reference_chunk_names_source_first_and_last_record_and_hash():
    [chunk] = same_lines(SWAP_CHUNK, SwapReference)
    assert (chunk.start_event, chunk.end_event, chunk.hash) == ("msg-001", "msg-120", "sha256:...")


@pytest.mark.requirement("S4-DD3")
def test_a_dedup_record_names_hash_refs_bytes_and_tokens():
    first, second = same_lines(DEDUP, DedupRecord)
    assert first.refs == ("messages:1-40", "swap:old-design")
    assert (second.hash, second.bytes, second.tokens) == ("sha256-def", 80000, 20000)


@pytest.mark.requirement("S4-PK2", "S4-PK3")
def test_the_example_pack_is_read_whole_and_is_written_back_with_a_version():
    pack = msgspec.json.decode(json.dumps(PACK), type=Pack)
    assert json.loads(msgspec.json.encode(pack)) == {"schema_version": "1", **PACK}
    assert (pack.session, pack.agent, pack.budget_tokens, pack.tokens) == ("default", "coder", 32000, 10900)
    assert [(item.kind, item.range) for item in pack.items] == [
        ("system", None),
        ("summary", None),
        ("facts", None),
        ("recent_messages", "tail:40"),
        ("child_result", None),
    ]


def test_a_pack_is_for_the_model_unless_it_names_another_target():
    assert msgspec.convert(PACK, type=Pack).target == "model"
    for target in TARGETS:
        pack = msgspec.convert({**PACK, "target": target}, type=Pack)
        assert msgspec.json.decode(msgspec.json.encode(pack), type=Pack).target == target


@pytest.mark.parametrize("field", ["kind", "source", "tokens"])
def test_a_pack_item_without_kind_source_or_tokens_is_refused(field: str):
    item = {key: value for key, value in PACK["items"][0].items() if key != field}
    with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
        msgspec.convert(item, type=PackItem)


def test_a_pack_item_may_stand_for_content_by_hash_and_refs():
    item = PackItem(kind="refs", source="context/refs.jsonl", tokens=12, hash="sha256:00", refs=("swap:a", "tool:b"))
    assert msgspec.json.decode(msgspec.json.encode(item), type=PackItem) == item


@pytest.mark.parametrize(
    ("type_", "document"),
    [
        (Fact, {"id": "f1", "text": "A.", "source": "messages:1", "compaction": "ev-9"}),
        (Decision, {"id": "d1", "decision": "B.", "source": "messages:1", "compaction": "ev-9"}),
        (Todo, {"id": "t1", "text": "C.", "source": "messages:1", "done": True, "compaction": "ev-9"}),
        (ErrorRecord, {"id": "e1", "error": "D.", "source": "messages:1", "resolution": "E.", "compaction": "ev-9"}),
        (Summary, {"text": "F.", "source": "messages:1-9", "compaction": "ev-9"}),
        (
            Ref,
            {
                "id": "r1",
                "path": "a.md",
                "kind": "file",
                "summary": "G.",
                "source": "messages:4",
                "hash": "sha256:00",
                "tokens": 12,
                "compaction": "ev-9",
            },
        ),
        (
            Pack,
            {
                "schema_version": "1",
                "session": "default",
                "agent": "coder",
                "budget_tokens": 100,
                "items": [
                    {
                        "kind": "custom",
                        "source": "blob/00",
                        "tokens": 3,
                        "context_kind": "browser_state",
                        "item_ref": "item-1",
                        "hash": "sha256:00",
                        "refs": ["swap:a"],
                    }
                ],
                "target": "reviewer",
                "context_id": "ctx-1",
                "token_method": "o200k_base",
                "prefix_sha256": "00",
                "stable_tokens": 2,
                "expected_cached_tokens": 1,
            },
        ),
    ],
)
def test_what_a_record_adds_to_the_examples_is_kept(type_: type[msgspec.Struct], document: dict[str, Any]):
    record = msgspec.json.decode(json.dumps(document), type=type_)
    assert json.loads(msgspec.json.encode(record)) == document


def test_an_unresolved_error_has_no_resolution_on_its_line():
    record = ErrorRecord(id="e1", error="The build failed.", source="messages:7")
    assert msgspec.json.encode(record) == b'{"id":"e1","error":"The build failed.","source":"messages:7"}'
    resolved = msgspec.structs.replace(record, resolution="The missing header was added.")
    assert msgspec.json.decode(msgspec.json.encode(resolved), type=ErrorRecord) == resolved


def test_open_work_is_not_done_until_it_says_so():
    todo = Todo(id="t1", text="Update the tracker.", source="messages:9")
    assert not todo.done
    assert b"done" not in msgspec.json.encode(todo)
    assert b'"done":true' in msgspec.json.encode(msgspec.structs.replace(todo, done=True))


def test_a_summary_is_the_task_with_its_source():
    assert msgspec.json.encode(Summary(text="Moving the launch.", source="messages:1-9")) == (
        b'{"text":"Moving the launch.","source":"messages:1-9"}'
    )


bullets = st.lists(st.text(), max_size=3).map(tuple)


@given(st.builds(ContextDoc, st.text(), bullets, bullets, bullets, bullets))
def test_a_context_doc_survives_writing_and_reading(document: ContextDoc):
    assert msgspec.json.decode(msgspec.json.encode(document), type=ContextDoc) == document


def test_a_context_doc_has_the_five_sections_of_the_template_in_order():
    assert ContextDoc.__struct_fields__ == ("task", "decisions", "facts", "pending", "errors")
