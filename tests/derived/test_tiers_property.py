"""Whatever models send: the fold is the same in any way, what is shown is bounded, and nothing good is lost."""

import json
from collections.abc import Sequence

import msgspec
import pytest
from derived.tiering import LIMITS, SHOWN, STORED, fold_tiers, folded, ids, took
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from daypack.derived.tiers import SNAPSHOT, Accepted, Store, merge, project, read_accepted
from daypack.types.history import Event
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import POLICIES, Block

NUMBERS = st.sampled_from((0.0, 0.1, 0.2, 0.35, 0.36, 0.4, 0.55, 0.65, 0.7, 0.8, 0.9, 1.0))
WORDS = st.sampled_from(("One.", "one.", "Two.", "a\nb", "x" * 600, "记忆 🚀", " "))
TAGS = st.sampled_from(((), ("a", "a"), ("t" * 40, "t" * 50), tuple("abcdefghij")))
BLOCKS = st.builds(
    Block,
    st.sampled_from(("a", "b", "c", "d", "e", "é\n", "- a (b): c")),
    st.sampled_from(("note", "a (b): c")),
    NUMBERS,
    NUMBERS,
    st.integers(0, 200),
    TAGS,
    WORDS,
)


@st.composite
def histories(draw: st.DrawFn) -> list[Accepted]:
    """Snapshots of rising rounds; ids meet often."""
    number = 0
    made_so_far: list[Accepted] = []
    for _ in range(draw(st.integers(1, 5))):
        number += draw(st.sampled_from((0, 1, 1, 2, 4, 13, 40, 121)))
        tiers: dict[Tier, Sequence[Block]] = {tier: draw(st.lists(BLOCKS, max_size=4)) for tier in TIERS}
        one = took(number, tiers, active_task=draw(st.sampled_from(("", "Sail.", "T" * 900))))
        empty = draw(st.integers(0, 4)) == 0
        without = replace(one, snapshot=None, below_threshold={}, violation_counts={"S0-R1": 1})
        made_so_far.append(without if empty else one)
    return made_so_far


@pytest.mark.requirement("G4")
@settings(max_examples=40, deadline=None)
@given(histories(), st.data())
def test_any_way_to_fold_gives_the_same(taken: list[Accepted], data: st.DataObject) -> None:
    whole = folded(*taken)
    cut = data.draw(st.integers(0, len(taken)))
    halfway = msgspec.json.decode(msgspec.json.encode(folded(*taken[:cut])), type=Store)
    for one in taken[cut:]:
        merge(halfway, read_accepted(json.loads(msgspec.json.encode(one))))
    events = [Event(type=SNAPSHOT, data=msgspec.to_builtins(one)) for one in taken]
    assert halfway == whole == fold_tiers(events)
    assert project(halfway, whole.round) == project(whole, whole.round)


@pytest.mark.requirement("G1", "G2", "G3")
@settings(max_examples=40, deadline=None)
@given(histories(), st.integers(0, 300))
def test_what_is_shown_is_within_every_bound(taken: list[Accepted], later: int) -> None:
    store = folded(*taken)
    current = store.round + later
    seen = project(store, current)
    for tier in TIERS:
        shown, policy = seen.of(tier), POLICIES[tier]
        assert len(shown) <= SHOWN[tier]
        assert len(set(ids(shown))) == len(shown)
        assert ids(shown) == ids(sorted(shown, key=lambda one: (-one.quality, -one.round, one.id)))
        for one in shown:
            assert one.decay <= LIMITS[tier][0]
            assert one.confidence >= LIMITS[tier][1]
            assert len(one.content) <= 512
            assert len(one.tags) == len(set(one.tags)) <= 8
            assert all(len(tag) <= 32 for tag in one.tags)
            assert policy.max_rounds is None or current - one.round <= policy.max_rounds
        omitted = [one for one in seen.omitted if one.tier == tier]
        assert len(shown) + len(omitted) == len(store.blocks[tier]) + len(store.below_threshold[tier])
        assert len(store.blocks[tier]) <= STORED[tier]
    assert len(seen.active_task) <= 512


@pytest.mark.requirement("G4")
@settings(max_examples=40, deadline=None)
@given(histories())
def test_the_store_has_the_newest_good_version_of_what_was_not_deleted(taken: list[Accepted]) -> None:
    store = folded(*taken)
    for tier in TIERS:
        standing: dict[str, str] = {}
        for one in taken:
            best: dict[str, Block] = {}
            for block in one.snapshot.memory.of(tier) if one.snapshot else ():
                name = block.id.strip()
                other = best.get(name, block)
                if (block.quality, block.round) >= (other.quality, other.round):
                    best[name] = block
            for name, block in best.items():
                if block.decay == 1 or block.confidence == 0:
                    standing.pop(name, None)
                elif block.decay <= LIMITS[tier][0] and block.confidence >= LIMITS[tier][1]:
                    standing[name] = block.content
        kept = {one.id: one.content for one in store.blocks[tier].values()}
        assert kept.items() <= standing.items()
        if tier == "core":
            assert kept == standing
