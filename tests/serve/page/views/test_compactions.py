"""Compactions on the page: documents before and after, records with their sources, losses, and undo."""

import json
from pathlib import Path
from typing import Any

import pytest
from serve.page.views.looking import OTHER, READER, do, look
from turn.compacting import BUDGET, fill, folded_of
from turn.scenes import MARKER, SECRET, logs, stage

from daypack.errors import AccessDenied, BadInput, SourceMissing
from daypack.importers.import_file import Destination, import_file
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.turn.evidence.words import LOSSES

HERE = {"agent": "default", "session": "work"}
NAME = "aaaaaaaa-0000-0000-0000-000000000000"


@pytest.fixture
def compacted(home: str) -> Session:
    """A session with two compactions."""
    session = stage(home)
    fill(session, 2)
    return session


def test_compactions_are_listed_newest_first(page: OpenedHome, compacted: Session) -> None:
    rows = look(page, "compactions", **HERE)["compactions"]
    assert [row["id"] for row in rows] == [known.id for known in reversed(compacted.compactions)]
    newest = compacted.compactions[-1]
    assert rows[0]["source"] == newest.source
    assert (rows[0]["start"], rows[0]["through"]) == (newest.start, newest.through)
    assert rows[0]["trigger_words"] == "the window was filling up"
    assert (rows[0]["before_tokens"], rows[0]["after_tokens"]) == (newest.before_tokens, newest.after_tokens)
    assert rows[0]["counts"] == newest.coverage
    assert 0 < rows[0]["coverage"] <= 1
    assert all(row["own"] and not row["undone"] for row in rows)
    assert [row["id"] for row in rows] == [fold.event for fold in reversed(compacted.turns.calls.read().folds)]


def test_a_compaction_has_its_documents_records_and_what_left(page: OpenedHome, compacted: Session) -> None:
    first, second = compacted.compactions
    shown = look(page, "compaction", **HERE, id=second.id)
    document = Path(compacted.history.layout.derived("context_doc")).read_text()
    assert shown["document_after"] == document
    assert shown["document_before"] == look(page, "compaction", **HERE, id=first.id)["document_after"]
    added = [line[1:] for line in shown["document_diff"] if line.startswith("+") and not line.startswith("+++")]
    assert added
    assert all(line in document.splitlines() for line in added)
    decisions = folded_of(compacted).records.decisions
    assert [(row["id"], row["text"], row["source"]) for row in shown["records"]["decisions"]] == [
        (known.id, known.decision, known.source) for known in decisions
    ]
    assert {row["new"] for row in shown["records"]["decisions"]} == {
        known.compaction == second.id for known in decisions
    }
    assert [row["id"] for row in shown["left"]] == [record.id for record in second.swapped]
    assert shown["left"]
    assert all(compacted.recall(row["id"]) for row in shown["left"])
    assert shown["losses"]
    assert all(row["words"] == LOSSES[row["reason"]] for row in shown["losses"])
    assert shown["can_undo"]
    assert look(page, "compaction", **HERE, id=first.id)["document_before"] is None


def test_undo_is_recorded_and_changes_the_next_pack(page: OpenedHome, compacted: Session) -> None:
    newest = compacted.compactions[-1]
    before = compacted.prepare(budget=BUDGET)
    answer = do(page, "undo", **HERE, compaction=newest.id)
    (event,) = [event for event in compacted.events() if event.id == answer["event"]]
    assert (event.type, event.data) == ("context.compaction.undone", {"compaction": newest.id})
    assert answer["undone"] == newest.id
    after = compacted.prepare(budget=BUDGET)
    assert (before.new_epoch, after.new_epoch) == ("", "compaction")
    assert after.prefix_sha256 != before.prefix_sha256
    row = look(page, "compactions", **HERE)["compactions"][0]
    assert (row["id"], row["undone"]) == (newest.id, True)
    shown = look(page, "compaction", **HERE, id=newest.id)
    assert not shown["can_undo"]
    assert (
        shown["document_before"] == look(page, "compaction", **HERE, id=compacted.compactions[-1].id)["document_after"]
    )
    with pytest.raises(SourceMissing):
        do(page, "undo", **HERE, compaction=newest.id)


def test_undoing_the_first_names_its_own_event(page: OpenedHome, compacted: Session) -> None:
    first, _ = compacted.compactions
    answer = do(page, "undo", **HERE, compaction=first.id)
    (event,) = [event for event in compacted.events() if event.id == answer["event"]]
    assert event.data == {"compaction": first.id}
    assert compacted.compactions == ()


