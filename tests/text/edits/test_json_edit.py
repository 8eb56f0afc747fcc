"""Values in a JSON text: set and removed, every other byte unchanged."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daypack.text.edits.json_edit import insert, look_up, parse, remove

KEYS = ("plugins", "x@y")

NAMES = ["x@y", "a", "é", 'quo"te', "//", "/*", ",}"]
names = st.sampled_from(NAMES)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "// no", "/* no */", ',}"\\', "\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def joined(*objects: dict[str, Any]) -> dict[str, Any]:
    return {key: value for each in objects for key, value in each.items()}


documents = st.builds(
    joined,
    st.dictionaries(st.sampled_from(NAMES[:3]), values, max_size=2),
    st.dictionaries(st.just("plugins"), st.dictionaries(names, values, max_size=2), max_size=1),
    st.dictionaries(st.sampled_from(NAMES[3:]), values, max_size=2),
)
forms: list[Callable[[Any], str]] = [
    json.dumps,
    lambda document: json.dumps(document, indent=2) + "\n",
    lambda document: json.dumps(document, indent="\t", ensure_ascii=False),
    lambda document: json.dumps(document, indent=4).replace("\n", "\r\n"),
    lambda document: json.dumps(document, separators=(" ,\n", "\n:")) + "\n\n",
    lambda document: "\ufeff" + json.dumps(document, indent=1),
]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents, st.sampled_from(forms), values, st.booleans())
def test_a_value_is_set_and_the_rest_of_the_text_stays(
    document: dict[str, Any], form: Callable[[Any], str], value: object, comments: bool
) -> None:
    text = form(document)
    changed = insert(text, KEYS, value, comments=comments)
    assert parse(changed) == {**document, "plugins": {**document.get("plugins", {}), "x@y": value}}
    assert insert(changed, KEYS, value, comments=comments) == changed
    if "x@y" not in document.get("plugins", {}):  # an insertion at one place
        at = next(at for at in range(len(text) + 1) if changed[: at + 1] != text[: at + 1] or at == len(text))
        assert changed.endswith(text[at:])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents, st.sampled_from(forms), values)
def test_what_was_set_can_be_removed(document: dict[str, Any], form: Callable[[Any], str], value: object) -> None:
    text = form(document)
    removed = remove(insert(text, KEYS, value), KEYS)
    rest = {key: other for key, other in document.get("plugins", {}).items() if key != "x@y"}
    assert parse(removed) == {**document, "plugins": rest}
    pruned = remove(insert(text, KEYS, value), KEYS, pruned=1)
    assert parse(pruned) == {
        key: other for key, other in {**document, "plugins": rest}.items() if key != "plugins" or rest
    }


@pytest.mark.parametrize(
    "text", ["", "\n", "{}", "{\n}\n", '{\n    "a": 1\n}\n', '{"a": {"b": 1}}', '{\r\n  "a": 1\r\n}\r\n']
)
def test_removing_what_was_inserted_leaves_the_document_as_it_was(text: str) -> None:
    changed = remove(insert(text, KEYS, True), KEYS, pruned=1)
    assert parse(changed) == parse(text)


def test_a_new_member_has_the_indentation_and_line_ends_of_the_file() -> None:
    assert insert('{\r\n\t"a": 1\r\n}', KEYS, True) == (
        '{\r\n\t"a": 1,\r\n\t"plugins": {\r\n\t\t"x@y": true\r\n\t}\r\n}'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  // mine\n  "a": 1 // one, two\n}', '{\n  // mine\n  "a": 1, // one, two\n  "b": 2\n}'),
        ('{\n  "a": 1, // one\n}', '{\n  "a": 1, // one\n  "b": 2\n}'),
        ('{\n  "a": 1, /* one */\n  // end\n}', '{\n  "a": 1, /* one */\n  "b": 2\n  // end\n}'),
        ('{"a": [1, 2,], }', '{"a": [1, 2,],\n  "b": 2, }'),
        ("{ // nothing\n}", '{ // nothing\n  "b": 2\n}'),
        ("// first\n{}", '// first\n{\n  "b": 2\n}'),
        ('{"a": "http://x", "c": "/* */"}', '{"a": "http://x", "c": "/* */",\n  "b": 2}'),
    ],
)
def test_comments_and_trailing_commas_stay(before: str, after: str) -> None:
    assert insert(before, ("b",), 2, comments=True) == after
    assert parse(remove(after, ("b",), comments=True), comments=True) == parse(before, comments=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}', '{\n  "a": 1,\n  "c": 3\n}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1\n}'),
        ('{\n  "b": 2\n}', "{}"),
        ('{\n  "a": 1, // one\n  "b": 2, // two\n  "c": 3\n}', '{\n  "a": 1, // one // two\n  "c": 3\n}'),
        ('{\n  "a": 1, // one\n  "b": 2\n}', '{\n  "a": 1 // one\n}'),
        ('{\n  "a": 1,\n  "b": 2,\n}', '{\n  "a": 1,\n}'),
        ('{\n  // mine\n  "b": 2\n}', "{\n  // mine\n}"),
        ('{\n  "a": 1\n}', '{\n  "a": 1\n}'),
    ],
)
def test_a_removed_member_takes_its_line_and_its_comma_with_it(before: str, after: str) -> None:
    assert remove(before, ("b",), comments=True) == after


def test_an_object_that_others_use_is_not_pruned() -> None:
    assert parse(remove('{"plugins": {"x@y": true, "z": 1}}', KEYS, pruned=1)) == {"plugins": {"z": 1}}
    assert parse(remove('{"a": {"plugins": {"x@y": true}}}', ("a", *KEYS), pruned=1)) == {"a": {}}


@pytest.mark.parametrize(
    "text", ["{", "[]", "1", '{"plugins": []}', '{"plugins": {}} x', '{"a": 1, // no\n}', '{"a": 1,}']
)
def test_a_text_that_is_no_object_or_has_another_value_on_the_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        insert(text, KEYS, True)


def test_a_key_that_appears_twice_is_not_removed_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        remove('{"b": 1, "b": 2}', ("b",))


def test_a_value_is_found_under_its_keys() -> None:
    assert look_up({"a": {"b": 1}}, ("a", "b")) == 1
    assert look_up({"a": 1}, ("a", "b")) is None
