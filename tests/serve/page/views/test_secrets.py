"""No secret of a known format leaves a session by its page, wherever it is; unless redaction is off."""

import gzip
import re
import shutil
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from serve.page.views.looking import look
from serve.page.views.sessions import HERE
from turn.scenes import MARKER, SECRET, item, stage

from daypack.derived.children import ChildUpdate
from daypack.hooks import failures
from daypack.serve.page.export import export_session
from daypack.serve.page.views import registry
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session


def tools(words: str) -> list[dict[str, Any]]:
    """A tool with a secret in its name, its description and its parameters."""
    schema = {"type": "object", "properties": {SECRET: {"type": "string", "enum": [SECRET]}}}
    function = {"name": SECRET, "description": f"{words} with {SECRET}", "parameters": schema}
    return [{"type": "function", "function": function}]


def planted(home: str) -> tuple[Session, str, str]:
    """A session with a secret wherever a caller can put one, and the events of its two calls."""
    session = stage(home, model=f"model-{SECRET}")
    session.pin(f"pin-{SECRET}", f"Use {SECRET}.")
    session.append("user", f"My key is {SECRET}.")
    session.append("assistant", "", tool_calls=[{"id": "call1", "name": SECRET, "arguments": f'{{"a":"{SECRET}"}}'}])
    session.append("tool", f"It is {SECRET}.", tool_call_id="call1")
    update = ChildUpdate(artifacts={f"{SECRET}.md": b"done"})
    session.put_child("worker", update, handoff=f"Use {SECRET}.", result=f"It is {SECRET}.")
    session.append("user", "And now?")
    first = session.prepare(budget=6000, tools=tools("Read"), items=[item(content=f"Note {SECRET}")])
    session.accept(f"I keep {SECRET}.")
    session.append("user", "Go on.")
    second = session.prepare(budget=6000, tools=tools("Read again"))
    assert first.event_id
    assert second.event_id
    return session, first.event_id, second.event_id


def answers(page: OpenedHome, event: str, before: str) -> Iterator[tuple[str, str]]:
    """Everything that the views answer about a call, its session and the home."""
    for view in sorted(
        registry.VIEWS.keys() - {"memory", "entries", "document", "memory-search", "compaction", "item"}
    ):
        arguments = {
            "event": event,
            "before": before,
            "after": event,
            "budget": 5000,
            "start": 1,
            "count": 50,
            "seq": 1,
            "q": "key",
        }
        yield view, msgspec.json.encode(look(page, view, **HERE, **arguments, id="messages:1")).decode()
    for shown in look(page, "call", **HERE, event=event)["items"]:
        yield "item", look(page, "item", **HERE, event=event, item=shown["id"])["text"]
    for dialect in look(page, "call", **HERE, event=event)["dialects"]:
        yield "request", look(page, "request", **HERE, event=event, dialect=dialect)["text"]


@pytest.fixture(autouse=True)
def _failed_hook(page: OpenedHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Path(page.home.folder).mkdir(parents=True, exist_ok=True)
    line = f"2026-11-18T09:12:44Z claude UserPromptSubmit 5ac28188 StorageFailed: {SECRET}\n"
    Path(page.home.folder, failures.LOG).write_text(line)


@pytest.mark.requirement("G18")
def test_no_view_and_no_export_has_a_secret(page: OpenedHome, home: str) -> None:
    _, first, second = planted(home)
    for event in (first, second):
        found = list(answers(page, event, first))
        assert [view for view, text in found if SECRET in text] == []
        marked = {view for view, text in found if MARKER in text}
        assert marked >= {"call", "item", "request", "session", "messages", "children", "health"}
    assert MARKER in msgspec.json.encode(look(page, "diff", **HERE, after=second)["rows"]).decode()
    data, contents = export_session(page, "default", "work")
    [packed] = re.findall(rb'id="daypack-export">([^<]+)<', data)
    inside = gzip.decompress(b64decode(packed)).decode()
    assert (contents.calls, contents.unreadable) == (2, 0)
    assert MARKER in inside
    assert SECRET not in inside
    assert SECRET not in data.decode()


@pytest.mark.requirement("G18")
def test_a_call_whose_texts_are_gone_has_no_secret(page: OpenedHome, home: str) -> None:
    session, _, event = planted(home)
    shutil.rmtree(session.layout.blob)
    shown = look(page, "call", **HERE, event=event)
    assert shown["content"] == "unknown"
    assert shown["model"] == f"model-{MARKER}"
    assert SECRET not in msgspec.json.encode(shown).decode()


def test_a_session_without_redaction_is_shown_as_it_is(
    page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYPACK_REDACTION", "off")
    _, _, event = planted(home)
    shown = look(page, "call", **HERE, event=event)
    assert shown["model"] == f"model-{SECRET}"
    assert SECRET in look(page, "item", **HERE, event=event, item="tools")["text"]
    assert SECRET in look(page, "request", **HERE, event=event)["text"]
    assert look(page, "session", **HERE)["facts"]["pins"] == [f"pin-{SECRET}.md"]