def test_only_the_owner_with_write_access_undoes(page: OpenedHome, compacted: Session) -> None:
    name = compacted.compactions[-1].id
    for viewer in (OTHER, READER):
        with pytest.raises(AccessDenied):
            do(page, "undo", viewer, **HERE, compaction=name)
    with pytest.raises(AccessDenied):
        look(page, "compactions", OTHER, **HERE)
    with pytest.raises(BadInput):
        do(page, "undo", **HERE)
    assert compacted.compactions[-1].id == name


def test_looking_writes_nothing_to_the_logs(page: OpenedHome, compacted: Session) -> None:
    before = logs(compacted)
    rows = look(page, "compactions", **HERE)["compactions"]
    for row in rows:
        look(page, "compaction", **HERE, id=row["id"])
    with pytest.raises(SourceMissing):
        look(page, "compaction", **HERE, id="ev-999999")
    assert logs(compacted) == before


def test_secrets_are_redacted(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.append("user", f"We decided to use the token {SECRET} for the harbour.")
    fill(session)
    whole = json.dumps([look(page, "compaction", **HERE, id=known.id) for known in session.compactions])
    assert SECRET not in whole
    assert MARKER in whole


# Compactions of other programs


def claude(kind: str, uuid: str, words: str, **fields: Any) -> dict[str, Any]:
    content = words if kind == "user" else [{"type": "text", "text": words}]
    message = {"role": kind, "id": f"m-{uuid}", "content": content}
    return {"type": kind, "uuid": uuid, "sessionId": NAME, "message": message, **fields}


def boundary(uuid: str, second: int, *kept: str) -> dict[str, Any]:
    about = {"trigger": "auto", "preTokens": 90_000, "postTokens": 2_600, "preservedMessages": {"uuids": [*kept]}}
    at = f"2026-11-18T08:00:{second:02}.000Z"
    return {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "sessionId": NAME, "timestamp": at} | {
        "compactMetadata": about
    }


def imported(kind: str, home: str, tmp_path: Path, rows: list[dict[str, Any]]) -> str:
    path = tmp_path / f"{NAME}.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return import_file(kind, str(path), Destination(home))[0].session


def test_compactions_of_claude_code_are_shown_with_the_summary_it_wrote(
    page: OpenedHome, home: str, tmp_path: Path
) -> None:
    rows = [
        claude("user", "u1", "one"),
        claude("assistant", "a1", "two"),
        claude("user", "u2", "three"),
        boundary("s1", 1, "u2"),
        claude("user", "u3", "The first summary.", isCompactSummary=True),
        claude("user", "u4", "four"),
        boundary("s2", 2),
        claude("user", "u5", f"The second summary {SECRET}.", isCompactSummary=True),
    ]
    name = imported("claude-code", home, tmp_path, rows)
    here = {"agent": "default", "session": name}
    newest, oldest = look(page, "compactions", **here)["compactions"]
    assert (oldest["source"], newest["source"]) == ("messages:1-3", "messages:4-5")
    with page.session("default", name) as session:
        assert [fold.event for fold in session.turns.calls.read().folds] == [oldest["id"], newest["id"]]
    assert (newest["trigger"], newest["before_tokens"], newest["own"]) == ("auto", 90_000, False)
    assert newest["losses"] is None
    first = look(page, "compaction", **here, id=oldest["id"])
    assert (first["document_before"], first["document_after"]) == (None, "The first summary.")
    second = look(page, "compaction", **here, id=newest["id"])
    assert second["document_before"] == "The first summary."
    assert second["document_after"] == f"The second summary {MARKER}."
    assert "-The first summary." in second["document_diff"]
    assert not second["can_undo"]
    (left,) = first["left"]
    assert (left["id"], left["range"]) == ("messages:1-3", "1-3")
    assert "2 messages" in left["summary"]
    with pytest.raises(SourceMissing):
        do(page, "undo", **here, compaction=newest["id"])


def test_the_summary_of_codex_is_in_its_row(page: OpenedHome, home: str, tmp_path: Path) -> None:
    def item(role: str, words: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": words}]
        return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}

    rows: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": NAME}},
        item("user", "one"),
        item("assistant", "two"),
        {"type": "compacted", "payload": {"message": "What was done.", "replacement_history": [], "window_id": "w2"}},
        item("assistant", "three"),
    ]
    here = {"agent": "default", "session": imported("codex", home, tmp_path, rows)}
    (row,) = look(page, "compactions", **here)["compactions"]
    shown = look(page, "compaction", **here, id=row["id"])
    assert (shown["document_after"], shown["trigger"], shown["through"]) == ("What was done.", None, 2)
