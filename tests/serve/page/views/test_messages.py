"""The history on the page: messages as they were said, one of them whole, and recalled texts."""

from pathlib import Path

import pytest
from serve.page.views.looking import look
from serve.page.views.sessions import HERE, printed
from turn.scenes import MARKER, SECRET, append_raw, converse, stage

from daypack.errors import BadInput, SourceMissing
from daypack.serve.page.views.opened import OpenedHome

HOSTILE = "<script>alert(1)</script>\x00\x1b[31mred\x1b[0m\u202egnirts\u2066 ' \" \\ \ufeff\U0001f600"


def test_messages_are_listed_from_a_number_on(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 150)
    shown = look(page, "messages", **HERE, start=11, count=3)
    assert shown["total"] == 300
    assert [message["seq"] for message in shown["messages"]] == [11, 12, 13]
    first, stored = shown["messages"][0], session.messages()[10]
    assert (first["text"], first["role"], first["ts"]) == (stored.text, "user", stored.ts)
    assert first["tokens"] == session.history.count_tokens(stored)
    assert len(look(page, "messages", **HERE)["messages"]) == 200
    assert look(page, "messages", **HERE, start=301) == {"total": 300, "messages": []}
    assert [message["seq"] for message in look(page, "messages", **HERE, start=299)["messages"]] == [299, 300]
    with pytest.raises(BadInput, match="count"):
        look(page, "messages", **HERE, count=201)


def test_a_message_has_its_calls_result_thinking_and_media(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.append("user", [{"type": "text", "text": "Look"}, {"type": "image", "source": "plan.png"}], name="ann")
    parts = [{"type": "thinking", "text": "hmm", "signature": "c2ln"}, {"type": "text", "text": "Reading."}]
    session.append("assistant", parts, tool_calls=[{"id": "c1", "name": "read", "arguments": '{"a":1}'}])
    session.append("tool", "contents", tool_call_id="c1")
    append_raw(session, {"role": "assistant", "content": "Half", "meta": {"incomplete": "abandoned"}})
    asked, called, answered, broken = look(page, "messages", **HERE)["messages"]
    assert (asked["name"], asked["text"], asked["media"]) == ("ann", "Look", ["image plan.png"])
    assert (called["text"], called["thinking"]) == ("Reading.", "hmm")
    assert called["calls"] == [{"id": "c1", "name": "read", "arguments": '{"a":1}'}]
    assert (answered["answers"], answered["thinking"], answered["media"]) == ("c1", None, [])
    assert (broken["incomplete"], called["incomplete"]) == ("abandoned", None)


def test_hostile_text_passes_unharmed_and_a_long_line_is_cut(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.append("user", HOSTILE)
    long = "a very long line " * 60_000
    session.append("user", long)
    shown = look(page, "messages", **HERE)["messages"]
    assert shown[0]["text"] == HOSTILE
    assert (shown[1]["text"], shown[1]["chars"]) == (long[:4000], len(long))
    assert look(page, "message", **HERE, seq=2)["text"] == long
    recalled = look(page, "recall", **HERE, id="msg-2")
    assert (recalled["text"], recalled["chars"], recalled["lines"]) == (long[:200_000], len(long), 1)
    assert look(page, "recall", **HERE, id="msg-1")["text"] == HOSTILE


def test_secrets_are_redacted_before_texts_are_cut(page: OpenedHome, home: str) -> None:
    session = stage(home)
    split = "x " * 1990 + f"GITHUB_TOKEN={SECRET}"
    assert SECRET[:4] in split[:4000]
    parts = [{"type": "thinking", "text": f"their token {SECRET}"}, {"type": "text", "text": split}]
    call = {"id": "c1", "name": "login", "arguments": f'{{"token": "{SECRET}"}}'}
    session.append("assistant", parts, tool_calls=[call])
    for shown in (look(page, "messages", **HERE)["messages"][0], look(page, "message", **HERE, seq=1)):
        assert SECRET[4:10] not in str(shown)
        assert MARKER in shown["thinking"]
        assert MARKER in shown["calls"][0]["arguments"]
    assert SECRET[:8] not in look(page, "recall", **HERE, id="msg-1")["text"]


def test_with_redaction_off_everything_is_shown(page: OpenedHome, home: str) -> None:
    stage(home, redaction="off").append("user", SECRET)
    meta = Path(home, "home").rglob("meta.json")
    for path in meta:
        path.write_text(path.read_text().replace("{", '{"redaction":"off",', 1))
    assert look(page, "message", **HERE, seq=1)["text"] == SECRET


@pytest.mark.filterwarnings("ignore::daypack.errors.DamageWarning")
def test_a_damaged_line_is_left_out_and_said_to_be_damaged(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 2)
    session.close()
    path = Path(session.layout.messages)
    path.write_bytes(path.read_bytes().replace(b"Answer 1", b"ANSWER 1"))
    shown = look(page, "messages", **HERE)
    assert ([message["seq"] for message in shown["messages"]], shown["total"]) == ([1, 3, 4], 4)
    with pytest.raises(SourceMissing, match="message 2 is damaged"):
        look(page, "message", **HERE, seq=2)
    with pytest.raises(SourceMissing, match="the session has 4 messages"):
        look(page, "message", **HERE, seq=5)


def test_recall_returns_what_the_command_prints(
    page: OpenedHome, home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = stage(home)
    converse(session, 6)
    for name in ("messages:2-5", "msg-3", "messages:1"):
        found = printed(capsys, home, "recall", "work", name)
        shown = look(page, "recall", **HERE, id=name)
        assert {field: shown[field] for field in ("id", "source", "text", "lines")} == {
            field: found[field] for field in ("id", "source", "text", "lines")
        }
        assert (shown["chars"], shown["more"]) == (len(found["text"]), None)
    with pytest.raises(SourceMissing) as refused:
        look(page, "recall", **HERE, id="f99")
    assert refused.value.hint


def test_a_long_range_is_read_in_parts(page: OpenedHome, home: str) -> None:
    session = stage(home)
    converse(session, 400, words=60)
    name, seen = "messages:1-800", str(session.recall("messages:1-800"))
    texts: list[str] = []
    while name:
        shown = look(page, "recall", **HERE, id=name)
        assert len(shown["text"]) <= 200_000
        texts.append(shown["text"])
        name = shown["more"]
    assert len(texts) > 2
    assert "\n\n".join(texts) == seen
