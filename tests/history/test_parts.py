"""Parts that no turn would show are refused when they are appended."""

from typing import Any

import pytest

import daypack
from daypack.errors import BadMessage
from daypack.session import Session


@pytest.fixture
def session(home: str) -> Session:
    return daypack.open_session("work", home=home, durability="os")


@pytest.mark.parametrize(
    ("role", "part", "expected"),
    [
        (
            "user",
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "two files"},
            (
                "content[0]: a tool result is a message of its own (hint: append each result by itself: "
                "append('tool', text, tool_call_id='toolu_1'))"
            ),
        ),
        (
            "assistant",
            {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}},
            (
                "content[0]: a tool call is no part of a content (hint: append the reply with session.accept(reply), "
                "or pass tool_calls=[…])"
            ),
        ),
        ("user", {"type": "txt", "text": "hello"}, "content[0].type: 'txt' is no type of a part (hint: did you mean"),
        ("user", {"type": "text"}, "content[0].text: has no text (hint: write {'type': 'text', 'text': …})"),
        ("user", {"type": "image_url"}, "content[0].image_url: has no address (hint: give an https: or data: address)"),
    ],
)
def test_a_part_that_no_turn_would_show_is_refused(
    session: Session, role: str, part: dict[str, Any], expected: str
) -> None:
    with pytest.raises(BadMessage) as caught:
        session.append(role, [part])
    assert str(caught.value).startswith(f"append: {expected}")
    with pytest.raises(BadMessage) as caught:
        session.append_many([{"role": "user", "content": "Look."}, {"role": role, "content": [part]}])
    assert str(caught.value).startswith(f"append: messages[1].{expected}")
    assert len(session.messages()) == 0


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "hologram", "beam": 3},
        {"type": "other", "value": {"type": "beam"}},
    ],
)
def test_parts_of_other_types_are_kept(session: Session, part: dict[str, Any]) -> None:
    assert session.append("user", ["Look.", part]).text == "Look."
