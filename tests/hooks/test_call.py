"""What a hook receives on standard input."""

import pytest

from daypack.errors import BadInput
from daypack.hooks.call import read_call

PROMPT = (
    b'{"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "cwd": "/work", "transcript_path": "/t.jsonl",'
    b' "prompt": "Which port?", "prompt_id": "p"}'
)


def test_the_fields_that_most_events_have_are_read_and_the_others_are_kept() -> None:
    call = read_call("claude", PROMPT)
    assert (call.event, call.session, call.cwd) == ("UserPromptSubmit", "s-1", "/work")
    assert (call.transcript, call.prompt, call.fields["prompt_id"]) == ("/t.jsonl", "Which port?", "p")
    assert call.agent == "claude-code"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'"text"', b"\xff", b"{}", PROMPT.replace(b"session_id", b"sid"), b"[" * 100_000]
)
def test_input_that_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput):
        read_call("codex", data)


@pytest.mark.parametrize(("own", "event"), [(b"BeforeAgent", "UserPromptSubmit"), (b"AfterAgent", "Stop")])
def test_events_of_gemini_are_called_as_those_of_the_others(own: bytes, event: str) -> None:
    data = PROMPT.replace(b"UserPromptSubmit", own)
    assert read_call("gemini", data).event == event
    assert read_call("claude", data).event == own.decode()


def test_a_field_of_another_type_counts_as_missing() -> None:
    call = read_call("qwen", PROMPT.replace(b'"Which port?"', b"7"))
    assert call.prompt == ""
