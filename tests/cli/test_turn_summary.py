"""How a turn is shown: names that stand for many items, columns, JSON for terminals."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from daypack.cli.terminal import table
from daypack.cli.turn_summary import group, print_document, short

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_many_of_a_family_have_one_name_and_few_keep_theirs() -> None:
    ids = ["identity", *(f"excerpt:{number}" for number in (12, 7, 840, 9)), "memory:a", "memory:b", "pin:excerpt:1"]
    assert group(ids) == [
        ("identity", [0]),
        ("4 excerpts from messages 7-840", [1, 2, 3, 4]),
        ("memory:a", [5]),
        ("memory:b", [6]),
        ("pin:excerpt:1", [7]),
    ]
    assert short([f"memory:{number}" for number in range(1000)]) == "1,000 memory entries"
    assert short([f"import:ctx-1:{number}" for number in "abcd"]) == "4 items of import:ctx-1"
    assert short(["import:ctx-1:a", "import:ctx-2:a", "excerpt:1"]) == "import:ctx-1:a, import:ctx-2:a, excerpt:1"


def test_an_id_that_comes_twice_is_named_twice() -> None:
    assert group(["a", "a"]) == [("a", [0]), ("a", [1])]


def test_columns_are_as_wide_as_their_widest_cell_and_lines_stay_lines() -> None:
    assert table(("n", "what"), [("1,000", "a\nb"), ("7", "\x1b[2J")], right=1) == [
        "    n  what",
        "1,000  a\\nb",
        "    7  \\x1b[2J",
    ]


def test_a_document_is_exact_in_a_pipe_and_escaped_on_a_terminal(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = '{"a":["\u202e",1]}\n'.encode()
    print_document(data)
    assert capfdbinary.readouterr().out == data
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_document(data)
    assert capfdbinary.readouterr().out == b'{\n  "a": [\n    "\\u202e",\n    1\n  ]\n}\n'


def test_a_reader_that_goes_away_is_no_error(command: Command, home: str) -> None:
    command("append", "talk", "words " * 50_000)
    program = f"{sys.executable} -m daypack"
    for args in ("pack talk --dialect openai --budget 200000", "export talk", "pack talk --json"):
        line = f"{program} {args} --home {home} | head -c 1"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env=dict(os.environ))
        assert (done.stdout, done.stderr) == ("{", ""), args


def test_the_json_of_a_turn_is_one_line(command: Command) -> None:
    command("append", "talk", "hello")
    printed = command("pack", "talk", "--json").stdout
    assert printed.count("\n") == 1
    assert json.loads(printed)["session"] == "talk"
