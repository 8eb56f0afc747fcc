"""The tiers: thresholds, ageing and caps decide what is shown; what is not is counted with its reason."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from derived.tiering import LIMITS, SHOWN, STORED, after, folded, ids, made, took

from daypack.derived.tiers import merge, project, read_policies
from daypack.errors import BadConfig
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import POLICIES, Block, TierPolicy

every_tier = pytest.mark.parametrize("tier", TIERS)


# The thresholds


@pytest.mark.requirement("G1", "S0-R13.1")
@every_tier
def test_a_block_on_the_threshold_is_shown_and_one_beyond_it_is_not(tier: Tier) -> None:
    decay, confidence = LIMITS[tier]
    seen = after(
        [
            made("edge", decay=decay, confidence=confidence),
            made("stale", decay=decay + 0.001, confidence=1),
            made("unsure", decay=0, confidence=confidence - 0.001),
        ],
        tier=tier,
    )
    assert ids(seen.of(tier)) == ["edge"]
    assert {one.block.id: one.reason for one in seen.omitted} == {
        "stale": "threshold_decay",
        "unsure": "threshold_confidence",
    }
    assert seen.dropped == {"threshold_decay": 1, "threshold_confidence": 1}
    assert {one.block.id: one.note for one in seen.omitted} == {
        "stale": f"decay {decay + 0.001:g} is over {decay:g}",
        "unsure": f"confidence {confidence - 0.001:g} is under {confidence:g}",
    }


@pytest.mark.requirement("G1")
def test_the_sample_blocks_of_the_protocol_are_shown() -> None:
    samples: dict[Tier, Sequence[Block]] = {
        "core": [Block("core-001", "identity", 0.05, 0.95, 1, ("agent", "identity"), "长期核心记忆")],
        "working": [Block("work-001", "task", 0.4, 0.78, 1, ("task", "active"), "当前任务相关记忆")],
        "ephemeral": [Block("temp-001", "hint", 0.75, 0.55, 1, ("temporary",), "临时上下文信息")],
    }
    seen = project(folded(took(1, samples)), 1)
    assert {tier: list(seen.of(tier)) for tier in TIERS} == samples
    assert seen.dropped == {}


@pytest.mark.requirement("G1")
def test_the_limits_can_be_set_for_each_tier_and_the_others_stay() -> None:
    policies = read_policies(
        {"tiers": {"working": {"max_decay": 0.2, "max_rounds": 2}, "core": {"min_confidence": 0.9, "max_items": 1}}}
    )
    assert policies == {
        "core": TierPolicy(max_decay=0.35, min_confidence=0.9, max_items=1),
        "working": TierPolicy(max_decay=0.2, min_confidence=0.55, max_items=48, max_rounds=2),
        "ephemeral": POLICIES["ephemeral"],
    }
    blocks: dict[Tier, Sequence[Block]] = {
        "core": [made("sure", confidence=0.95), made("also", confidence=0.9), made("less", confidence=0.89)],
        "working": [made("near", decay=0.2), made("far", decay=0.21)],
    }
    store = folded(took(1, blocks, policies=policies))
    seen = project(store, 3, policies)
    assert (ids(seen.core), ids(seen.working)) == (["sure"], ["near"])
    assert {one.block.id: one.reason for one in seen.omitted} == {
        "also": "over_max_items",
        "less": "threshold_confidence",
        "far": "threshold_decay",
    }
    assert project(store, 4, policies).working == ()


@pytest.mark.requirement("G1")
def test_a_stricter_limit_counts_for_blocks_that_came_before_it() -> None:
    store = folded(took(1, {"core": [made("old", decay=0.3)]}))
    strict = read_policies({"tiers": {"core": {"max_decay": 0.2}}})
    assert project(store, 1, strict).dropped == {"threshold_decay": 1}
    assert ids(project(store, 1).core) == ["old"]


def test_without_settings_the_policies_are_the_defaults() -> None:
    assert read_policies({}) == POLICIES
    assert read_policies({"tiers": {}, "model": "gpt-4o"}) == POLICIES


@pytest.mark.parametrize(
    ("given_tiers", "problem"),
    [
        ({"core": {"max_decay": 1.5}}, "max_decay"),
        ({"core": {"min_confidence": -0.1}}, "min_confidence"),
        ({"working": {"max_items": -1}}, "max_items"),
        ({"working": {"max_items": 1.5}}, "max_items"),
        ({"working": {"max_rounds": "many"}}, "max_rounds"),
        ({"working": {"max_decay": True}}, "max_decay"),
        ({"ephemeral": {"colour": 1}}, "colour"),
        ({"longterm": {}}, "longterm"),
        ({"core": 5}, "core"),
        (5, "tiers"),
    ],
)
def test_a_bad_setting_is_refused_with_what_there_is(given_tiers: Any, problem: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_policies({"tiers": given_tiers}, "/home/config.toml")
    assert caught.value.place == "/home/config.toml"
    assert "max_decay, min_confidence, max_items, max_rounds" in str(caught.value)
    if problem not in ("core", "tiers"):
        assert problem in caught.value.problem


# Ageing


@pytest.mark.requirement("G2", "S0-N9", "S0-N10", "S0-N11")
@pytest.mark.parametrize(("tier", "rounds"), [("working", 12), ("ephemeral", 3)])
def test_a_block_is_shown_until_its_age_is_beyond_that_of_its_tier(tier: Tier, rounds: int) -> None:
    store = folded(took(5, {tier: [made("a", round=5)]}))
    assert ids(project(store, 5 + rounds).of(tier)) == ["a"]
    gone = project(store, 5 + rounds + 1)
    assert gone.of(tier) == ()
    assert [(one.reason, one.note) for one in gone.omitted] == [
        ("expired_by_round", f"{rounds + 1} rounds old, shown for {rounds}")
    ]


@pytest.mark.requirement("G2", "S0-N8")
def test_a_core_block_is_shown_however_old_it_is() -> None:
    store = folded(took(1, {"core": [made("a")]}))
    for number in range(2, 400):
        merge(store, took(number, {"core": [made("b", round=number)]}))
    assert ids(project(store, 100_000).core) == ["b", "a"]


@pytest.mark.requirement("G2")
@pytest.mark.parametrize("named", [0, 6, 10, 900])
def test_age_counts_from_the_round_a_block_came_in_not_from_the_one_it_names(named: int) -> None:
    store = folded(took(10, {"ephemeral": [made("a", round=named)]}))
    assert store.blocks["ephemeral"]["a"].round == 10
    assert ids(project(store, 13).ephemeral) == ["a"]
    assert project(store, 14).ephemeral == ()


@pytest.mark.requirement("G2", "S0-R14")
def test_an_update_makes_a_block_young_again() -> None:
    first, again = took(1, {"ephemeral": [made("a")]}), took(4, {"ephemeral": [made("a", round=4)]})
    assert ids(project(folded(first, again), 7).ephemeral) == ["a"]
    assert project(folded(first), 7).ephemeral == ()


@pytest.mark.requirement("G2")
@every_tier
def test_the_stored_decay_is_never_rewritten(tier: Tier) -> None:
    store = folded(took(1, {tier: [made("a", decay=0.25)]}))
    before = msgspec.json.encode(store)
    for number in range(1, 40):
        project(store, number)
    assert msgspec.json.encode(store) == before
    merge(store, took(20, {}))
    assert store.blocks[tier]["a"].decay == 0.25


@pytest.mark.requirement("G2")
@pytest.mark.parametrize(("tier", "kept"), [("working", 120), ("ephemeral", 30)])
def test_raw_copies_outlast_what_is_shown(tier: Tier, kept: int) -> None:
    store = folded(took(1, {tier: [made("a")]}))
    merge(store, took(1 + kept))
    assert project(store, 1 + kept).of(tier) == ()
    assert "a" in store.blocks[tier]
    merge(store, took(2 + kept))
    assert store.blocks[tier] == {}


@pytest.mark.requirement("G2")
@every_tier
def test_the_store_holds_so_many_raw_copies_and_takes_no_more(tier: Tier) -> None:
    many = [made(f"b{number:03}", confidence=0.9 + number / 10000) for number in range(STORED[tier] + 7)]
    store = folded(took(1, {tier: many}))
    assert list(store.blocks[tier]) == ids(many[: STORED[tier]])
    poor = [made(f"p{number:03}", decay=0.9 + number / 10000) for number in range(STORED[tier] + 7)]
    merge(store, took(2, {tier: poor}))
    assert list(store.below_threshold[tier]) == ids(poor[: STORED[tier]])
    assert list(store.blocks[tier]) == ids(many[: STORED[tier]])


# The caps of the window


@pytest.mark.requirement("G3")
@every_tier
def test_a_tier_shows_so_many_blocks_and_counts_the_others(tier: Tier) -> None:
    many = [made(f"b{number:02}") for number in range(SHOWN[tier] + 5)]
    seen = after(many, tier=tier)
    assert ids(seen.of(tier)) == ids(many[: SHOWN[tier]])
    assert seen.dropped == {"over_max_items": 5}
    assert seen.omitted[0].note == f"the tier shows {SHOWN[tier]}"


@pytest.mark.requirement("G3")
def test_content_is_shown_with_at_most_512_characters_and_stored_whole() -> None:
    long = made("long", "word " * 200)
    store = folded(took(1, {"core": [made("fits", "x" * 512), long]}))
    fits, cut = project(store, 1).core
    assert fits.content == "x" * 512
    assert len(cut.content) <= 512
    assert cut.content.startswith("word word")
    assert long.content.startswith(cut.content)
    assert store.blocks["core"]["long"] == long


@pytest.mark.requirement("G3")
def test_the_type_is_shown_with_at_most_32_characters() -> None:
    [seen] = after([made("a", type="t" * 33)]).core
    assert seen.type == "t" * 32


@pytest.mark.requirement("G3")
def test_tags_are_shown_once_at_most_eight_of_32_characters() -> None:
    given_tags = ("a", "b", "a", "x" * 40, "x" * 33, *"cdefgh")
    [seen] = after([made("a", tags=given_tags)]).core
    assert seen.tags == ("a", "b", "x" * 32, "c", "d", "e", "f", "g")
    [plain] = after([made("a", tags=tuple("abcdefgh"))]).core
    assert plain.tags == tuple("abcdefgh")


@pytest.mark.requirement("G3")
def test_a_block_sent_again_with_a_round_that_has_not_been_is_of_the_current_one() -> None:
    store = folded(took(4, {"ephemeral": [made("a")]}), took(6, {"ephemeral": [made("a", round=900)]}))
    assert store.blocks["ephemeral"]["a"].round == 6
    assert ids(project(store, 9).ephemeral) == ["a"]
    assert project(store, 10).ephemeral == ()
