"""A snapshot is merged by id in each tier; what it leaves out is kept, and the best blocks stand first."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from derived.tiering import after, fold_tiers, folded, ids, made, took
from msgspec.structs import replace

from daypack.derived.tiers import SNAPSHOT, Accepted, Projection, Store, merge, project, read_policies
from daypack.types.history import Event
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import POLICIES, Block, Capability, TierPolicy

every_tier = pytest.mark.parametrize("tier", TIERS)


# Merging


@pytest.mark.requirement("G4", "S0-R14")
@every_tier
def test_a_known_id_is_updated_and_an_absent_one_is_kept(tier: Tier) -> None:
    seen = after([made("a"), made("b")], [made("a", "Something else.", round=2)], tier=tier)
    assert [(one.id, one.content) for one in seen.of(tier)] == [("a", "Something else."), ("b", "About b.")]


@pytest.mark.requirement("G4")
@every_tier
def test_an_empty_tier_erases_nothing(tier: Tier) -> None:
    assert ids(after([made("a")], [], tier=tier).of(tier)) == ["a"]


@pytest.mark.requirement("G4")
def test_a_reply_without_a_usable_snapshot_erases_nothing_and_is_counted() -> None:
    store = folded(took(1, {"core": [made("a")]}))
    merge(store, Accepted(message="msg-4", round=2, refused=3, violation_counts={"S0-R10": 3, "S0-R1": 1}))
    merge(store, Accepted(message="msg-6", round=3, refused=1, violation_counts={"S0-R1": 1}))
    seen = project(store, 3)
    assert ids(seen.core) == ["a"]
    assert (seen.dropped, seen.violation_counts) == ({"invalid_block": 4}, {"S0-R10": 3, "S0-R1": 2})
    assert (store.message, store.round) == (6, 3)


@pytest.mark.requirement("G4")
@every_tier
@pytest.mark.parametrize("how", [{"decay": 1}, {"confidence": 0}, {"decay": 1, "confidence": 0}])
def test_decay_1_or_confidence_0_deletes(tier: Tier, how: dict[str, Any]) -> None:
    seen = after([made("a"), made("b")], [made("a", round=2, **how)], tier=tier)
    assert ids(seen.of(tier)) == ["b"]
    assert seen.omitted == ()


@pytest.mark.requirement("G4")
def test_what_nearly_deletes_does_not() -> None:
    seen = after([made("a")], [made("a", decay=0.999, confidence=0.001, round=2)])
    assert ids(seen.core) == ["a"]


@pytest.mark.requirement("G4")
def test_a_deleted_block_can_come_back_and_deleting_what_is_not_there_is_nothing() -> None:
    gone = made("a", decay=1, round=2)
    assert ids(after([made("a")], [gone], [made("a", "New.", round=3)]).core) == ["a"]
    assert after([gone]).omitted == ()


@pytest.mark.requirement("G4")
def test_a_poor_update_does_not_take_the_place_of_a_good_block_and_a_later_good_one_does() -> None:
    good, poor = made("a", "Good."), made("a", "Poor.", confidence=0.2, round=2)
    seen = after([good], [poor])
    assert seen.core == (good,)
    assert [(one.block, one.reason) for one in seen.omitted] == [(poor, "threshold_confidence")]
    better = made("a", "Better.", round=3)
    seen = after([good], [poor], [better])
    assert (seen.core, seen.omitted) == ((better,), ())
    assert after([good], [poor], [made("a", decay=1, round=3)]) == Projection(round=3)


def test_a_poor_block_that_nothing_good_stands_for_is_told_and_not_shown() -> None:
    seen = after([made("a", decay=0.9)])
    assert (seen.core, seen.dropped) == ((), {"threshold_decay": 1})


def test_a_block_that_was_poor_by_other_limits_stays_poor_until_it_comes_again() -> None:
    strict = read_policies({"tiers": {"core": {"max_decay": 0.05}}})
    store = folded(took(1, {"core": [made("a")]}, policies=strict))
    [omitted] = project(store, 1).omitted
    assert (omitted.reason, omitted.note) == ("threshold_decay", "it was below the threshold when it came")
    merge(store, took(2, {"core": [made("a", round=2)]}))
    assert ids(project(store, 2).core) == ["a"]


@pytest.mark.requirement("G4")
def test_the_same_id_in_two_tiers_is_two_blocks() -> None:
    both: dict[Tier, Sequence[Block]] = {"core": [made("a", "Lasting.")], "working": [made("a", "Passing.")]}
    store = folded(took(1, both))
    merge(store, took(2, {"working": [made("a", decay=1, round=2)]}))
    seen = project(store, 2)
    assert ([one.content for one in seen.core], seen.working) == (["Lasting."], ())


@pytest.mark.requirement("S0-R14")
@pytest.mark.parametrize("turned", [False, True])
def test_of_an_id_that_comes_twice_in_a_snapshot_the_better_block_counts(turned: bool) -> None:
    pair = [made("a", "Better.", decay=0.1), made("a", "Worse.", decay=0.2)]
    assert [one.content for one in after(pair[::-1] if turned else pair).core] == ["Better."]
    newer = [made("a", "Older.", round=1), made("a", "Newer.", round=2)]
    store = folded(took(2, {"core": newer[::-1] if turned else newer}))
    assert [one.content for one in project(store, 2).core] == ["Newer."]


# Order, redundancy, the rest


@pytest.mark.requirement("S0-R15", "S0-R11.1", "S0-R12.2")
def test_blocks_stand_by_quality_then_the_newest_then_by_id() -> None:
    policies: dict[Tier, TierPolicy] = {tier: replace(POLICIES[tier], max_decay=1, min_confidence=0) for tier in TIERS}
    blocks = {
        1: [
            made("a", decay=0, confidence=0.5),
            made("s", decay=0.5, confidence=1),
            made("best", decay=0, confidence=1),
        ],
        2: [made("b0", decay=0.5, confidence=0.5)],
        3: [made("b2", decay=0.5, confidence=0.5), made("b1", decay=0.5, confidence=0.5)],
        9: [made("d", decay=0.999999, confidence=0.5), made("c", decay=0.5, confidence=0.000001)],
    }
    store = folded(*(took(number, {"core": some}, policies=policies) for number, some in blocks.items()))
    assert ids(project(store, 9, policies).core) == ["best", "a", "s", "b1", "b2", "b0", "c", "d"]


@pytest.mark.requirement("S0-R15")
def test_what_is_said_twice_is_shown_once_in_the_better_block() -> None:
    seen = after([made("b", "The  boat\nis red.", decay=0.2), made("a", "the boat is RED.")])
    assert ids(seen.core) == ["a"]
    assert [(one.block.id, one.reason, one.note) for one in seen.omitted] == [
        ("b", "redundant", "another block says the same")
    ]
    other = project(folded(took(1, {"core": [made("a", "Same.")], "working": [made("b", "Same.")]})), 1)
    assert (ids(other.core), ids(other.working)) == (["a"], ["b"])


def test_a_block_that_is_not_shown_hides_no_other_that_says_the_same() -> None:
    old, young = made("old", "Same."), made("young", "Same.", decay=0.2)
    seen = project(folded(took(1, {"ephemeral": [old]}), took(9, {"ephemeral": [young]})), 9)
    assert ids(seen.ephemeral) == ["young"]
    assert seen.dropped == {"expired_by_round": 1}


def test_the_active_task_stands_for_twelve_rounds_and_an_empty_one_changes_nothing() -> None:
    store = folded(took(3, active_task="Paint the hull. " * 60), took(4, active_task="  "), took(5))
    task = project(store, 15).active_task
    assert task.startswith("Paint the hull.")
    assert len(task) <= 512
    assert project(store, 16).active_task == ""
    merge(store, took(16, active_task="Sail."))
    assert project(store, 28).active_task == "Sail."


def test_capabilities_are_kept_until_others_come() -> None:
    store = folded(took(1, capabilities=(Capability("memory", "write_once"),)), took(2))
    assert store.capabilities == (Capability("memory", "write_once"),)


def test_unknown_keys_do_not_make_the_store_grow_for_ever() -> None:
    store = Store()
    sizes: list[int] = []
    for number in range(1, 601):
        merge(store, took(number, extra={f"key-{number}": "x" * 500}))
        sizes.append(len(msgspec.json.encode(store)))
    assert sizes[599] < 1.5 * sizes[299]


def test_events_of_another_writer_that_share_the_name_are_passed_over() -> None:
    good = msgspec.to_builtins(took(1, {"core": [made("a")]}))
    datas: list[Any] = [{}, {"message": "first", "round": 1}, {**good, "round": "1"}, {**good, "message": 5}, good]
    events = [Event(seq=at, id=f"ev-{at}", type=SNAPSHOT, data=data) for at, data in enumerate(datas, 1)]
    events.append(Event(seq=9, id="ev-9", type="context.turn", data=good))
    store = fold_tiers(events)
    assert (store.message, ids(project(store, 1).core)) == (2, ["a"])
