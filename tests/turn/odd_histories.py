"""Steps that fill a session with all that callers, replies, imports and people's editors may put there.

A step is a way in and what goes through it: `append`, `append_many`, `accept`, `line` (written into messages.jsonl by
hand) or `stored` (by an older version, past today's checks). Most of it is odd; what a door refuses is not stored.
"""

from typing import Any

import msgspec
from hypothesis import strategies as st
from turn.histories import PIXEL

from daypack.errors import DaypackError
from daypack.session import Session
from daypack.types.history import Message

Step = tuple[str, Any]
Odd = st.SearchStrategy[Any]

_TEXTS: tuple[Any, ...] = (
    "Go on.",
    "",
    " \n",
    "\0",
    "\x1b[31m",
    "\u2028",
    "\u3000",
    "é" * 40,
    "ends  \n",
    None,
    "half \ud800",
    5,
)
_IDS: tuple[Any, ...] = ("a", "b", "call_1", "", " ", "x" * 41, "y" * 65, "é", "a b", "\0", None, 5)
_TOOLS: tuple[Any, ...] = ("f", "read_file", "", " ", "a b", "搜索", "n" * 65, "\0", None, 5)
_NAMES: tuple[Any, ...] = (None, "ann", "", "two words", "a\nb", "小明", "n" * 80, 5)
_ARGUMENTS: tuple[Any, ...] = (
    *("{}", "", '{"a":1}', "no json", "[1]", "[" * 3000, '{"a":"\\ud800"}', {"a": 1}, None, 5),
    *('{"a":' + "9" * 400 + "}", '{"a":1e999}', float("nan"), {"a": 1 << 80}),
)
_METAS: tuple[Any, ...] = (
    None,
    {"dialect": "openai"},
    {"dialect": "responses"},
    {"dialect": "anthropic"},
    {"dialect": []},
    {"incomplete": "abandoned"},
    {"incomplete": 5},
    {"text": {"refusal": True}},
    {"text": {"phase": [], "id": {}}},
    {"text": 5},
    {"is_error": "x"},
    {"type": "custom"},
    {"after": 0},
    {"after": -1},
    {"namespace": 5},
    {"detail": []},
    {"filename": 5},
    {"dialect": "responses", "id": "rs_1", "encrypted_content": "x", "summary": [5]},
)
_SOURCES: tuple[Any, ...] = (
    "https://example.org/a.png",
    "http://example.org/a.png",
    "https://example.org/a b.png",
    "https://",
    "plan.png",
    "",
    f"data:image/png;base64,{PIXEL}",
    f"data:image/PNG;charset=x;base64,{PIXEL}",
    f"data:image/gif;base64,{PIXEL}",
    "data:image/png;base64,AAAA",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "data:application/pdf;base64,JVBERi0=",
    "data:",
    5,
)
_VALUES: tuple[Any, ...] = (None, 5, "x", "", [], {}, [5], {"type": "x"}, {"url": 5}, {"type": "url", "url": "x"})
_PARTS: tuple[dict[str, Any], ...] = (
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "more": 1}},
    {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{PIXEL}"}},
    {"type": "image_url", "image_url": {"url": 5, "detail": "low"}},
    {"type": "input_image", "image_url": "plan.png", "detail": 5},
    {"type": "input_image", "file_id": "file-1", "more": 1},
    {"type": "input_file", "file_id": 5, "file_url": "https://example.org/a"},
    {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": 5},
    {"type": "file", "file": {"file_id": "file-1", "more": 1}},
    {"type": "file", "file": {"file_data": 5}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "ogg"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": PIXEL}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": PIXEL}},
    {"type": "image", "source": {"type": "url", "url": "http://example.org", "more": 1}, "more": 1},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}, "title": 5},
    {"type": "document", "source": {"type": "content", "content": []}},
    {"type": "thinking", "thinking": "Hm.", "signature": " "},
    {"type": "thinking", "text": "Hm.", "meta": {"dialect": "responses", "id": "rs_1", "encrypted_content": ""}},
    {"type": "redacted_thinking", "data": " "},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "server_tool_use", "id": "s1", "name": "unheard", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
    {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "web_search_call", "id": "ws_2"},
    {"type": "mcp_call", "id": "mcp_1"},
    {"type": "compaction", "encrypted_content": "x", "meta": {"a": 1}},
    {"type": "refusal", "refusal": 5},
    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    {"type": "tool_result", "tool_use_id": "a", "content": "x"},
    {"type": "text", "text": 5},
    {"type": "hologram", "data": 7},
    {"type": []},
    {},
)
_KINDS = tuple(dict.fromkeys(str(part.get("type")) for part in _PARTS))
_FIELDS = ("id", "text", "name", "input", "data", "source", "image_url", "file", "file_id", "content", "action")


