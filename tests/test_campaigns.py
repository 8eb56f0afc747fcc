"""A campaign at a tenth of its size still reaches every kind of call, and every call in time."""

from collections import Counter

import pytest
from campaigns import Campaign, report

CALLS = ["open", "write", "write", "fsync", "close"] * 20 + ["replace"]


def test_at_full_size_every_call_is_hit() -> None:
    campaign = Campaign(scale=1)
    assert campaign.calls("faults", CALLS) == list(range(1, len(CALLS) + 1))
    assert campaign.size("kills", 500) == 500
    assert campaign.ran == {"faults": 101, "kills": 500}


@pytest.mark.parametrize("seed", range(12))
def test_a_tenth_holds_every_kind_of_call_and_little_more_than_a_tenth(seed: int) -> None:
    chosen = Campaign(0.1, seed).calls("faults", CALLS)
    assert {CALLS[at - 1] for at in chosen} == set(CALLS)
    assert len(chosen) <= len(CALLS) / 10 + len(set(CALLS))


def test_ten_seeds_in_a_row_hit_every_call() -> None:
    assert {at for seed in range(7, 17) for at in Campaign(0.1, seed).calls("faults", CALLS)} == set(
        range(1, len(CALLS) + 1)
    )


@pytest.mark.parametrize(("full", "least", "size"), [(500, 1, 50), (15, 1, 2), (15, 4, 4), (3, 4, 3), (1, 1, 1)])
def test_a_tenth_is_never_less_than_its_least_nor_more_than_all(full: int, least: int, size: int) -> None:
    assert Campaign(0.1).size("kills", full, least) == size


def test_the_report_names_what_ran() -> None:
    assert report(Counter(kills=1000, attacks=5)).endswith(": 5 attacks, 1,000 kills")
