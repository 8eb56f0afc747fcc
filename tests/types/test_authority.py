"""Who wrote a message with the role of the user, and what of it is the user's."""

from typing import Any

import pytest

from daypack.types.authority import Writer, authority_of, text_without_hooks, users_part, without_marks, writer_of
from daypack.types.history import Image, Message, Text

HOOK = Text("Remembered: the port is 8080.", {"writer": "hook"})


def message(content: Any = "words", **meta: Any) -> Message:
    return Message(role="user", content=content, meta=meta or None)


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, None),
        ({"format": "claude-code"}, None),
        ({"writer": "hook"}, "hook"),
        ({"writer": "somebody"}, None),
        ({"foreign_summary": True}, "summary"),
        ({"row": {"isMeta": True}}, "harness"),
        ({"row": {"isMeta": False}}, None),
        ({"is_demo": True}, "harness"),
    ],
)
def test_a_mark_says_who_wrote_a_message_also_those_of_earlier_imports(
    meta: dict[str, Any], expected: Writer | None
) -> None:
    assert writer_of(message(**meta)) == expected


def test_what_another_program_wrote_is_not_the_users() -> None:
    plain = message()
    assert users_part(plain) is plain
    assert users_part(message(writer="harness")) is None
    assert users_part(message("<command-name>/fix</command-name>", writer="command", own_words="only a.py")) == Message(
        role="user", content="only a.py"
    )
    assert users_part(message(writer="command", own_words=" \n")) is None


def test_marked_parts_are_left_out_and_the_others_stay() -> None:
    picture = Image("sha256-00")
    part = users_part(message((Text("Fix it"), HOOK, picture), format="qwen"))
    assert part == message((Text("Fix it"), picture), format="qwen")
    assert users_part(message((HOOK,))) is None


def test_what_a_hook_added_is_not_searched() -> None:
    assert text_without_hooks(message((Text("Fix it"), HOOK, Text("now")))) == "Fix it\nnow"
    assert text_without_hooks(message(writer="hook")) == ""
    assert text_without_hooks(message(writer="harness")) == "words"


def test_without_marks_a_message_is_as_an_earlier_version_imported_it() -> None:
    marked = message((Text("Fix it"), HOOK), writer="harness", own_words="x", format="qwen")
    assert without_marks(marked) == message((Text("Fix it"), Text(HOOK.text)), format="qwen")


@pytest.mark.parametrize(
    ("writer", "expected"), [("hook", "tool"), ("harness", "tool"), ("summary", "tool"), ("agent", "agent")]
)
def test_the_text_of_another_program_does_not_instruct(writer: str, expected: str) -> None:
    assert authority_of(message()) == "user"
    assert authority_of(message(writer=writer)) == expected
