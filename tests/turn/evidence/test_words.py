"""Every code that daypack writes has words for people."""

from typing import get_args

import pytest

from daypack.turn.evidence.observed.cache import CacheBreak, Cause
from daypack.turn.evidence.words import CAUSES, EPOCHS, LOSSES, break_words, cause_words
from daypack.types.compaction import LossReason
from daypack.types.kinds import EPOCH_REASONS


def test_every_reason_and_cause_has_words() -> None:
    assert set(EPOCHS) == set(EPOCH_REASONS)
    assert set(CAUSES) == set(get_args(Cause))
    assert set(LOSSES) == set(get_args(LossReason))


@pytest.mark.parametrize(
    ("found", "short", "whole"),
    [
        (CacheBreak(("tools",), "+count_lines"), "tools changed: +count_lines", "tools changed: +count_lines"),
        (CacheBreak(("model",), "a → b"), "model changed", "model changed: a → b"),
        (
            CacheBreak(("compaction", "tools"), "compacted (auto)"),
            "compacted (auto)",
            "compacted (auto) (also tools changed)",
        ),
    ],
)
def test_a_cache_break_is_described(found: CacheBreak, short: str, whole: str) -> None:
    assert (cause_words(found), break_words(found)) == (short, whole)
