"""What the store of the tiers keeps of what models send: one line for an id, long texts cut, no flood that erases."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from derived.tiering import STORED, after, folded, ids, made, took
from turn.scenes import MARKER, SECRET

from daypack.derived.tiers import Accepted, Projection, Store, merge, project, read_policies
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import Block, Capability

every_tier = pytest.mark.parametrize("tier", TIERS)
WRONG = ({"rule": "S0-R1", "problem": "the reply has no context section", "where": "", "level": "must"},)


# Ids and texts


@pytest.mark.parametrize(
    ("given_id", "stored"),
    [
        ("core\n001", "core 001"),
        ("  core \t 001 ", "core 001"),
        ("core\u200b-\u202e001\x1b", "core-001"),
        ("\ufeffcore-001\u2028", "core-001"),
        ("core\x85001\x00", "core001"),
        ("记忆 é", "记忆 é"),
    ],
)
def test_an_id_is_one_line_without_what_cannot_be_seen(given_id: str, stored: str) -> None:
    store = folded(took(1, {"core": [made(given_id, "Kept.")]}))
    assert list(store.blocks["core"]) == [stored]
    assert store.blocks["core"][stored].id == stored


@every_tier
def test_two_spellings_of_an_id_that_look_the_same_are_one_block(tier: Tier) -> None:
    seen = after([made("a b", "First.")], [made("a\u200b \n b", "Second.")], tier=tier)
    assert [(one.id, one.content) for one in seen.of(tier)] == [("a b", "Second.")]
    assert after([made("a b")], [made(" a\nb\u200e", decay=1)], tier=tier).of(tier) == ()


@pytest.mark.parametrize("given_id", ["", " \n", "\u200b\ufeff", "j" * 129, "j " * 100])
@every_tier
def test_a_block_that_nobody_could_name_is_not_stored(tier: Tier, given_id: str) -> None:
    poor = made(given_id, "Poor.", decay=0.9)
    store = folded(took(1, {tier: [made(given_id, decay=0), poor, made("i" * 128)]}))
    assert (list(store.blocks[tier]), store.below_threshold[tier]) == (["i" * 128], {})
    assert project(store, 1).omitted == ()


@every_tier
def test_a_poor_block_under_another_spelling_of_an_id_does_not_take_its_place(tier: Tier) -> None:
    seen = after([made("a", "Good.")], [made(" a\u200b", "Poor.", confidence=0.1)], tier=tier)
    assert [one.content for one in seen.of(tier)] == ["Good."]
    assert seen.dropped == {"threshold_confidence": 1}


def test_long_texts_are_stored_with_their_first_4096_characters() -> None:
    long = "word " * 2000
    huge = made("a", long, type=long, tags=(long,) * 500)
    store = folded(took(1, {"core": [huge, made("fits", "x" * 4096)]}, active_task=long))
    kept = store.blocks["core"]["a"]
    assert 4000 < len(kept.content) <= 4096
    assert long.startswith(kept.content)
    assert store.blocks["core"]["fits"].content == "x" * 4096
    assert len(kept.type) <= 4096
    assert max(map(len, kept.tags)) <= 4096
    assert len(kept.tags) <= 200
    assert 4000 < len(store.active_task) <= 4096


def test_what_a_terminal_acts_on_is_taken_out_of_every_text() -> None:
    bad = "red \x1b[31m\u202e\x07 boat"
    store = folded(took(1, {"core": [made("a", bad, type=bad, tags=(bad,))]}, active_task=bad))
    [seen] = project(store, 1).core
    plain = "red [31m boat"
    assert (seen.content, seen.type, seen.tags, store.active_task) == (plain, plain, (plain,), plain)


def test_fields_the_protocol_does_not_know_are_not_stored() -> None:
    given_block = msgspec.structs.replace(made("a"), extra={"note": "x" * 9000})
    store = folded(took(1, {"core": [given_block], "working": [given_block]}, extra={"other": "y" * 9000}))
    assert store.blocks["core"]["a"].extra == {}
    assert len(msgspec.json.encode(store)) < 1000


def test_at_most_32_capabilities_are_stored() -> None:
    many = tuple(Capability(f"c{number}", "read") for number in range(50))
    store = folded(took(1, capabilities=many))
    assert store.capabilities == many[:32]
    merge(store, took(2, capabilities=many[40:]))
    assert store.capabilities == many[40:]


@every_tier
def test_the_store_is_bounded_whatever_comes(tier: Tier) -> None:
    store = Store()
    for number in (1, 2, 60):
        some = [made(f"{number}-{at}", f"Fact {at}.", tags=("t" * 99,) * 9) for at in range(600)]
        merge(store, took(number, {tier: [*some, *(made(f"p{one.id}", decay=0.95) for one in some)]}))
        assert (len(store.blocks[tier]), len(store.below_threshold[tier])) == (STORED[tier], STORED[tier])


# A flood erases nothing


@every_tier
def test_a_flood_of_better_blocks_erases_none_that_is_shown(tier: Tier) -> None:
    store = folded(took(1, {tier: [made("mine", "The boat is red.", decay=0.3)]}))
    for number in (1, 2, 3):
        flood = [made(f"f{number}-{at}", decay=0, confidence=1) for at in range(600)]
        merge(store, took(number, {tier: flood}))
    assert "mine" in store.blocks[tier]
    assert len(store.blocks[tier]) == STORED[tier]


def test_a_full_core_keeps_all_it_has_however_old() -> None:
    first = [made(f"b{at}") for at in range(200)]
    store = folded(took(1, {"core": first}), took(5000, {"core": [made("new", decay=0, confidence=1)]}))
    assert list(store.blocks["core"]) == ids(first)


@pytest.mark.parametrize(("tier", "rounds"), [("working", 12), ("ephemeral", 3)])
def test_in_a_full_tier_a_new_block_takes_the_place_of_one_that_is_no_longer_shown(tier: Tier, rounds: int) -> None:
    oldest, others = made("oldest"), [made(f"b{at}") for at in range(STORED[tier] - 1)]
    full = folded(took(1, {tier: [oldest]}), took(2, {tier: others}))
    merge(full, took(1 + rounds, {tier: [made("early")]}))
    assert ("early" in full.blocks[tier], "oldest" in full.blocks[tier]) == (False, True)
    merge(full, took(2 + rounds, {tier: [made("new"), made("another")]}))
    assert {"new", "oldest", "another", "b0"} & full.blocks[tier].keys() == {"new", "b0"}
    assert len(full.blocks[tier]) == STORED[tier]


@every_tier
def test_in_a_full_tier_a_known_block_is_still_updated_and_deleted(tier: Tier) -> None:
    store = folded(took(1, {tier: [made(f"b{at}") for at in range(STORED[tier])]}))
    merge(store, took(2, {tier: [made("b7", "Changed."), made("b8", decay=1), made("new")]}))
    assert store.blocks[tier]["b7"].content == "Changed."
    assert {"b8", "new"} & store.blocks[tier].keys() == {"new"}


@every_tier
def test_a_flood_of_poor_blocks_is_bounded_and_erases_nothing_good(tier: Tier) -> None:
    store = folded(took(1, {tier: [made("mine")]}))
    merge(store, took(2, {tier: [made(f"p{at}", decay=0.95) for at in range(900)]}))
    assert (list(store.blocks[tier]), len(store.below_threshold[tier])) == (["mine"], STORED[tier])


# Rounds


@every_tier
def test_a_block_is_of_the_round_of_the_reply_that_brought_it_or_changed_it(tier: Tier) -> None:
    store = folded(took(4, {tier: [made("a", "First.", round=1)]}))
    assert store.blocks[tier]["a"].round == 4
    merge(store, took(6, {tier: [made("a", "Second.", round=2)]}))
    assert store.blocks[tier]["a"].round == 6


@every_tier
@pytest.mark.parametrize(("named", "counts"), [(0, 4), (4, 4), (5, 5), (7, 7), (8, 7), (10**15, 7)])
def test_a_block_sent_again_unchanged_is_of_the_later_of_its_rounds(tier: Tier, named: int, counts: int) -> None:
    again = took(7, {tier: [made("a", round=named, confidence=0.95)]})
    store = folded(took(4, {tier: [made("a")]}), again)
    kept = store.blocks[tier]["a"]
    assert (kept.round, kept.confidence) == (counts, 0.95)


@pytest.mark.requirement("G2")
def test_a_block_that_is_repeated_with_its_old_round_grows_old_all_the_same() -> None:
    store = folded(*(took(number, {"ephemeral": [made("a", round=1)]}) for number in range(1, 6)))
    assert project(store, 4).ephemeral
    assert project(store, 5).dropped == {"expired_by_round": 1}


@every_tier
def test_deleted_and_brought_again_a_block_is_new(tier: Tier) -> None:
    rounds = ([made("a")], [made("a", decay=1)], [made("a", round=1)])
    assert [one.round for one in after(*rounds, tier=tier).of(tier)] == [3]


# What was wrong with the newest reply


def test_the_violations_are_those_of_the_newest_reply() -> None:
    bad = Accepted(message="msg-2", round=1, violation_counts={"S0-R1": 1}, violations=WRONG)
    store = folded(bad)
    assert project(store, 1).violations == WRONG
    merge(store, took(2))
    assert (project(store, 2).violations, project(store, 2).violation_counts) == ((), {"S0-R1": 1})


# Secrets


def words_of(seen: Projection) -> str:
    return msgspec.json.encode(seen).decode()


def holding(secret: str) -> dict[str, Any]:
    """Blocks that hold a secret in every field, shown or not, and where a cut would go through it."""
    blocks: list[Block] = [
        made("content", f"The token is {secret}."),
        made("across", "x" * 495 + " " + secret),
        made("tag", tags=(secret, "t " * 10 + secret)),
        made("type", type=secret),
        made("typed", type="kind of " * 3 + secret),
        made(f"id {secret}"),
    ]
    poor = [msgspec.structs.replace(one, id=f"poor {one.id}", decay=0.9) for one in blocks]
    tiers: dict[Tier, Sequence[Block]] = {tier: [*blocks, *poor] for tier in TIERS}
    return {"tiers": tiers, "active_task": "x" * 495 + " " + secret}


@pytest.mark.parametrize("later", [0, 50])
@pytest.mark.parametrize("secret", [SECRET, f"{SECRET[:9]}\u200b{SECRET[9:]}"])
def test_secrets_are_taken_out_before_anything_is_cut(secret: str, later: int) -> None:
    store = folded(took(1, **holding(secret)))
    assert SECRET in words_of(project(store, 1))
    seen = project(store, 1 + later, redacting=True)
    said = words_of(seen)
    assert SECRET[:12] not in said
    assert MARKER in said
    assert len(seen.core) + len([one for one in seen.omitted if one.tier == "core"]) == 12
    assert {"across", "tag", "typed"} <= {one.id for one in seen.core}


def test_what_is_cut_stays_within_its_caps_when_secrets_are_taken_out() -> None:
    seen = project(folded(took(1, **holding(SECRET))), 1, redacting=True)
    for one in (*seen.core, *seen.working, *(omitted.block for omitted in seen.omitted)):
        assert len(one.content) <= 512
        assert len(one.type) <= 32
        assert all(len(tag) <= 32 for tag in one.tags)
    assert len(seen.active_task) <= 512


def test_policies_count_for_redacted_tiers_too() -> None:
    strict = read_policies({"tiers": {"core": {"max_items": 1}}})
    seen = project(folded(took(1, {"core": [made("a"), made("b", SECRET)]})), 1, strict, redacting=True)
    assert (ids(seen.core), [one.block.content for one in seen.omitted]) == (["a"], [MARKER])