def _made(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "type": kind}


def _other(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "other", "value": value}


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"finish_reason": "stop", "message": message}]}


def _answer(content: list[Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}


def _response(output: list[Any]) -> dict[str, Any]:
    return {"status": "completed", "output": output}


_metas: Odd = st.sampled_from(_METAS)
_made_parts: Odd = st.builds(
    _made,
    st.sampled_from(_KINDS),
    st.dictionaries(st.sampled_from(_FIELDS), st.sampled_from(_VALUES), max_size=3),
)
_foreign: Odd = st.one_of(st.sampled_from(_PARTS), _made_parts)
_parts: Odd = st.one_of(
    _foreign,
    _foreign.map(_other),
    st.fixed_dictionaries({"type": st.just("text"), "text": st.sampled_from(_TEXTS)}, optional={"meta": _metas}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(("image", "file")), "source": st.sampled_from(_SOURCES)}, optional={"meta": _metas}
    ),
)
_contents: Odd = st.one_of(st.sampled_from(_TEXTS), st.lists(_parts, max_size=4))
_calls: Odd = st.fixed_dictionaries(
    {"id": st.sampled_from(_IDS), "name": st.sampled_from(_TOOLS), "arguments": st.sampled_from(_ARGUMENTS)},
    optional={"meta": _metas},
)
_common: dict[str, Odd] = {
    "name": st.sampled_from(_NAMES),
    "meta": _metas,
    "client_key": st.sampled_from(("k1", "k2", 5)),
}
_asking: Odd = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": _contents, "tool_calls": st.lists(_calls, min_size=1, max_size=3)},
    optional={"meta": _metas},
)
_answering: Odd = st.fixed_dictionaries(
    {"role": st.just("tool"), "content": _contents, "tool_call_id": st.sampled_from(_IDS)}, optional=_common
)
_any: Odd = st.fixed_dictionaries(
    {"role": st.sampled_from(("user", "assistant", "tool", "system")), "content": _contents},
    optional={**_common, "tool_calls": st.lists(_calls, max_size=3), "tool_call_id": st.sampled_from(_IDS)},
)
messages: Odd = st.one_of(_asking, _answering, _any)
_chat_replies: Odd = st.builds(
    _completion,
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": _contents, "tool_calls": st.lists(_calls, max_size=2)}
    ),
)
_uses: Odd = st.fixed_dictionaries(
    {
        "type": st.just("tool_use"),
        "id": st.sampled_from(_IDS),
        "name": st.sampled_from(_TOOLS),
        "input": st.sampled_from(_ARGUMENTS),
    }
)
_message_replies: Odd = st.builds(
    _answer,
    st.lists(st.one_of(_uses, _parts), max_size=4),
)
_items: Odd = st.one_of(
    st.fixed_dictionaries({"type": st.just("message"), "role": st.just("assistant"), "content": _contents}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(("function_call", "custom_tool_call")),
            "call_id": st.sampled_from(_IDS),
            "name": st.sampled_from(_TOOLS),
            "arguments": st.sampled_from(_ARGUMENTS),
        }
    ),
    _foreign,
)
_response_replies: Odd = st.builds(_response, st.lists(_items, max_size=4))
steps: Odd = st.one_of(
    st.tuples(st.just("append"), messages),
    st.tuples(st.just("append_many"), st.lists(messages, max_size=4)),
    st.tuples(st.just("accept"), st.one_of(_chat_replies, _message_replies, _response_replies)),
    st.tuples(st.just("line"), messages),
    st.tuples(st.just("stored"), messages),
)


def take(session: Session, step: Step) -> bool:
    """Take a step; return False if it was refused. Anything but an error of daypack is a failure."""
    way, given = step
    try:
        if way == "append":
            session.append(**given)
        elif way == "append_many":
            session.append_many(given)
        elif way == "accept":
            session.accept(given)
        elif way == "line":
            line = msgspec.json.encode(given)
            with open(session.layout.messages, "ab") as log:
                log.write(line + b"\n")
        else:
            fields = {name: value for name, value in given.items() if value is not None}
            session.history.append([msgspec.convert(fields, Message)])
    except DaypackError:
        return False
    except (msgspec.ValidationError, UnicodeEncodeError):
        if way not in ("line", "stored"):  # there, the test itself could not write it
            raise
        return False
    return True
