"""The specification of envelopes says what the code does: the same rules, objects and points, and a right example."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from docs.example_runs import fences, read
from turn.conformance.documents import simple_digest

from daypack.cli.main import run
from daypack.turn.conformance.objects import LISTS
from daypack.turn.conformance.rules.rulebook import RULES
from daypack.turn.conformance.rules.visibility import POINTS
from daypack.types.canonical import canonical, digest_json
from daypack.types.context import OBJECTS, SCHEMA_VERSION

PAGE = read("docs/envelope.md")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_the_page_lists_the_rules_of_the_code_with_their_sentences_and_an_example_each() -> None:
    listed = [row for row in ROWS if re.fullmatch(r"`[a-z]+\.[a-z]+`", row[0])]
    assert [(rule.strip("`"), sentence) for rule, sentence, _ in listed] == [(rule.id, rule.sentence) for rule in RULES]
    assert all(example for _, _, example in listed)


def test_the_worked_example_has_the_canonical_form_and_the_digest_that_the_page_states() -> None:
    blocks = fences(PAGE)
    [example] = [json.loads(block.text) for block in blocks if block.language == "json" and "été" in block.text]
    [form] = [block.text.rstrip("\n") for block in blocks if block.text.startswith("{") and block.language == "text"]
    assert canonical(example).decode() == form
    assert PAGE.count(digest_json(example)) == 1
    assert simple_digest({"text": "Größe"}) == digest_json({"text": "Größe"})


def test_the_page_lists_the_thirteen_objects_with_their_ids_and_lists() -> None:
    listed = {row[0].strip("`"): row[1].strip("`") for row in ROWS if row[0].strip("`") in OBJECTS}
    assert list(listed) == list(OBJECTS)
    for name, field in listed.items():
        assert field in OBJECTS[name].__struct_fields__
    for name, (kind, field) in LISTS.items():
        assert listed[kind] == field
        assert f"| `{kind}` | `{field}` | `{name}` |" in PAGE
    assert f"version `{SCHEMA_VERSION}`" in PAGE


def test_the_page_lists_who_sees_an_injection_point() -> None:
    listed: dict[str, tuple[str, ...]] = {}
    for row in ROWS:
        points = re.findall(r"`(\w+)`", row[0])
        if set(points) & set(POINTS):
            listed |= dict.fromkeys(points, tuple(re.findall(r"`(\w+)`", row[1])))
    assert listed == POINTS


def field_type(schema: dict[str, Any]) -> str:
    """The value of a field in words, from its JSON Schema."""
    if "anyOf" in schema:
        return " or ".join(
            dict.fromkeys(field_type(member) for member in schema["anyOf"] if member != {"type": "null"})
        )
    if "$ref" in schema:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", schema["$ref"].rpartition("/")[2]).lower()
    names = {"string": "text", "array": "list", "boolean": "true or false", "integer": "whole number"}
    stated: str = schema.get("type", "any value")
    name = names.get(stated, stated)
    if schema.get("format") == "date-time":
        return "time"
    inner = field_type(schema["items"]) if "items" in schema else ""
    return f"list of {inner}" if inner and inner != "any value" else name


def field_table(name: str) -> str:
    """The table of an object's fields, in the order of the type."""
    schema = json.loads(read(f"schemas/{name}.json"))
    lines = [f"### {name}", "", "| field | value | |", "|---|---|---|"]
    for field in OBJECTS[name].__struct_fields__:
        needed = "required" if field in schema["required"] else ""
        lines.append(f"| `{field}` | {field_type(schema['properties'][field])} | {needed} |")
    return "\n".join(lines)


@pytest.mark.parametrize("name", OBJECTS)
def test_the_page_has_the_fields_of_every_object_as_the_schemas_have_them(name: str) -> None:
    assert f"{field_table(name)}\n" in PAGE


def test_the_minimal_document_conforms_without_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [minimal] = [block.text for block in fences(PAGE) if block.language == "json" and "context_id" in block.text]
    path = tmp_path / "minimal.json"
    path.write_text(minimal, encoding="utf-8")
    assert run(("conform", str(path), "--json")) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["conforms"], printed["warnings"]) == (True, [])
    assert "digest.envelope" in [verdict["rule"] for verdict in printed["verdicts"] if verdict["outcome"] == "passed"]
