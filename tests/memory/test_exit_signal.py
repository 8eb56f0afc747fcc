"""<END_SESSION> in a message: what ends a conversation, and what only mentions it."""

import pytest
from memory.recording_tools import RecordingTools, once

from daypack.errors import BadInput
from daypack.memory.exit_signal import read_signal
from daypack.memory.keeper import Keeper
from daypack.text.injected import wrap

FLUSH = ["await_consistency", "put_context"]
START = ["get_context", "list_entries"]


@pytest.mark.requirement("S2-S6", "S2-S7")
@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("The port is 8080. <END_SESSION>", "The port is 8080."),
        ("<END_SESSION>\nThe port is 8080.", "The port is 8080."),
        ("The port is 8080.<END_SESSION> Bye, Ana.", "The port is 8080. Bye, Ana."),
        ("One.\n<END_SESSION>\nTwo. <END_SESSION>", "One.\n\nTwo."),
        ("Use `ls`, then <END_SESSION>", "Use `ls`, then"),
        ("I'm done, it's Ana's. <END_SESSION>", "I'm done, it's Ana's."),
        ("One ` here.\n\nBye. <END_SESSION>\n\nTwo ` there.", "One ` here.\n\nBye.\n\nTwo ` there."),
        ("```ls``` it is. <END_SESSION>", "```ls``` it is."),
    ],
)
def test_the_end_inside_a_message_stores_its_words_and_ends(text: str, stored: str) -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    added = keeper.observe("user", text, client_key="k")
    assert added is not None
    assert keeper.finished
    assert [entry.raw_entry for entry in tools.entries] == [stored]
    assert tools.calls == [*START, "add_entry", *FLUSH]
    with pytest.raises(BadInput, match="finished"):
        keeper.observe("user", text)


@pytest.mark.requirement("S2-S6")
@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("user", "What does `<END_SESSION>` do?"),
        ("assistant", 'Write "<END_SESSION>" to end it.'),
        ("user", "It is called “<END_SESSION>”, or '<END_SESSION>'."),
        ("assistant", "Like this:\n\n```text\nbye\n<END_SESSION>\n```\n"),
        ("assistant", "Like this:\n~~~\n<END_SESSION>"),
        ("user", "> bye <END_SESSION>\nDid Ana write that?"),
        ("user", "Is ``a ` <END_SESSION>`` code?"),
        ("user", "</END_SESSION> <end_session> <END_SESSION"),
        ("tool", "keeper.py:31: END = <END_SESSION>"),
        ("user", wrap("note", "1f3a9c02", "Ana: bye <END_SESSION>") + "\nAnd now?"),
    ],
)
def test_a_mention_of_the_end_does_not_end(role: str, text: str) -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    keeper.was_shown = lambda _: True  # a note in these texts is daypack's own
    added = keeper.observe(role, text)
    assert not keeper.finished
    assert "put_context" not in tools.calls
    assert (added is None) == (role == "tool")
    if added is not None and "note" not in text:
        assert tools.entries[-1].raw_entry == text


@pytest.mark.parametrize(
    "text", ["".join("`" * (number % 300 + 1) + "x" for number in range(6000)), "\t" * 600_000, " `\n" * 200_000]
)
def test_a_long_message_is_read_in_one_pass(text: str) -> None:
    # Minutes, where each backtick or space begins a search to the end.
    assert read_signal(f"{text}x\n\n<END_SESSION>")[1]


def test_a_tool_that_says_nothing_else_ends_too() -> None:
    tools = RecordingTools("text")
    keeper = Keeper(tools, "m")
    assert keeper.observe("system", "<END_SESSION>") is None
    assert keeper.finished


@pytest.mark.requirement("S2-S7")
def test_words_that_could_not_be_stored_are_added_again_before_the_end() -> None:
    tools = RecordingTools("text")
    tools.fails = once("8080")
    keeper = Keeper(tools, "m")
    assert keeper.observe("user", "The port is 8080. <END_SESSION>") is None
    assert [entry.raw_entry for entry in tools.entries] == ["The port is 8080."]
    assert tools.calls[-2:] == FLUSH
    assert keeper.finished
