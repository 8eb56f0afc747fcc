"""The tiers on the page: as they were after each round, and what changed in it."""

from typing import Any

import msgspec
import pytest
from serve.page.views.looking import OTHER, look
from turn.scenes import MARKER, SECRET, logs
from turn.snapshot_replies import ask, block, exchange, talking

from daypack.errors import AccessDenied, NotFound
from daypack.serve.page.views.opened import OpenedHome
from daypack.types.kinds import TIERS

HERE = {"agent": "default", "session": "work"}


def states(shown: dict[str, Any], tier: str) -> dict[str, str]:
    return {row["id"]: row["state"] for row in shown[tier]}


def test_each_round_is_shown_as_it_was(page: OpenedHome, home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("core-1")], working=[block("work-1", "Paint.")], active_task="Paint the hull.")
    exchange(session, core=[block("core-2", "The boat is red.")], working=[block("work-1", "Paint it red.")])
    exchange(session, core=[block("core-1", decay=1.0)])
    before = logs(session)
    newest = look(page, "tiers", **HERE)
    assert newest["protocol"] is True
    assert [row["round"] for row in newest["rounds"]] == [1, 2, 3]
    assert [row["message"] for row in newest["rounds"]] == [2, 4, 6]
    assert [(row["core"], row["working"]) for row in newest["rounds"]] == [(1, 1), (2, 1), (1, 1)]
    assert newest["round"] == 3
    assert states(newest, "core") == {"core-2": "kept"}
    first = look(page, "tiers", **HERE, round=1)
    assert states(first, "core") == {"core-1": "new"}
    assert first["active_task"] == "Paint the hull."
    second = look(page, "tiers", **HERE, round=2)
    assert states(second, "core") == {"core-1": "kept", "core-2": "new"}
    assert states(second, "working") == {"work-1": "changed"}
    assert second["working"][0]["content"] == "Paint it red."
    assert logs(session) == before


def test_the_newest_round_is_what_the_session_shows(page: OpenedHome, home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("core-1")], ephemeral=[block("temp-1", "Tide."), block("temp-2", "Low.", decay=0.9)])
    for count in range(6):
        shown = look(page, "tiers", **HERE)
        now = session.tiers
        assert shown["round"] == now.round
        for tier in TIERS:
            assert [row["id"] for row in shown[tier]] == [known.id for known in now.of(tier)]
            assert [row["age"] for row in shown[tier]] == [now.round - known.round for known in now.of(tier)]
        assert [(row["id"], row["reason"]) for row in shown["omitted"]] == [
            (dropped.block.id, dropped.reason) for dropped in now.omitted
        ]
        assert {row["rule"]: row["count"] for row in shown["violations"]} == now.violation_counts
        if count % 2:
            ask(session)  # a round whose reply has not come
        else:
            exchange(session, working=[block(f"work-{count}", f"Step {count}.")])
            session.append("user", "and?")
            session.prepare()
            session.accept("A reply without a snapshot.")
    assert "expired_by_round" in {row["reason"] for row in look(page, "tiers", **HERE)["omitted"]}
    assert all(row["words"] for row in look(page, "tiers", **HERE)["violations"])


def test_rounds_are_continued_when_the_log_grows(page: OpenedHome, home: str) -> None:
    session = talking(home)
    grown: dict[str, Any] = {}
    for number in range(5):
        exchange(session, core=[block(f"core-{number}", f"Fact {number}.")])
        session.append_event("note", {"quoted": '"context.snapshot"'})
        grown = look(page, "tiers", **HERE)
    page.close()
    assert look(page, "tiers", **HERE) == grown
    exchange(session, core=[block("core-9", "Fact 9.")])
    assert states(look(page, "tiers", **HERE), "core")["core-9"] == "new"


def test_a_foreign_snapshot_changes_nothing(page: OpenedHome, home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("core-1")])
    session.append_event("context.snapshot", {"message": "msg-999", "round": 1})
    session.append_event("context.snapshot", {"words": "of another program"})
    session.append_event("context.snapshot", {"message": "msg-1", "round": 70})
    shown = look(page, "tiers", **HERE)
    assert [row["round"] for row in shown["rounds"]] == [1]
    assert shown["round"] == session.tiers.round == 1


def test_a_session_without_snapshots_has_no_rounds(page: OpenedHome, home: str) -> None:
    session = talking(home)
    session.switch("protocol", on=False)
    session.append("user", "Hello")
    session.prepare()
    shown = look(page, "tiers", **HERE)
    assert (shown["protocol"], shown["rounds"], shown["core"], shown["omitted"]) == (False, [], [], [])


def test_secrets_are_redacted_and_unknown_rounds_refused(page: OpenedHome, home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("core-1", f"The token is {SECRET}.")])
    whole = msgspec.json.encode(look(page, "tiers", **HERE)).decode()
    assert SECRET not in whole
    assert MARKER in whole
    with pytest.raises(NotFound):
        look(page, "tiers", **HERE, round=7)
    with pytest.raises(AccessDenied):
        look(page, "tiers", OTHER, **HERE)
