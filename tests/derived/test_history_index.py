"""The index of a session's messages: what it contains."""

from daypack.derived.history_index import searchable
from daypack.types.history import Message, ToolCall


def test_names_and_arguments_of_calls_are_searched() -> None:
    call = ToolCall("c1", "grep", '{"pattern": "walrus"}')
    message = Message(seq=3, role="assistant", content="I look.", tool_calls=(call,))
    assert searchable(message) == 'I look.\ngrep {"pattern": "walrus"}'
