"""Tables in a TOML text: set and removed, every other byte unchanged."""

import tomllib

import pytest

from daypack.text.edits.toml_edit import insert, look_up, parse, remove

KEYS = ("plugins", "x@y")
TEXTS = [
    "",
    "# only a comment",
    'model = "o"   # keep\n\n[tui]\na = """\n[no table]\n"""\n',
    'model = "o"\r\n\r\n[plugins.other]\r\nenabled = true\r\n',
    '[plugins.other]\nenabled = true\n\n[[hooks.Stop]]\ncommand = "x"\n\n[hooks.state."x@y:stop:0"]\ntrusted = "y"',
    "\ufeffa = 1\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_table_is_appended_and_removed_again_with_every_other_byte_unchanged(text: str) -> None:
    changed = insert(text, KEYS, {"enabled": True, "path": "/ä b"})
    assert changed.startswith(text)
    assert look_up(parse(changed), KEYS) == {"enabled": True, "path": "/ä b"}
    assert insert(changed, KEYS, {"enabled": True}) == changed
    removed = remove(changed, KEYS)
    assert removed.removesuffix("\r\n" if "\r\n" in text else "\n") == text.removesuffix("\n").removesuffix("\r")


def test_line_ends_of_the_file_are_kept() -> None:
    assert insert("a = 1\r\n", KEYS, {"b": 1}) == 'a = 1\r\n\r\n[plugins."x@y"]\r\nb = 1\r\n'


@pytest.mark.parametrize("header", ['[plugins."x@y"]', "[plugins.'x@y']", '[ plugins . "x@y" ] # mine'])
def test_a_field_of_a_table_is_changed_however_its_header_is_written(header: str) -> None:
    text = f"{header}\nenabled = false\nother = 1\n\n[z]\nenabled = false\n"
    assert insert(text, KEYS, {"enabled": True}) == f"{header}\nenabled = true\nother = 1\n\n[z]\nenabled = false\n"
    assert remove(text, KEYS) == "[z]\nenabled = false\n"


def test_the_tables_in_a_table_are_removed_with_it() -> None:
    text = 'a = 1\n\n[plugins."x@y"]\nb = 1\n\n[plugins."x@y".tools]\nc = 1\n\n[plugins."x@y2"]\nd = 1\n'
    assert remove(text, KEYS) == 'a = 1\n\n[plugins."x@y2"]\nd = 1\n'


@pytest.mark.parametrize(
    "text",
    ["a = [", 'plugins = "x"', "plugins = { other = {} }", '[plugins]\n"x@y" = 1', '[plugins]\n"x@y" = { a = 1 }'],
)
def test_a_form_that_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        insert(text, KEYS, {"enabled": True})


@pytest.mark.parametrize(
    "text",
    ['plugins."x@y".a = 1\n', '[plugins]\n"x@y" = { a = 1 }\n', 'b = """\n[plugins."x@y"]\n"""\n[plugins."x@y"]\n'],
)
def test_a_table_in_another_form_is_not_removed_in_part(text: str) -> None:
    with pytest.raises(ValueError, match="not supported"):
        remove(text, KEYS)
    assert tomllib.loads(text)


def test_a_text_without_the_table_is_left_as_it_is() -> None:
    assert remove("[plugins.other]\na = 1", KEYS) == "[plugins.other]\na = 1"


def test_comments_after_a_removed_table_stay() -> None:
    ours = "[a.b]\n# about c\nc = 1\n"
    assert remove(f"{ours}\n# about d\n\n# more\n[d]\ne = 2\n", ("a", "b")) == ("# about d\n\n# more\n[d]\ne = 2\n")
    assert remove(f"x = 1\n\n{ours}# the end\n", ("a", "b")) == "x = 1\n\n# the end\n"
    assert remove(f"x = 1\n\n{ours}\n# of a.b.f\n[a.b.f]\ng = 1\n", ("a", "b")) == "x = 1\n\n# of a.b.f\n"
