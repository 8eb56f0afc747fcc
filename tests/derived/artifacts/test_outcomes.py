"""What results say about their calls: exit codes, failures, and the line that words an error."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.derived.artifacts.outcomes import (
    ERROR_CHARS,
    error_line,
    is_benign,
    names_problem,
    one_line,
    read_outcome,
    shows_failure,
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code 2\nmake: *** [x] Error 1", 2),
        ("Error: Exit code 128\nfatal: no upstream", 128),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok", 0),
        ("Chunk ID: 1a2b\nWall time: 0.05 seconds\nProcess exited with code 101\nOutput:\nx", 101),
        ("Process exited with code 0\n\nOutput:\nhello", 0),
        ('{"output":"boom\\n","metadata":{"exit_code":1,"duration_seconds":0.1}}', 1),
        ('{"stdout":"a","stderr":"b","exitCode":0}', 0),
        ("some text\n[The command completed with exit code 127.]", 127),
        ("text\n[Command finished with exit code 0]", 0),
        ("<returncode>1</returncode>\n<output>\nno\n</output>", 1),
        ("Your command ran successfully and did not produce any output.\nbash-$", 0),
        ("Output: x\nExit Code: -9", -9),
        ("all fine", None),
        ("the text of a file\nthat says\nExit code 3", None),
    ],
)
def test_exit_codes_are_read_in_every_spelling(text: str, code: int | None) -> None:
    outcome = read_outcome(text, None, shell=True)
    assert outcome.exit == code
    assert outcome.failed == (None if code is None else code != 0)


def test_the_output_is_taken_out_of_its_wrapping() -> None:
    text = json.dumps({"output": "line 1\nline 2\n", "metadata": {"exit_code": 0}})
    assert read_outcome(text, None, shell=True).text == "line 1\nline 2\n"


@pytest.mark.parametrize(
    ("meta", "exit_", "failed"),
    [
        ({"format": "claude-code", "result": {"is_error": False}}, 0, False),
        ({"format": "claude-code"}, 0, False),
        ({"format": "claude-code", "result": {"is_error": True}}, None, True),
        ({"success": False}, None, True),
        ({"result": "odd", "success": "odd"}, None, None),
        (None, None, None),
    ],
)
def test_what_the_agents_log_says_is_believed(
    meta: dict[str, Any] | None, exit_: int | None, *, failed: bool | None
) -> None:
    outcome = read_outcome("done", meta, shell=True)
    assert (outcome.exit, outcome.failed) == (exit_, failed)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_use_error>File does not exist.</tool_use_error>",
        "Error: ENOENT: no such file",
        "apply_patch verification failed: Failed to find expected lines",
        "Exit code: 1\nWall time: 0 seconds\nOutput:\nInvalid patch",
        "No replacement was performed, old_str `x` did not appear",
        '{"error":"not allowed"}',
        "MCP error -32602: bad arguments",
        "Your proposed edit has introduced new syntax error(s). Please read",
    ],
)
def test_a_tool_that_refuses_has_failed(text: str) -> None:
    outcome = read_outcome(text, None, shell=False)
    assert outcome.failed
    assert not outcome.cancelled


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "",
        "# Error handling\n",
        f"Error: {'a long page ' * 500}",
        '{"error":null,"x":1}',
        "Exit code: 0\nOutput:\nDone",
    ],
)
def test_other_results_are_no_failures(text: str) -> None:
    assert not read_outcome(text, None, shell=False).failed


def test_a_call_that_was_not_made_is_neither_success_nor_error() -> None:
    said = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    assert read_outcome(said, {"result": {"is_error": True}}, shell=True).cancelled
    assert read_outcome("<tool_use_error>Sibling tool call errored</tool_use_error>", None, shell=False).cancelled


def test_a_command_in_the_background_has_no_exit_code_yet() -> None:
    outcome = read_outcome("Command running in background with ID: b0", {"format": "claude-code"}, shell=True)
    assert outcome.running
    assert outcome.exit is None


def test_nothing_found_is_an_answer_and_no_error() -> None:
    assert is_benign(("git", "grep"), 1)
    assert not is_benign(("grep",), 2)
    assert not is_benign(("make",), 1)
    assert not is_benign((), 1)


@pytest.mark.parametrize(
    ("text", "programs", "shows"),
    [
        ('Traceback (most recent call last):\n  File "a.py"\nValueError: x', ("python",), True),
        ("bash: foo: command not found", ("foo",), True),
        ("cat: a: No such file or directory", ("make",), True),
        ("Traceback (most recent call last):", ("cat",), False),
        ("344", ("python",), False),
        ("x" * 50_000 + "\nTraceback (most recent call last):\nE: y", ("python",), True),
    ],
)
def test_an_output_shows_that_its_command_failed(text: str, programs: tuple[str, ...], *, shows: bool) -> None:
    assert shows_failure(text, programs) is shows


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1\n\nValueError: second\n',
            "ValueError: second",
        ),
        ("Exit code 1\nsrc/a.c:3: warning: w\nerror: could not compile `x`\n", "error: could not compile `x`"),
        (
            "collected 2 items\nE   assert 1 == 2\nFAILED tests/a.py::test_b - assert 1 == 2\n1 failed",
            "E assert 1 == 2",
        ),
        ("Exit code 128\nfatal: no upstream branch.\nhint: use x", "fatal: no upstream branch."),
        ("\x1b[31merror[E0308]: mismatched types\x1b[0m\n --> a.rs", "error[E0308]: mismatched types"),
        ("Exit code 1\nThese paths are ignored:\na/b\nhint: use -f", "These paths are ignored:"),
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
        ("--- FAIL: TestX (0.00s)\nFAIL", "--- FAIL: TestX (0.00s)"),
        ("", ""),
    ],
)
def test_the_line_that_words_an_error_is_found(output: str, line: str) -> None:
    assert error_line(output) == line


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            "Validation failed:\n\n  the name of the cluster must not be empty",
            "the name of the cluster must not be empty",
        ),
        ("Check failed:\\n\\n[LINT]\\nStarting up\nall ready\nerror: x is unused", "error: x is unused"),
        (
            "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999 SyntaxError: unmatched ')'",
            "E999 SyntaxError: unmatched ')'",
        ),
        ("Pre-commit validation failed:\n[LINT]\nStarting up now\nPLT is up to date!", "Pre-commit validation failed:"),
        ("Some paths are invalid:\npriv/static\nhint: Use -f to add them.", "Some paths are invalid:"),
    ],
)
def test_a_lead_in_gives_way_to_the_line_that_tells_something(output: str, line: str) -> None:
    assert error_line(output) == line


@pytest.mark.parametrize("line", ["", "File does not exist.", "Error: File not found", "Validation failed:", "Failed."])
def test_some_lines_say_only_that_something_is_wrong(line: str) -> None:
    assert not names_problem(line)
    assert names_problem("File does not exist: src/app.py")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2 checks ran\nFAILED tests/x.py::test_y - assert 1 == 2", None),
        ("go\nTraceback (most recent call last):\n  File 'x'\nValueError: 3", None),
        ("compiling\nerror: cannot find crate `abc`", None),
        ("building\nExit status: 2", 2),
        ("The build ended (exit code 1).", 1),
    ],
)
def test_a_report_of_any_tool_that_is_unmistakable_is_a_failure(text: str, code: int | None) -> None:
    outcome = read_outcome(text, None, shell=False, speaks=True)
    assert (outcome.failed, outcome.exit) == (True, code)
    assert not read_outcome(text, None, shell=False).failed or text.startswith("Exit")
    assert not read_outcome(text, {"format": "claude-code"}, shell=False, speaks=True).failed


@pytest.mark.parametrize(
    "text", ["all fine", "0 errors", "exit code 0", "no error: none", "x" * 5000 + "\nerror: it is a long page\n"]
)
def test_a_report_without_a_plain_sign_is_no_failure(text: str) -> None:
    assert not read_outcome(text, None, shell=False, speaks=True).failed


def test_an_error_is_one_short_line() -> None:
    found = error_line("Error: " + "very long " * 500 + "\nmore")
    assert len(found) <= ERROR_CHARS
    assert found.endswith("very long")  # cut between words, and nothing put in place of the rest
    assert one_line(" a\t\nb \x1b[1mc\x1b[0m \ud800 ") == "a b c ?"


@given(st.text(st.characters()), st.booleans())
def test_any_result_is_read(text: str, shell: bool) -> None:
    outcome = read_outcome(text, {"result": {"is_error": None}}, shell=shell)
    line = error_line(outcome.text)
    assert "\n" not in line
    assert len(line) <= ERROR_CHARS
    line.encode()


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.dictionaries(st.text(), one) | st.lists(one)))
def test_any_wrapping_and_any_meta_are_read(value: object) -> None:
    text = json.dumps({"output": value, "metadata": {"exit_code": value}, "stdout": value})
    assert read_outcome(text, {"result": value, "success": value}, shell=True).text
