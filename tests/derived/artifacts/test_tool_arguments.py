"""Tool calls of every family: which files, commands and addresses their arguments name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.artifacts.tool_arguments import TOOL_SHAPES, ToolShape, fold, shape_of, speaks_for_itself
from daypack.derived.artifacts.tool_calls import read_action, read_call, tidy_path, urls_in


def touches(name: str, arguments: Any) -> list[tuple[str, str]]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return [(one.verb, one.path) for one in read_call(name, text).touches]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        # Claude Code
        ("Read", {"file_path": "/w/a.py", "offset": 3, "limit": 5}, [("read", "/w/a.py")]),
        ("Write", {"file_path": "/w/a.py", "content": "x"}, [("written", "/w/a.py")]),
        ("Edit", {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"}, [("written", "/w/a.py")]),
        ("MultiEdit", {"file_path": "/w/a.py", "edits": []}, [("written", "/w/a.py")]),
        ("NotebookEdit", {"notebook_path": "/w/n.ipynb", "new_source": "1"}, [("written", "/w/n.ipynb")]),
        ("Glob", {"pattern": "**/*.py", "path": "/w/src"}, [("listed", "/w/src")]),
        ("Glob", {"pattern": "config/dev.exs"}, [("listed", "config/dev.exs")]),
        ("Grep", {"pattern": "a.b/c", "path": "/w", "glob": "*.py"}, [("listed", "/w")]),
        ("LS", {"path": "/w"}, [("listed", "/w")]),
        ("Task", {"prompt": "read file /w/a.py", "description": "look"}, []),
        ("TodoWrite", {"todos": [{"content": "edit a/b.py"}]}, []),
        # Codex
        ("read_file", {"file_path": "/w/a.rs", "offset": 1, "limit": 200}, [("read", "/w/a.rs")]),
        ("list_dir", {"dir_path": "/w"}, [("listed", "/w")]),
        ("view_image", {"path": "shot.png"}, [("read", "shot.png")]),
        ("update_plan", {"plan": [{"step": "a", "status": "done"}]}, []),
        # The filesystem server of MCP
        ("mcp__filesystem__read_file", {"path": "/w/a"}, [("read", "/w/a")]),
        ("mcp__filesystem__read_multiple_files", {"paths": ["/w/a", "/w/b"]}, [("read", "/w/a"), ("read", "/w/b")]),
        ("mcp__filesystem__write_file", {"path": "/w/a", "content": ""}, [("written", "/w/a")]),
        ("mcp__filesystem__edit_file", {"path": "/w/a", "edits": []}, [("written", "/w/a")]),
        ("mcp__filesystem__list_directory", {"path": "/w"}, [("listed", "/w")]),
        ("mcp__filesystem__create_directory", {"path": "/w/d"}, [("created", "/w/d")]),
        (
            "mcp__filesystem__move_file",
            {"source": "/w/a", "destination": "/w/b"},
            [("deleted", "/w/a"), ("created", "/w/b")],
        ),
        (
            "mcp__github__push_files",
            {"owner": "o", "files": [{"path": "a.md", "content": "1"}, {"path": "b.md", "content": "2"}]},
            [("written", "a.md"), ("written", "b.md")],
        ),
        # Other agents
        ("str_replace_editor", {"command": "view", "path": "/w/a.py"}, [("read", "/w/a.py")]),
        ("str_replace_editor", {"command": "create", "path": "/w/a.py", "file_text": "x"}, [("created", "/w/a.py")]),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py"}, [("written", "a.py")]),
        ("read_file", {"args": {"file": [{"path": "src/a.ts"}]}}, [("read", "src/a.ts")]),
        ("write_to_file", {"path": "a.ts", "content": ""}, [("written", "a.ts")]),
        ("edit_file", {"target_file": "a.ts", "code_edit": "…"}, [("written", "a.ts")]),
        ("delete_file", {"target_file": "a.ts"}, [("deleted", "a.ts")]),
        ("functions.read_file", {"absolute_path": "/w/a"}, [("read", "/w/a")]),
        ("edit", {"filePath": "/w/a.ts", "oldString": "a", "newString": "b"}, [("written", "/w/a.ts")]),
        # SWE-agent with tools
        ("open", {"path": "setup.py", "line_number": 3}, [("read", "setup.py")]),
        ("create", {"filename": "r.py"}, [("created", "r.py")]),
        ("find_file", {"file_name": "fields.py", "dir": "src"}, [("listed", "fields.py"), ("listed", "src")]),
        # Nobody has listed these
        ("fancy_save_report", {"output_file": "out/report.pdf"}, [("written", "out/report.pdf")]),
        ("mcp__db__inspect", {"dbPath": "data/x.sqlite", "query": "select 1"}, [("read", "data/x.sqlite")]),
        ("removeThing", {"filepath": "x/y"}, [("deleted", "x/y")]),
        ("convert", {"profile": "fast mode", "file": "a.mov"}, [("read", "a.mov")]),
    ],
)
def test_a_call_names_its_files(name: str, arguments: Any, expected: list[tuple[str, str]]) -> None:
    assert touches(name, arguments) == expected


PATCH = """*** Begin Patch
*** Add File: docs/new.md
+# New
+text
*** Update File: src/a.py
@@ def f():
-    return 1
+    return 2
*** Update File: src/old name.py
*** Move to: src/new name.py
@@
-a
+b
*** Delete File: gone.txt
*** End Patch"""
PATCHED = [
    ("created", "docs/new.md"),
    ("written", "src/a.py"),
    ("deleted", "src/old name.py"),
    ("created", "src/new name.py"),
    ("deleted", "gone.txt"),
]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("apply_patch", {"input": PATCH}),
        ("apply_patch", PATCH),
        ("apply_patch", {"patch": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH]}),
        ("local_shell", {"type": "exec", "command": ["apply_patch", PATCH]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
        ("exec_command", {"cmd": f"cd /w && apply_patch <<'PATCH'\n{PATCH}\nPATCH\n", "workdir": "/w"}),
        ("Bash", {"command": f"bash -lc \"apply_patch <<'EOF'\n{PATCH}\nEOF\n\""}),
    ],
)
def test_the_paths_of_a_patch_are_read_wherever_it_stands(name: str, arguments: Any) -> None:
    assert touches(name, arguments) == PATCHED


def test_a_unified_diff_names_new_deleted_and_renamed_files() -> None:
    diff = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n--- not a name\n+++ neither\n"
        "--- /dev/null\n+++ b/new.py\t2026\n--- a/old.py\n+++ /dev/null\nrename from p.py\nrename to q.py\n"
    )
    found = touches("apply_patch", {"input": diff.replace("--- not a name\n+++ neither\n", "-- a\n+ b\n")})
    assert found == [
        ("written", "x.py"),
        ("created", "new.py"),
        ("deleted", "old.py"),
        ("deleted", "p.py"),
        ("created", "q.py"),
    ]


def test_the_text_of_an_added_file_is_known() -> None:
    first = read_call("apply_patch", json.dumps({"input": PATCH})).touches[0]
    assert first.content == "# New\ntext\n"


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"file_path": "a", "offset": 10, "limit": 5}, (10, 14)),
        ({"file_path": "a", "limit": 20}, (1, 20)),
        ({"file_path": "a", "offset": "7"}, (7, 0)),
        ({"target_file": "a", "start_line_one_indexed": 3, "end_line_one_indexed_inclusive": 9}, (3, 9)),
        ({"path": "a", "view_range": [4, 8]}, (4, 8)),
        ({"file_path": "a", "offset": True, "limit": -4}, (0, 0)),
    ],
)
def test_a_call_for_a_part_of_a_file_tells_the_lines(arguments: Any, lines: tuple[int, int]) -> None:
    call = read_call("read_file", json.dumps(arguments))
    assert [(one.start, one.stop) for one in call.touches] == [lines]
    assert call.limited


@pytest.mark.parametrize(
    ("action", "expected", "opened"),
    [
        ('open "src/fields.py" 1474', [("read", "src/fields.py")], False),
        ("create reproduce.py\n", [("created", "reproduce.py")], False),
        ("edit 4:4\ndef f():\nend_of_edit\n", [], True),
        ("scroll_down", [], True),
        ("goto 120", [], True),
        ("rm reproduce.py", [("deleted", "reproduce.py")], False),
    ],
)
def test_a_line_of_an_agent_without_tools_is_read(
    action: str, expected: list[tuple[str, str]], *, opened: bool
) -> None:
    call = read_action(action)
    assert [(one.verb, one.path) for one in call.touches] == expected
    assert call.opened is opened


@pytest.mark.parametrize(
    ("name", "arguments", "urls"),
    [
        ("WebFetch", {"url": "https://a.org/x", "prompt": "https://b.org"}, ("https://a.org/x",)),
        ("Bash", {"command": "curl -s https://a.org/x?q=1 -o out.json"}, ("https://a.org/x?q=1",)),
        ("mcp__web__get", {"uri": "https://a.org"}, ("https://a.org",)),
        ("Read", {"file_path": "https://a.org"}, ("https://a.org",)),
    ],
)
def test_a_call_names_addresses(name: str, arguments: Any, urls: tuple[str, ...]) -> None:
    assert read_call(name, json.dumps(arguments)).urls == urls


def test_an_address_loses_the_punctuation_around_it() -> None:
    text = "See (https://a.org/x), [b](https://b.org/y_(z)). Or https://c.org! Or https://a.org/x again."
    assert urls_in(text, 10) == ["https://a.org/x", "https://b.org/y_(z)", "https://c.org"]
    assert urls_in(text, 2) == ["https://a.org/x", "https://b.org/y_(z)"]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        (' "src/a.py" ', "src/a.py"),
        ("`src/a.py`", "src/a.py"),
        ("src/a.py:12", "src/a.py"),
        ("src/a.py:12:5", "src/a.py"),
        ("src/a.py:12-40", "src/a.py"),
        ("src/a.py#L12-L40", "src/a.py"),
        ("C:\\x\\a.py", "C:\\x\\a.py"),
        ("log-12:30", "log-12:30"),
        ("a\ud800.py", "a?.py"),
    ],
)
def test_a_path_stays_as_it_was_written_but_for_quotes_and_lines(written: str, path: str) -> None:
    assert tidy_path(written) == path


@pytest.mark.parametrize(
    "arguments",
    [
        '{"file_path": "/w/a.py", "content": "cut off',
        '{"file_path": "/w/a.py", "old_string": "x\\',
        '{"file_path":"\\u002fw/a.py","content":"\ud800"}',
        '{"file_path": "/w/a.py", "limit": 1e999}}}',
    ],
)
def test_broken_arguments_still_name_their_file(arguments: str) -> None:
    assert [path for _, path in touches("Write", arguments)] == ["/w/a.py"]


@pytest.mark.parametrize(
    "arguments", ["", "null", "[]", "3", '"x"', "{", '{"a":', "[" * 5000, '{"file_path": 7}', "\x00"]
)
@pytest.mark.parametrize("name", ["Read", "Bash", "apply_patch", "WebFetch", "unknown", "", "__", "edit"])
def test_odd_arguments_name_nothing_and_raise_nothing(name: str, arguments: str) -> None:
    assert read_call(name, arguments).touches == ()


def test_the_table_can_be_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"sheet": "q3.ods", "cells": {}}
    assert touches("spreadsheet_fill", arguments) == []
    monkeypatch.setitem(TOOL_SHAPES, fold("Spreadsheet-Fill"), ToolShape("written", paths=("sheet",)))
    assert touches("spreadsheet_fill", arguments) == [("written", "q3.ods")]
    assert touches("mcp__office__spreadsheetFill", arguments) == [("written", "q3.ods")]


def test_tools_that_report_are_told_from_those_that_show_something() -> None:
    assert speaks_for_itself("deploy_stage", names_files=False)
    assert speaks_for_itself("mcp__ci__run_tests", names_files=True)
    assert not speaks_for_itself("summon_text", names_files=True)
    assert not any(
        speaks_for_itself(name, names_files=False) for name in ("Read", "search_pages", "mcp__fs__read_file")
    )


def test_every_row_is_found_under_its_own_name() -> None:
    for name, shape in TOOL_SHAPES.items():
        assert name == fold(name)
        assert shape_of(name) is shape
        assert shape_of(f"mcp__server__{name}") is shape


PATH = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30).filter(
    lambda text: "://" not in text and tidy_path(text) == text and text.strip("[]\"'`") == text
)


@given(path=PATH, name=st.sampled_from(["Read", "Write", "Edit", "read_file", "mcp__x__write_file", "create_file"]))
def test_any_path_a_file_tool_names_is_there(path: str, name: str) -> None:
    assert [found for _, found in touches(name, {"file_path": path})] == [path]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(sorted(TOOL_SHAPES)) | st.text(max_size=20)
KEYS = st.sampled_from(
    ["path", "file_path", "command", "cmd", "input", "edits", "url", "files", "offset", "view_range"]
)


@given(name=NAMES, fields=st.dictionaries(KEYS, VALUES, max_size=5))
def test_arguments_of_any_type_raise_nothing(name: str, fields: dict[str, Any]) -> None:
    read_call(name, json.dumps(fields))


@given(
    name=NAMES,
    arguments=st.text(st.characters()) | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")),
)
def test_arguments_that_are_no_json_raise_nothing(name: str, arguments: str) -> None:
    read_call(name, arguments)
    read_call(name, f'{{"file_path": "{arguments}')
    read_action(arguments)
