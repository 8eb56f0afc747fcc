"""Children on the page: a tree of recorded children and of the sessions of sub-agents."""

import json
from pathlib import Path
from typing import Any

import pytest
from serve.page.views.looking import OTHER, look
from turn.scenes import MARKER, SECRET, logs, stage

from daypack.derived.children import ChildUpdate
from daypack.errors import AccessDenied
from daypack.importers.import_file import Destination, import_file
from daypack.serve.page.views import children
from daypack.serve.page.views.opened import OpenedHome
from daypack.turn.evidence.calls.parts import PARTS
from daypack.turn.turn import Turn
from daypack.types.records import Ref

HERE = {"agent": "default", "session": "work"}
NAME = "aaaaaaaa-0000-0000-0000-000000000000"


def names(rows: list[dict[str, Any]]) -> list[Any]:
    """The tree as names with those of their children."""
    return [[row["name"], *names(row["children"])] for row in rows]


def test_recorded_children_are_shown_as_they_were_put(page: OpenedHome, home: str) -> None:
    session = stage(home)
    ref = Ref(id="r1", path="src/a.py", kind="file", summary="the reader")
    update = ChildUpdate(artifacts={"report.md": b"done"}, session="helper")
    session.put_child("reader", update, handoff=f"Read it with {SECRET}.", result="It is fine.", refs=[ref])
    session.put_child("writer", handoff="Write it.")
    before = logs(session)
    reader, writer = look(page, "children", **HERE)["children"]
    assert (reader["name"], reader["status"], reader["session"]) == ("reader", "done", "helper")
    assert (reader["handoff"], reader["result"]) == (f"Read it with {MARKER}.", "It is fine.")
    assert (reader["refs"], reader["artifacts"]) == (1, ["context/child/reader/artifact/report.md"])
    assert (writer["status"], writer["result"], writer["session"]) == ("pending", None, None)
    assert (reader["messages"], writer["messages"], writer["calls"]) == (None, None, None)
    assert logs(session) == before


def test_the_session_of_a_recorded_child_is_counted_once(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.put_child("reader", ChildUpdate(session="work--reader"), handoff="Read it.")
    session.put_child("writer", handoff="Write it.")
    for child in ("reader", "writer", "other"):
        stage(home, f"work--{child}").append("user", "Begin.")
    stage(home, "work--reader--deep").append("user", "Begin.")
    rows = look(page, "children", **HERE)["children"]
    assert names(rows) == [["reader", ["deep"]], ["writer"], ["other"]]
    assert [row["messages"] for row in rows] == [1, 1, 1]
    assert [row["session"] for row in rows] == ["work--reader", "work--writer", "work--other"]
    assert rows[2]["status"] == "active"


def test_a_cycle_ends_and_the_tree_has_five_levels(page: OpenedHome, home: str) -> None:
    for number in range(8):
        session = stage(home, f"level-{number}")
        session.put_child("next", ChildUpdate(session=f"level-{(number + 1) % 8}"), handoff="Continue.")
    loop = stage(home, "loop")
    loop.put_child("self", ChildUpdate(session="loop"), handoff="Again.")
    rows = look(page, "children", agent="default", session="level-0")["children"]
    assert names(rows) == [["next", ["next", ["next", ["next", ["next"]]]]]]
    assert names(look(page, "children", agent="default", session="loop")["children"]) == [["self"]]


def test_sub_agents_of_an_imported_transcript_are_children(page: OpenedHome, home: str, tmp_path: Path) -> None:
    def row(kind: str, uuid: str, words: str, **fields: Any) -> dict[str, Any]:
        content = words if kind == "user" else [{"type": "text", "text": words}]
        message = {"role": kind, "id": f"m-{uuid}", "content": content}
        return {"type": kind, "uuid": uuid, "sessionId": NAME, "message": message, **fields}

    side = {"isSidechain": True, "agentId": "a1"}
    rows = [
        row("user", "u1", "Begin"),
        row("user", "v1", f"Look for the lamp {SECRET}.", parentUuid=None, **side),
        row("assistant", "v2", "It is in the harbour.", parentUuid="v1", **side),
        row("assistant", "u2", "Found."),
    ]
    path = tmp_path / f"{NAME}.jsonl"
    path.write_text("".join(f"{json.dumps(fields)}\n" for fields in rows))
    report = import_file("claude-code", str(path), Destination(home))[0]
    (child,) = look(page, "children", agent="default", session=report.session)["children"]
    assert (child["name"], child["session"], child["messages"]) == ("a1", f"{report.session}--a1", 2)
    assert (child["handoff"], child["result"]) == (f"Look for the lamp {MARKER}.", "It is in the harbour.")


def test_a_child_has_a_strip_of_its_newest_calls(page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_BARS", 3)
    session, child = stage(home), stage(home, "work--reader")
    session.put_child("idle", handoff="Wait.")
    turns: list[Turn] = []
    for number in range(5):
        child.append("user", f"Question {number}")
        turns.append(child.prepare(budget=8000 + number))
        child.accept("An answer.")
    idle, reader = look(page, "children", **HERE)["children"]
    assert (idle["calls"], idle["strip"]) == (None, None)
    assert reader["calls"] == 5
    assert reader["strip"]["parts"] == list(PARTS)
    assert [sum(split) for split in reader["strip"]["splits"]] == [turn.tokens for turn in turns[2:]]
    assert reader["strip"]["budget"] == 8004


def test_only_the_owner_sees_children(page: OpenedHome, home: str) -> None:
    assert stage(home).children == ()
    assert look(page, "children", **HERE) == {"children": []}
    with pytest.raises(AccessDenied):
        look(page, "children", OTHER, **HERE)
