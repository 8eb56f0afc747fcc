"""Appending on the command line: what is said about the session."""

from cli.conftest import Command


def test_a_session_that_is_created_is_named_with_the_one_that_may_have_been_meant(command: Command) -> None:
    assert command("append", "guide", "hi").stderr == "new session guide\n"
    assert command("append", "guide", "again").stderr == ""
    created = command("append", "gudie", "hi")
    assert (created.stdout, created.stderr) == ("msg-1\n", "new session gudie: did you mean guide?\n")
    lines = b'{"role":"user","content":"hi"}'
    assert command("append", "other", "--jsonl", "-", stdin=lines).stderr == "new session other\n"
    assert command("append", "giude", "hi", "--json").stderr == ""


def test_a_name_of_its_own_is_not_taken_for_a_typing_mistake(command: Command) -> None:
    command("append", "motor", "hi")
    assert command("append", "other", "hi").stderr == "new session other\n"
    command("append", "day-2026-11-16", "hi")
    assert command("append", "day-2026-11-17", "hi").stderr == "new session day-2026-11-17\n"
