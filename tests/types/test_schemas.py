import json
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from daypack.types.context import OBJECTS, ContextItem
from daypack.types.records import Pack
from daypack.types.snapshot import Snapshot
from tools.schemas import DOCUMENTS, FOLDER, main, name_of, outdated, render, schema_of, write

Document = type[msgspec.Struct]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)

SIMPLE: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.AnyType: json_values,
}


@cache
def validator_of(document: Document) -> Any:
    return jsonschema.Draft202012Validator(schema_of(document))


def valid(document: Document, value: object) -> bool:
    return bool(validator_of(document).is_valid(value))


def values(type_: inspect.Type) -> st.SearchStrategy[Any]:
    """Any value of a field of this type."""
    match type_:
        case inspect.Metadata(type=inner):
            return values(inner)
        case inspect.StructType():
            return instances(type_)
        case inspect.UnionType(types=types):
            return st.one_of([values(inner) for inner in types])
        case inspect.LiteralType(values=members):
            return st.sampled_from(members)
        case inspect.VarTupleType(item_type=item, min_length=low):
            return st.lists(values(item), min_size=low or 0, max_size=2).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key), values(value), max_size=2)
        case inspect.StrType(min_length=low):
            return st.text(min_size=low or 0, max_size=6)
        case inspect.IntType(ge=low, le=high):
            return st.integers(-(2**53) if low is None else low, 2**53 if high is None else high)
        case inspect.FloatType(ge=low, le=high):
            return st.floats(-1e6 if low is None else low, 1e6 if high is None else high)
        case _:
            return SIMPLE[type(type_)]


def instances(type_: inspect.StructType) -> st.SearchStrategy[msgspec.Struct]:
    """Any instance of a document, with any of its optional fields."""
    required = {field.name: values(field.type) for field in type_.fields if field.required}
    # Deferred, so that an envelope does not draw every field of every record each time.
    optional = {field.name: st.deferred(lambda f=field: values(f.type)) for field in type_.fields if not field.required}
    some = st.lists(st.sampled_from(sorted(optional)), unique=True, max_size=4) if optional else st.just([])
    return some.flatmap(
        lambda names: st.fixed_dictionaries({**required, **{name: optional[name] for name in names}}).map(
            lambda arguments: type_.cls(**arguments)
        )
    )


def documents(type_: Document) -> st.SearchStrategy[msgspec.Struct]:
    return instances(cast("inspect.StructType", inspect.type_info(type_)))


def test_the_schema_files_are_what_the_types_say_now():
    assert outdated(FOLDER, render()) == (), "run: python -m tools.schemas"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_a_schema_is_valid_and_says_what_it_is_of(document: Document):
    schema = schema_of(document)
    validator: Any = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:daypack:schema:{name_of(document)}"
    assert schema["title"] == document.__name__
    assert schema["description"].splitlines()[0] == (document.__doc__ or "").splitlines()[0]
    assert "\n    " not in schema["description"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_document_survives_writing_and_reading_and_is_valid_until_a_required_field_is_gone(
    document: Document, data: st.DataObject
):
    value = data.draw(documents(document))
    written = msgspec.json.encode(value)
    assert msgspec.json.decode(written, type=document) == value
    fields: dict[str, Any] = json.loads(written)
    assert valid(document, fields)
    for name in validator_of(document).schema["required"]:
        assert not valid(document, {key: field for key, field in fields.items() if key != name})


@pytest.mark.requirement("G19")
@pytest.mark.parametrize("name", OBJECTS)
def test_the_schema_of_each_of_the_thirteen_objects_requires_a_schema_version(name: str):
    assert name_of(OBJECTS[name]) == name
    assert schema_of(OBJECTS[name])["required"][0] == "schema_version"


def test_the_schema_requires_a_schema_version_of_the_records_inside_an_envelope_too():
    envelope = schema_of(OBJECTS["context_envelope"])
    inside = {type_.__name__ for name, type_ in OBJECTS.items() if name != "context_envelope"}
    assert inside <= set(envelope["$defs"])
    assert all("schema_version" in envelope["$defs"][name]["required"] for name in inside)


@pytest.mark.requirement("G19")
def test_an_envelope_needs_its_five_fields():
    assert set(schema_of(OBJECTS["context_envelope"])["required"]) == {
        "schema_version",
        "context_id",
        "scope",
        "lifecycle",
        "created_at",
    }


def test_the_vocabularies_of_an_item_are_open_in_the_schema():
    item = {
        "schema_version": "0.1.1",
        "item_id": "item-1",
        "context_kind": "tool_result",
        "content_mode": "hologram",
        "visibility": ["tool"],
    }
    assert valid(ContextItem, item)
    assert valid(ContextItem, {**item, "context_kind": "weather", "visibility": ["everybody"]})
    assert not valid(ContextItem, {**item, "context_kind": 5})
    assert not valid(ContextItem, {**item, "visibility": []})
    properties = schema_of(ContextItem)["properties"]
    assert "inline" in properties["content_mode"]["examples"]
    assert "tool_result" in properties["context_kind"]["examples"]
    assert "peer_agent" in properties["visibility"]["items"]["examples"]


def test_a_document_with_fields_nobody_here_knows_is_valid():
    pack: dict[str, Any] = {
        "session": "default",
        "agent": "coder",
        "budget_tokens": 32000,
        "items": [],
        "weather": "fair",
    }
    assert valid(Pack, pack)
    assert not valid(Pack, {**pack, "budget_tokens": -1})


def test_the_schema_of_a_snapshot_refuses_a_fourth_tier_and_a_version_that_is_a_string():
    runtime = {"round": 1, "workspace": "/w/", "datetime": "2026-02-25T10:00:00.000Z", "startup_at": 1700000000000}
    snapshot: dict[str, Any] = {
        "version": 2.3,
        "runtime": runtime,
        "memory": {"core": [], "working": [], "ephemeral": []},
    }
    assert valid(Snapshot, snapshot)
    assert not valid(Snapshot, {**snapshot, "version": "2.3"})
    assert not valid(Snapshot, {**snapshot, "memory": {"core": [], "longterm": []}})


def test_writing_adds_what_is_missing_corrects_what_differs_and_removes_what_is_stale(tmp_path: Path):
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "wrong.json").write_text("{}")
    (tmp_path / "README.md").write_text("mine")
    expected = {"new.json": "1\n", "wrong.json": "2\n"}
    assert outdated(tmp_path, expected) == ("new.json", "old.json", "wrong.json")
    assert write(tmp_path, expected) == ("new.json", "old.json", "wrong.json")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {**expected, "README.md": "mine"}
    assert write(tmp_path, expected) == ()


def test_every_schema_file_ends_with_a_newline_and_is_the_same_each_time():
    texts = render()
    assert len(texts) == len(DOCUMENTS)
    assert all(text.endswith("}\n") for text in texts.values())
    assert render() == texts


def test_the_check_names_each_outdated_file_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "fact.json").write_text("{}")
    (tmp_path / "pack.json").unlink()
    (tmp_path / "old.json").write_text("{}")
    capsys.readouterr()
    assert main(["--check"], tmp_path) == 1
    assert capsys.readouterr().err.splitlines() == [
        "out of date: fact.json",
        "out of date: old.json",
        "out of date: pack.json",
    ]
    assert (tmp_path / "fact.json").read_text() == "{}"
