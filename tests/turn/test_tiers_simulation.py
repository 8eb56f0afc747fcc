"""A hundred rounds with the protocol, and the fold of snapshots through the ledger: always the same tiers."""

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from derived.tiering import fold_tiers, made, took
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.scenes import Clock, close_all, digest, outputs, sent, stage
from turn.snapshot_replies import ask, block, exchange, frozen, reply_to, taken_in, talking, volatile

from daypack.derived.tiers import project
from daypack.session import Session
from daypack.turn.ledger import Ledger
from daypack.types.kinds import TIERS
from daypack.upkeep.rebuild import rebuild

ROUNDS = 100
BUDGET = 5000


def brought(number: int) -> dict[str, Any]:
    """What a model keeps in a round: a hint each time, a task every second time, now and then something lasting."""
    given_blocks: dict[str, Any] = {
        "ephemeral": [block(f"temp-{number:03}", f"Hint of round {number}.", decay=0.7, round=number)],
        "active_task": f"Task {number // 10}.",
    }
    if number % 2 == 0:
        given_blocks["working"] = [
            block(f"work-{number:03}", f"Step {number} of the hull.", decay=0.4, confidence=0.8, round=number)
        ]
    if number % 20 == 1:
        given_blocks["core"] = [block(f"core-{number:03}", f"Pier {number} belongs to Ada.", round=number)]
    if number == 50:
        given_blocks["core"] = [block("core-021", decay=1, round=number)]
    return given_blocks


def core_of(number: int) -> list[str]:
    """The lasting blocks after a round, best first: of two equal ones the newer."""
    standing = [f"core-{one:03}" for one in range(number, 0, -1) if one % 20 == 1]
    return [one for one in standing if not (one == "core-021" and number >= 50)]


def ids(session: Session, tier: str) -> list[str]:
    return [one.id for one in getattr(session.tiers, tier)]


@pytest.mark.requirement("G2", "G3", "S0-N2", "S0-N7", "S0-N8", "S0-N9", "S0-N10")
def test_a_hundred_rounds_stay_bounded_and_come_back_the_same(home: str) -> None:
    clock = Clock()
    session = talking(home, clock=clock)
    proofs: dict[str, tuple[str, str]] = {}
    before, epochs = "", 0
    for number in range(1, ROUNDS + 1):
        clock.now += 60
        turn = ask(
            session, f"Question {number} about the harbour: " + "what of the tide and the ropes? " * 8, budget=BUDGET
        )
        assert turn.expected
        assert turn.expected["runtime"]["round"] == number
        assert turn.tokens <= BUDGET
        if turn.new_epoch:
            epochs += 1
            core = frozen(turn, "blocks:core")
            assert [line[2:10] for line in core.text.splitlines()] == core_of(number - 1) if core else number == 1
        else:
            assert turn.quoted == before
        changed = volatile(turn, "blocks:core~changed")
        assert changed is None or "core-" in changed.text
        before = turn.quoted
        said = "".join(outputs(turn)[1:2]) + sent(turn)
        proofs[turn.event_id or ""] = (digest(said.encode()), turn.prefix_sha256)
        session.accept(reply_to(turn, f"Answer {number}: " + "the tide is high. " * 8, **brought(number)))
        assert ids(session, "ephemeral") == [f"temp-{one:03}" for one in range(number, max(0, number - 4), -1)]
        assert ids(session, "working") == [
            f"work-{one:03}" for one in range(number, max(0, number - 13), -1) if one % 2 == 0
        ]
        assert ids(session, "core") == core_of(number)
        assert session.tiers.violation_counts == {}
    assert epochs > 3
    assert len(taken_in(session)) == session.tiers.round == ROUNDS

    seen = session.tiers
    close_all()
    shutil.rmtree(session.layout.context)
    again = stage(home)
    assert again.tiers == seen
    rebuild(again.history, again.turns)
    assert stage(home).tiers == seen
    for event_id, (whole, prefix) in proofs.items():
        replayed = again.replay(event_id)
        assert (digest((replayed.pack_md + sent(replayed)).encode()), replayed.prefix_sha256) == (whole, prefix)


