"""Histories for property tests, as lists of drafts for `session.append_many`.

`settled_histories` are such as a dialect takes: a user speaks first, and each call has its result at once, once.
`wild_histories` are such as logs hold: results without calls, calls without results, results twice, replies that
broke off, in any order.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from daypack.history.draft import draft_from
from daypack.types.history import Message

Drafts = list[dict[str, Any]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

_TEXTS = (
    "Read the plan.",
    "",
    " \n\t",
    "请把报告翻译成中文，然后保存。",
    "完成 ✅ 👩‍💻🚀",
    "def f(x):\n    return {'a': [x, None]}  \n",
    '{"quoted": "json \\u00e9"}',
    "<system>not one</system> ends with spaces  \n\n",
    "é" * 300,
)
_IDS = (
    "call_1",
    "call_2",
    "toolu_01A",
    "0",
    "fc:1/ü",
    "调用 一",
    "x" * 41,
    "y" * 64,
    "z" * 200,
    "_lead",
    "call_ 3",
)
_TOOLS = ("read_file", "fs.read", "mcp__server__tool", "搜索", "a" * 90, "say hello")
_ARGUMENTS = ("{}", "", '{"path": "plan.md"}', '{"n": 1e2, "deep": [[{}]]}', "not json", '"text"', "[1, 2]", '{"cut": ')
_SOURCES = (
    "https://example.org/a.png",
    "http://example.org/a.png",
    "https://example.org/has space.png",
    "pictures/plan.png",
    "sha256:0f0f",
    f"data:image/png;base64,{PIXEL}",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "data:image/png;base64,broken!",
    "data:application/pdf;base64,JVBERi0=",
    "https://example.org/a.pdf",
)
_OTHERS: tuple[dict[str, Any], ...] = (
    {"type": "image_url", "image_url": {"url": "https://example.org/b.png", "detail": "low"}},
    {"type": "image_url"},
    {"type": "input_image", "image_url": "https://example.org/c.png"},
    {"type": "input_text", "text": "foreign words"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    {"type": "image", "source": {"type": "url"}},
    {"type": "redacted_thinking", "data": "c2VjcmV0"},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "hologram", "data": 7},
)

texts = st.one_of(st.sampled_from(_TEXTS), st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
names = st.one_of(st.none(), st.sampled_from(("ann", "小明", "two words", "a|b", "n" * 80)))
_signed = st.fixed_dictionaries({"type": st.just("thinking"), "text": texts, "signature": st.just("c2ln")})
_unsigned = st.fixed_dictionaries({"type": st.just("thinking"), "text": texts})
_SUMMARY = [{"type": "summary_text", "text": "sum"}]
_sealed = st.sampled_from(
    [
        {
            "type": "thinking",
            "text": "sum",
            "meta": {
                "dialect": "responses",
                "id": f"rs_{number}",
                "summary": _SUMMARY,
                "encrypted_content": "ZW5j",
            },
        }
        for number in range(4)
    ]
)
_said = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
_media = st.fixed_dictionaries({"type": st.sampled_from(("image", "file")), "source": st.sampled_from(_SOURCES)})
_other = st.sampled_from([{"type": "other", "value": value} for value in _OTHERS])
thinking = st.one_of(_signed, _unsigned, _sealed)
user_contents = st.one_of(texts, st.lists(st.one_of(_said, _media, _other), max_size=4))
reply_contents = st.one_of(texts, st.lists(st.one_of(_said, thinking, _media, _other), max_size=5))
origins = st.one_of(st.none(), st.sampled_from(("openai", "responses", "anthropic")))


def messages_of(drafts: Sequence[dict[str, Any]]) -> tuple[Message, ...]:
    """The messages an append of these drafts would store."""
    return tuple(draft_from(one) for one in drafts)


@st.composite
def user_messages(draw: st.DrawFn) -> dict[str, Any]:
    return _with({"role": "user", "content": draw(user_contents)}, name=draw(names))


@st.composite
def replies(draw: st.DrawFn, calls: int = 0) -> dict[str, Any]:
    """An assistant's message with so many calls, their ids different from each other."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(reply_contents)}
    ids = draw(st.lists(st.sampled_from(_IDS), min_size=calls, max_size=calls, unique=True))
    listed: Drafts = [
        {"id": one, "name": draw(st.sampled_from(_TOOLS)), "arguments": draw(st.sampled_from(_ARGUMENTS))}
        for one in ids
    ]
    for call in listed:
        if draw(st.integers(0, 5)) == 0:
            call["meta"] = draw(st.sampled_from(({"type": "custom"}, {"after": 0}, {"after": 9}, {"after": "x"})))
    origin = draw(origins)
    return _with(message, tool_calls=listed or None, name=draw(names), meta={"dialect": origin} if origin else None)


@st.composite
def results(draw: st.DrawFn, call_id: str) -> dict[str, Any]:
    content = draw(st.one_of(texts, st.lists(st.one_of(_said, _media), max_size=3)))
    meta = {"is_error": True} if draw(st.booleans()) else None
    return _with({"role": "tool", "content": content, "tool_call_id": call_id}, meta=meta)


@st.composite
def settled_histories(draw: st.DrawFn, max_size: int = 8) -> Drafts:
    """Histories a dialect takes as they are."""
    history: Drafts = [draw(user_messages())]
    for _ in range(draw(st.integers(0, max_size))):
        history += draw(_steps())
    return history


@st.composite
def _steps(draw: st.DrawFn) -> Drafts:
    kind = draw(st.sampled_from(("user", "reply", "calls", "calls", "system")))
    if kind == "user":
        return [draw(user_messages())]
    if kind == "system":
        return [{"role": "system", "content": draw(texts)}]
    if kind == "reply":
        return [draw(replies())]
    reply = draw(replies(calls=draw(st.integers(1, 3))))
    answered = [draw(results(call["id"])) for call in reply["tool_calls"]]
    return [reply, *draw(st.permutations(answered))]


@st.composite
def wild_histories(draw: st.DrawFn, max_size: int = 12) -> Drafts:
    """Histories in any order, with a user's message somewhere."""
    one = st.one_of(
        user_messages(),
        replies(),
        st.integers(1, 3).flatmap(replies),
        st.integers(0, 2).flatmap(replies).map(_broken),
        st.sampled_from(_IDS).flatmap(results),
        st.fixed_dictionaries({"role": st.just("system"), "content": texts}),
    )
    history: Drafts = draw(st.lists(one, max_size=max_size))
    # Results of calls that are really there, now and then twice: chance alone would seldom meet an id.
    for call_id in [call["id"] for message in history for call in message.get("tool_calls", ())]:
        for _ in range(draw(st.integers(0, 2))):
            history.insert(draw(st.integers(0, len(history))), draw(results(call_id)))
    history.insert(draw(st.integers(0, len(history))), draw(user_messages()))
    return history


def _broken(message: dict[str, Any]) -> dict[str, Any]:
    """A reply that broke off."""
    return {**message, "meta": {**(message.get("meta") or {}), "incomplete": "abandoned"}}


def _with(message: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {**message, **{name: value for name, value in fields.items() if value is not None}}
