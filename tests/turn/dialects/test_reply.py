from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletionChunk
from turn.dialects.library import answer, called, completion, response, said, text, use, user

from daypack.errors import BadInput
from daypack.history.draft import draft_from
from daypack.session import Session
from daypack.turn.dialects import NAMES, Given, Usage, dialect, read_reply, read_usage
from daypack.types.history import Message, Text

THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REPLIES: dict[str, Any] = {
    "openai": completion({"content": "Yes."}),
    "responses": response(said("Yes.")),
    "anthropic": answer(text("Yes.")),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_is_recognised_by_its_shape(name: str) -> None:
    reply = REPLIES[name]
    spread = SimpleNamespace(**dict(reply))
    for shape in (reply, reply.model_dump(), reply.to_dict(), reply.model_dump(mode="json"), spread):
        read = read_reply(shape)
        assert read.message["meta"]["dialect"] == name
        assert draft_from(read.message).text == "Yes."
        assert read == dialect(name).read(shape)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_a_reply_to_everybody(name: str) -> None:
    for words in ("Yes.", '{"choices": []}', ""):
        assert dialect(name).read(words) == read_reply(words)
        assert read_reply(words).message == {"role": "assistant", "content": words}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f"}}]}, "openai"),
        ({"role": "assistant", "content": [use()]}, "anthropic"),
        ({"role": "assistant", "content": [THOUGHT, text("Yes.")]}, "anthropic"),
        (said("Yes."), "responses"),
    ],
)
def test_a_bare_message_is_recognised_by_its_parts(message: dict[str, Any], name: str) -> None:
    assert read_reply(message).message["meta"]["dialect"] == name


def test_words_alone_are_nobodys_in_particular() -> None:
    assert read_reply({"role": "assistant", "content": "Yes."}).message == {"role": "assistant", "content": "Yes."}
    assert "meta" not in read_reply({"role": "assistant", "content": [text("Yes.")]}).message


def test_a_message_of_daypacks_own_is_taken_as_it_is() -> None:
    call = {"id": "a", "name": "f", "arguments": "", "meta": {"after": 0}}
    content = [{"type": "thinking", "text": "Hm.", "signature": "s"}, text("Yes.")]
    own = {"role": "assistant", "content": content, "tool_calls": [call], "meta": {"dialect": "anthropic"}}
    assert read_reply(own).message == own
    assert draft_from(read_reply(draft_from(own)).message) == draft_from(own)
    stored = Message(role="assistant", content=(Text("Yes."),), meta={"mine": 1}, seq=3, id="msg-3", crc="0")
    assert read_reply(stored).message == {"role": "assistant", "content": [text("Yes.")], "meta": {"mine": 1}}


def test_what_was_read_can_be_appended_and_rendered_from_history(session: Session) -> None:
    reply = read_reply(answer(THOUGHT, text("Look."), use(x=1), text("Wait.")))
    session.append_many([user(), reply.message, {"role": "tool", "tool_call_id": "toolu_1", "content": "ok"}])
    blocks = dialect("anthropic").render(Given(messages=session.tail(3)))["messages"][1]["content"]
    assert (
        AnthropicMessage.model_validate({**answer().to_dict(), "content": blocks}).content
        == answer(THOUGHT, text("Look."), use(x=1), text("Wait.")).content
    )


class Awaited:
    def __await__(self) -> Any:
        yield


CHUNK: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
UNUSABLE: dict[str, tuple[Any, str]] = {
    "nothing": (None, "is missing"),
    "an error": (RuntimeError("boom"), "boom"),
    "an error of the API": ({"error": {"message": "quota"}}, "quota"),
    "an error in words": ({"error": "quota"}, "quota"),
    "a coroutine": (Awaited(), "awaited"),
    "a stream": (iter([1]), "stream"),
    "a stream inside": ({"role": "assistant", "content": (one for one in "ab")}, "stream"),
    "a piece of a stream": (ChatCompletionChunk.model_validate(CHUNK), "piece of a stream"),
    "an event": ({"type": "message_start", "message": {"role": "assistant", "content": []}}, "piece of a stream"),
    "an event of a response": ({"type": "response.completed", "response": {}}, "piece of a stream"),
    "bytes": (b"Yes.", "cannot be read: bytes"),
    "a number": (7, "cannot be read: int"),
    "a list": ([text("Yes.")], "cannot be read: list"),
    "a class": ({"role": "assistant", "content": Message}, "cannot be read: StructMeta"),
    "something else": ({"hello": "world"}, "not an assistant's message"),
    "a user's message": ({"role": "user", "content": "Yes."}, "not an assistant's message"),
}


@pytest.mark.parametrize("label", UNUSABLE)
def test_what_is_no_reply_is_refused_with_a_hint(label: str) -> None:
    reply, problem = UNUSABLE[label]
    with pytest.raises(BadInput, match=problem) as caught:
        read_reply(reply)
    assert caught.value.operation == "read reply"
    assert caught.value.place
    assert caught.value.hint


def test_an_endless_object_is_refused() -> None:
    loop: dict[str, Any] = {"role": "assistant"}
    loop["content"] = [loop]
    with pytest.raises(BadInput, match="nested deeper"):
        read_reply(loop)


def test_objects_that_dump_in_their_own_way_are_read() -> None:
    class Dumping:
        def model_dump(self) -> dict[str, Any]:
            return {"role": "assistant", "content": "Yes."}

    class Converting:
        __slots__ = ()

        def to_dict(self) -> dict[str, Any]:
            return {"role": "assistant", "content": "Yes."}

    for one in (Dumping(), Converting()):
        assert read_reply(one).message["content"] == "Yes."


def test_parts_nobody_knows_are_kept_whole() -> None:
    reply = read_reply({**answer().to_dict(), "content": [{"type": "hologram", "data": 7}]})
    assert reply.message["content"] == [{"type": "other", "value": {"type": "hologram", "data": 7}}]
    kept = {"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "f"}
    assert read_reply(response(kept, called())).message["content"][0]["value"] == kept


@pytest.mark.parametrize(
    ("given_usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, None, 2)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens": 2},
            Usage(10, 8, 2),
        ),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 2}, Usage(10, 8, 2)),
        ({"input_tokens": 10, "output_tokens": 2}, Usage(10, None, 2)),
        ({"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 2}, Usage(10, 9, 2)),
        (
            {"input_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 9, "output_tokens": 2},
            Usage(10, 0, 2, 9),
        ),
        # Routers say both: then the sum is given.
        ({"prompt_tokens": 10, "cache_read_input_tokens": 9, "completion_tokens": 2}, Usage(10, 9, 2)),
        ({"input_tokens": 10, "cached_tokens": 8, "output_tokens": 2, "cache_written_tokens": 1}, Usage(10, 8, 2, 1)),
        (Usage(10, 8, 2, 1), Usage(10, 8, 2, 1)),
        ({"input_tokens": True, "output_tokens": -1}, None),
        ({}, None),
        (None, None),
    ],
)
def test_usage_is_understood_in_everybodys_words(given_usage: object, expected: Usage | None) -> None:
    assert read_usage(given_usage) == expected


def test_usage_that_is_no_object_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be read: int"):
        read_usage(7)