@pytest.mark.requirement("G2")
def test_the_prefix_stays_while_core_does_and_whatever_else_happens(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    session.refresh()
    first = exchange(session)
    for number in range(3, 20):
        turn = exchange(
            session,
            core=[block(confidence=0.9 + number / 1000, round=number)] if number % 3 else [],
            working=[block(f"w{number}", f"Step {number}.", round=number)],
            ephemeral=[block(f"e{number}", f"Hint {number}.", round=number)],
        )
        assert (turn.new_epoch, turn.prefix_sha256) == ("", first.prefix_sha256)
        assert volatile(turn, "blocks:core~changed") is None


# The fold through the ledger

IDS = st.sampled_from(("a", "b", "c"))
NUMBERS = st.sampled_from((0, 0.1, 0.3, 0.5, 0.9, 1))
WORDS = st.sampled_from(("One.", "Two.", "记忆", "x" * 700))
GOOD = st.builds(block, IDS, WORDS, decay=NUMBERS, confidence=NUMBERS, round=st.integers(0, 9))
BLOCKS: st.SearchStrategy[list[Any]] = st.lists(GOOD | st.sampled_from(("a story", {"id": "x"}, 5)), max_size=3)
REPLIES = st.fixed_dictionaries(dict.fromkeys(TIERS, BLOCKS)) | st.none()
STEPS = st.lists(st.tuples(REPLIES, st.sampled_from(("go on", "save", "reopen", "delete", "damage"))), max_size=5)


@pytest.mark.requirement("G4")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_the_tiers_are_the_same_folded_at_once_or_step_by_step(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[dict[str, Any] | None, str]]
) -> None:
    home = os.fspath(tmp_path_factory.mktemp("home"))
    session = talking(home)
    try:
        for tiers, then in steps:
            turn = ask(session)
            session.accept("Nothing." if tiers is None else reply_to(turn, **tiers))
            ledger = Path(session.layout.derived("ledger"))
            if then == "save":
                session.turns.inputs.ledger.read()
                session.turns.inputs.ledger.save(always=True)
            elif then == "reopen":
                session = stage(home)
            elif then == "delete":
                ledger.unlink(missing_ok=True)
                session = stage(home)
            elif then == "damage" and ledger.exists():
                ledger.write_bytes(ledger.read_bytes()[:-7])
                session = stage(home)
        events = list(session.events())
        whole = project(fold_tiers(events), len(steps))
        assert session.tiers == whole
        assert stage(home).tiers == whole
        fresh = Ledger(stage(home).history).read()
        assert project(fresh.tiers, fresh.rounds) == whole
        assert all(len(whole.of(tier)) <= 3 for tier in TIERS)
    finally:
        close_all()


def test_the_ledger_goes_on_from_its_file_without_counting_twice(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    exchange(session, core=["a story"])
    ledger = session.turns.inputs.ledger
    ledger.read()
    ledger.save(always=True)
    other = stage(home)
    exchange(other, core=["a story"])
    assert other.tiers.dropped == {"invalid_block": 2}
    assert other.tiers.round == 3
    assert session.tiers == other.tiers


def test_an_event_of_another_writer_that_shares_the_name_changes_nothing(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    before = session.tiers
    for data in ({}, {"message": "x", "round": 1}, {"message": "msg-9", "round": "many"}, {"message": "msg-9"}):
        session.append_event("context.snapshot", data)
    assert session.tiers == before == stage(home).tiers


@pytest.mark.parametrize(
    "message", ["msg-3", "msg-999", "msg-999999999999999", "msg-", "msg--1", "msg-²", "2", None, 2]
)
def test_an_event_about_a_message_that_is_not_there_is_passed_over(home: str, message: Any) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    before = session.tiers
    data = msgspec.to_builtins(took(1, {"core": [made("forged")]}))
    session.append_event("context.snapshot", {**data, "message": message})
    assert session.tiers == before == stage(home).tiers
    exchange(session, core=[block("core-002", "The bay is deep.")])  # what comes after counts all the same
    assert sorted(one.id for one in session.tiers.core) == ["core-001", "core-002"]


def test_an_event_of_a_round_that_has_not_been_counts_as_of_the_newest(home: str) -> None:
    session = talking(home)
    exchange(session, ephemeral=[block("mine", "The bay is deep.")])
    data = msgspec.to_builtins(took(10**12, {"ephemeral": [made("far", round=10**12)], "core": [made("lasting")]}))
    session.append_event("context.snapshot", {**data, "message": "msg-2"})
    seen = stage(home).tiers
    assert {one.id: one.round for one in (*seen.ephemeral, *seen.core)} == {"mine": 1, "far": 1, "lasting": 1}
    for _ in range(4):
        exchange(session)
    assert stage(home).tiers.ephemeral == ()
    assert [one.id for one in stage(home).tiers.core] == ["lasting"]


def saved(session: Session) -> tuple[Path, dict[str, Any]]:
    """The file of the ledger, and what it holds."""
    session.turns.inputs.ledger.read()
    session.turns.inputs.ledger.save(always=True)
    path = Path(session.layout.derived("ledger"))
    return path, msgspec.json.decode(path.read_bytes())


@pytest.mark.parametrize("change", ["version", "older", "blocks", "below_threshold", "nothing"])
def test_a_ledger_of_another_version_or_without_a_tier_is_folded_anew(home: str, change: str) -> None:
    session = talking(home)
    exchange(session, core=[block()], working=[block("w", "The bay is deep.")])
    before = session.tiers
    path, data = saved(session)
    tiers = data["tiers"]
    tiers["violation_counts"] = {"S0-R1": 77}  # to see whether the file was believed
    if change == "version":
        data["version"] += 1
    elif change == "older":
        del data["version"]
    elif change in ("blocks", "below_threshold"):
        tiers[change] = {"core": {}, "working": {}}
    path.write_bytes(msgspec.json.encode(data))
    seen = stage(home).tiers
    if change == "nothing":
        assert seen.violation_counts == {"S0-R1": 77}
    else:
        assert seen == before
    exchange(stage(home), ephemeral=[block("e", "The tide turns.", round=2)])
    assert [one.id for one in stage(home).tiers.ephemeral] == ["e"]
