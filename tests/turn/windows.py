"""What the tests of a window share: fixed histories, sessions with everything in them, and a count of their own.

The count goes over what is sent, not over what the flow believes to send: all words of a rendered body.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec
from turn.histories import PIXEL, Drafts
from turn.scenes import append_raw

import daypack
from daypack.session import Session
from daypack.text.tokens import counter_named
from daypack.turn.budget import Limits
from daypack.turn.dialects import NAMES, dialect
from daypack.turn.items import CHANGED
from daypack.turn.pack.shorter import SHORTER
from daypack.turn.turn import Turn
from daypack.types.history import Message
from daypack.types.memory import Remembered

MESSAGE_TOKENS = 3  # the least that a provider puts around a message


def user(text: object) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(text: object) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(*ids: str, text: object = "", name: str = "read_file", arguments: str = '{"path": "plan.md"}') -> Any:
    calls = [{"id": one, "name": name, "arguments": arguments} for one in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def answer(call_id: str | None, text: object = "done") -> dict[str, Any]:
    result = {"role": "tool", "content": text}
    return result if call_id is None else {**result, "tool_call_id": call_id}


_THOUGHT = {"type": "thinking", "text": "The plan comes first, then the code.", "signature": "c2ln"}
_CODE = "def pack(items):\n    return [item for item in items if item.fits()]\n"

# Everything a log may hold, ending with the user's turn.
TALK: Drafts = [
    {"role": "system", "content": "You pack bags for hikers."},
    user("Read the plan, then tell me what is in it."),
    call("a", "b", text=[_THOUGHT, {"type": "text", "text": "I look."}]),
    answer("b", "请把报告翻译成中文，然后保存。"),
    answer("a", [{"type": "text", "text": _CODE}, {"type": "image", "source": "pictures/plan.png"}]),
    answer("a", "the same result, twice"),
    say("The plan says 完成 ✅ 👩‍💻🚀, and more."),
    answer("nobody", "a result nobody asked for"),
    user([{"type": "text", "text": "And this?"}, {"type": "image", "source": f"data:image/png;base64,{PIXEL}"}]),
    say([_THOUGHT, {"type": "text", "text": "A dot."}]),
    {**user("小明 asks: wie weit ist es?"), "name": "小明"},
    call("c", "d", "e", name="搜索", arguments="not json"),
    answer("d", "  "),
    {"role": "system", "content": "The user went away."},
    user("Never mind the search. Go on with the packing list."),
    call("f", arguments='{"deep": [[{"é": "ü"}]], "n": 1e2}'),
    answer(None, _CODE * 3),
    say(""),
    say(_CODE * 2 + "That is the list."),
    user("What did the plan say about 完成, in one sentence?"),
]

# One task, many calls: the tail has to begin in the middle of a turn, and the newest batch is still open.
LOOP: Drafts = [
    {"role": "system", "content": "You are a careful engineer."},
    user("Make the tests pass; do not stop before they do."),
    *(one for n in range(24) for one in (call(f"r{n}", text=f"Step {n}."), answer(f"r{n}", f"{n} failed, " * (n % 5)))),
    call("x", "y", text="Two at once."),
    answer("x", "only the first is here"),
]

# A history cut off in front: it begins with results and a reply nobody knows the question of.
MIDDLE: Drafts = [
    answer("lost", "the end of something"),
    call("m", text=[_THOUGHT]),
    answer("m", "found: " + "src/a.py " * 40),
    say("So it is in src/a.py."),
    user("🚀 启动"),
    call("n", name="run", arguments='{"cut": '),
    answer("n", "é" * 200),
    user(""),
    call("o", "p"),
    answer("p", "second"),
    answer("o", "first"),
    say("Both are done."),
]

HISTORIES: dict[str, Drafts] = {"talk": TALK, "loop": LOOP, "middle": MIDDLE}


class Memory:
    """A memory across sessions with a document and two entries."""

    def __init__(self, document: str | None = "The user hikes in the north.") -> None:
        self.text = document

    def document(self) -> str | None:
        return self.text

    def search(self, query: str, limit: int) -> Sequence[Remembered]:
        found = [
            Remembered("e1", f"They asked before: {query[:20]}", 0.9, "2026-01-02"),
            Remembered("e2", "Rain.", 0.2),
        ]
        return found[:limit]


def open_work(
    home: str, drafts: Sequence[Mapping[str, Any]] = (), *, workspace: str = "", name: str = "work"
) -> Session:
    """A session with a history and nothing else."""
    session = daypack.open_session(name, home=home, durability="os", workspace=workspace)
    if drafts:
        append_raw(session, *drafts)
    return session


def furnish(session: Session, workspace: Path, *, sentences: int = 2) -> list[dict[str, Any]]:
    """Put one of every component into a session; the answer are items for `prepare`."""
    filling = " ".join(f"Sentence {n} says something worth packing." for n in range(sentences))
    workspace.mkdir(parents=True, exist_ok=True)
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md"):
        (workspace / name).write_text(f"# {name}\n{filling}\n")
    session.pin("system.md", f"You are a packer. {filling}")
    session.pin("rules.md", f"Pack light. {filling}")
    context = session.path / "context"
    (context / "CONTEXT.md").write_text(f"## Task\n- {filling}\n## Facts\n- The bag holds 30 litres.\n")
    ref = {"id": "r1", "path": "https://example.org/map", "kind": "file", "summary": filling}
    (context / "refs.jsonl").write_bytes(msgspec.json.encode(ref) + b"\n")
    session.put_child("scout", handoff="Find water.", result=f"There is a spring. {filling}")
    session.memory = Memory()
    return [
        {"context_kind": "file_excerpt", "content": f"packing list: {filling}", "item_id": "list"},
        {"context_kind": "policy_note", "content": f"No fire. {filling}", "item_id": "policy"},
        {"context_kind": "manual_note", "content": "Low.", "item_id": "low", "priority": 0.1},
        {"context_kind": "durable_memory", "content": "Core.", "item_id": "core", "metadata": {"tier": "core"}},
    ]


def words_of(name: str, body: Mapping[str, Any]) -> tuple[list[str], int]:
    """All words of a rendered body, and how many messages it has."""
    listed = body["input" if name == "responses" else "messages"]
    before = body.get("system", [])
    return [words for one in (*before, *listed) for words in _words(one)], len(listed) + bool(before)


_SPOKEN = ("text", "thinking", "content", "output", "name", "arguments", "input", "refusal")
_NESTED = ("content", "tool_calls", "function", "custom", "summary", "output")


def _words(one: Mapping[str, Any]) -> Iterator[str]:
    for key, value in one.items():
        if isinstance(value, str):
            if key in _SPOKEN:
                yield value
        elif isinstance(value, Mapping):
            if key == "input":  # the arguments of a call, as an object
                yield msgspec.json.encode(value).decode()
            elif key in _NESTED:
                yield from _words(cast(Any, value))
        elif isinstance(value, list) and key in _NESTED:
            for inner in cast(list[Mapping[str, Any]], value):
                yield from _words(inner)


@lru_cache(maxsize=20_000)
def count(tokenizer: str, text: str) -> int:
    return counter_named(tokenizer).count(text)


def tokens_of(name: str, body: Mapping[str, Any], tokenizer: str) -> int:
    """The tokens of everything in a body that is words, and the least a provider adds."""
    words, messages = words_of(name, body)
    return sum(count(tokenizer, one) for one in words) + MESSAGE_TOKENS * messages


def bytes_of(name: str, body: Mapping[str, Any]) -> int:
    return sum(len(one.encode()) for one in words_of(name, body)[0])


def check_window(turn: Turn, limits: Limits, newest: Message | None) -> None:
    """Everything that holds for every pack for a model, whatever the history and the limits."""
    given = turn.assembly.given
    for name in NAMES:
        body = turn.request(name)
        assert dialect(name).validate(body) == []
        if limits.tokens is not None:
            assert tokens_of(name, body, turn.token_method) <= limits.tokens - limits.reserved_tokens, name
        if limits.bytes is not None:
            assert bytes_of(name, body) <= limits.bytes, name
    if limits.items is not None:
        assert len(turn.parts.epoch.prefix) + len(given.messages) + len(turn.parts.volatile) <= limits.items
    assert turn.record.used.fits(limits.room)
    assert given.messages[0].role == "user"
    assert newest is not None
    assert [one.content for one in given.messages if one.id and one.seq == newest.seq] == [newest.content]
    check_calls(given.messages)


def check_calls(messages: Sequence[Message]) -> None:
    """The invariants of a tail: each call is answered once, at once, behind all calls of its batch."""
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in waiting
            waiting.remove(message.tool_call_id)
            continue
        assert waiting == []
        waiting = [one.id for one in message.tool_calls]
    assert waiting == []


def check_left(turn: Turn, seqs: Iterable[int] = ()) -> None:
    """Everything that was available is in the pack or left out with a reason, not both; `seqs`: of all messages."""
    of_messages = [one for one in turn.omitted if one.item.startswith("messages:")]
    numbers = [(one, _span(one.item)) for one in of_messages if "/" not in one.item]
    shown = {message.seq for message in turn.parts.messages if message.id}
    whole = [item.id for item in turn.parts.epoch.prefix if not item.id.endswith(SHORTER)]
    shown |= {int(item[9:]) for item in whole if item.startswith("messages:")}
    for seq in seqs or range(1, turn.record.last + 1):
        told = [one for one, (start, stop) in numbers if start <= seq <= stop]
        assert bool(told) == (seq not in shown), (seq, told)
        assert len(told) <= 1 or turn.target != "model", (seq, told)
    # Parts that no provider takes are those of messages that are shown.
    assert {_span(one.item.partition("/")[0])[0] for one in of_messages if "/" in one.item} <= shown
    present = [item.id for item in turn.inserted if not item.id.endswith(CHANGED)]  # a thing may change twice
    assert len(set(present)) == len(present)
    left = [one.item for one in turn.omitted if one.item != "excerpts"]
    assert not set(left) & set(present)
    assert len(set(left)) == len(left)


def _span(item: str) -> tuple[int, int]:
    start, _, stop = item.removeprefix("messages:").partition("-")
    return int(start), int(stop or start)


def flatten(name: str, body: Mapping[str, Any]) -> list[bytes]:
    """What a provider's cache compares, in order; for Anthropic block by block, without marks."""
    if name != "anthropic":
        return [msgspec.json.encode(one) for one in body["input" if name == "responses" else "messages"]]
    turns: list[tuple[str, Any]] = [("system", body.get("system", []))]
    turns += [(message["role"], message["content"]) for message in body["messages"]]
    return [
        msgspec.json.encode((role, {key: value for key, value in block.items() if key != "cache_control"}))
        for role, blocks in turns
        for block in blocks
    ]


def stable_of(turn: Turn) -> dict[str, list[bytes]]:
    """The rendered prefix and tail of a turn, without what follows, in each dialect."""
    given = msgspec.structs.replace(turn.assembly.given, volatile=())
    return {name: flatten(name, dialect(name).render(given)) for name in NAMES}
