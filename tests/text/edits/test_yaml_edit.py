"""Settings in YAML texts: set, listed and taken out, with every other byte as it was."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from daypack.text.edits import yaml_edit

ENGINE, ENABLED = ("context", "engine"), ("plugins", "enabled")
SETTINGS = """# my settings
model:
  default: gpt-5   # the good one
  base_url: "http://localhost:1/v1"  # here

plugins:
  # which
  enabled:
    - disk-cleanup # daily
    - "other"
  disabled: []
agent:
  notes: |
    context:
      engine: not this
terminal: {backend: local}
"""


def test_an_entry_is_added_and_everything_else_stays() -> None:
    changed = yaml_edit.insert(SETTINGS, ENGINE, "daypack")
    assert changed == SETTINGS + "context:\n  engine: daypack\n"
    assert yaml_edit.remove(changed, ENGINE, pruned=1) == SETTINGS


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    text = "context:\n    other: 1\n    engine: compressor  # default\nlast: 2\n"
    changed = yaml_edit.insert(text, ENGINE, "daypack")
    assert changed == "context:\n    other: 1\n    engine: daypack  # default\nlast: 2\n"
    assert yaml_edit.insert(changed, ENGINE, "compressor") == text


def test_an_item_joins_a_list_in_the_form_that_the_list_has() -> None:
    changed = yaml_edit.add_item(SETTINGS, ENABLED, "daypack")
    assert '    - "other"\n    - daypack\n  disabled' in changed
    assert yaml_edit.remove_item(changed, ENABLED, "daypack") == SETTINGS
    flow = "plugins:\n  enabled: [a, b] # x\n"
    assert yaml_edit.add_item(flow, ENABLED, "daypack") == "plugins:\n  enabled: [a, b, daypack] # x\n"
    assert yaml_edit.add_item("plugins:\n  enabled: []\n", ENABLED, "daypack") == "plugins:\n  enabled: [daypack]\n"
    at_the_key = "plugins:\n  enabled:\n  - a\n  x: 1\n"
    assert yaml_edit.add_item(at_the_key, ENABLED, "b") == "plugins:\n  enabled:\n  - a\n  - b\n  x: 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "plugins: {enabled: [a]}\n",
        "plugins: &p\n  enabled: [a]\n",
        "plugins:\n  enabled: *names\n",
        "plugins:\n  <<: *base\n  enabled: [a]\n",
        "plugins:\n  enabled: [a,\n    b]\n",
        "plugins:\n  enabled:\n    - {name: a}\n",
        "plugins:\n  enabled:\n    - name: a\n",
        "plugins:\n\tenabled: [a]\n",
        "plugins:\n  enabled: [a]\nplugins:\n  enabled: [b]\n",
        "a: 1\n---\nplugins:\n  enabled: [a]\n",
        "plugins:\n  - a\n  - b\n",
        "plugins:\n  enabled: a\n",
        'x: "two\nplugins: [a]"\n',
        "{plugins: {enabled: [a]}}\n",
        "plugins:\n  enabled: !!set [a]\n",
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        yaml_edit.add_item(text, ENABLED, "daypack")


@pytest.mark.parametrize(
    "text", ["", "# only a comment\n", "plugins:\n", "plugins: {}\n", "plugins: ~ # none\n", "a: 1"]
)
def test_a_list_is_made_where_there_is_none(text: str) -> None:
    changed = yaml_edit.add_item(text, ENABLED, "daypack")
    assert yaml.safe_load(changed)["plugins"] == {"enabled": ["daypack"]}
    assert yaml_edit.look_up(changed, ENABLED) == ["daypack"]


def test_windows_line_ends_stay() -> None:
    text = "context:\r\n  engine: compressor\r\n"
    assert yaml_edit.insert(text, ENGINE, "daypack") == "context:\r\n  engine: daypack\r\n"


NAMES = st.text("abcxyz", min_size=1, max_size=4)
SCALARS = st.one_of(NAMES, st.integers(), st.booleans(), st.none(), st.text("ab :#-'\"\n[]{}&*!|>é", max_size=12))
SECTIONS = st.dictionaries(NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=3)
DOCUMENTS = st.dictionaries(NAMES, st.one_of(SCALARS, SECTIONS), max_size=4)


@given(DOCUMENTS, st.one_of(st.none(), SECTIONS), st.one_of(st.none(), st.lists(NAMES, max_size=3)), st.booleans())
def test_any_settings_are_edited_as_the_format_says_or_refused(
    document: dict[str, object], section: dict[str, object] | None, enabled: list[str] | None, flow: bool
) -> None:
    if section is not None:
        document = {**document, "plugins": {**section, **({} if enabled is None else {"enabled": enabled})}}
    text = yaml.safe_dump(document, default_flow_style=None if flow else False, sort_keys=False) if document else ""
    try:
        changed = yaml_edit.insert(yaml_edit.add_item(text, ENABLED, "daypack"), ENGINE, "daypack")
    except ValueError:
        return
    found = yaml.safe_load(changed)
    names = [str(name) for name in enabled or []] if section is not None else []
    before = {key: value for key, value in document.items() if key != "plugins"}
    assert {key: value for key, value in found.items() if key not in ("plugins", "context")} == before
    assert found["plugins"] == {**(section or {}), "enabled": [*names, "daypack"]}
    assert found["context"] == {"engine": "daypack"}
    back = yaml_edit.remove(yaml_edit.remove_item(changed, ENABLED, "daypack"), ENGINE, pruned=1)
    rest: dict[str, object] = yaml.safe_load(back) or {}
    assert {key: value for key, value in rest.items() if key != "plugins"} == before
