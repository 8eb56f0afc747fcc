"""Noticing that a path names another file, on file systems with fine and with coarse times."""

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from daypack.files.lock import Watch

SECOND = 1_000_000_000
CHANGED = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("stored_ns", "seconds_later", "trusted"),
    [
        (CHANGED + 1, 0.05, False),  # another change may come within the same tick of the clock
        (CHANGED + 1, 0.2, True),
        (CHANGED, 0.2, False),  # whole seconds, as HFS+ stores them: the change was up to a second later
        (CHANGED, 1.9, False),
        (CHANGED, 2.2, True),
    ],
)
def test_a_time_is_trusted_when_no_other_change_can_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored_ns: int, seconds_later: float, *, trusted: bool
) -> None:
    os.utime(tmp_path, ns=(stored_ns, stored_ns))
    monkeypatch.setattr(time, "time", lambda: CHANGED / SECOND + seconds_later)
    with closing(Watch(str(tmp_path / "messages.jsonl"))) as watch:
        assert not watch.unchanged()
        assert watch.unchanged() == trusted
        os.utime(tmp_path, ns=(stored_ns + 5 * SECOND, stored_ns + 5 * SECOND))
        assert not watch.unchanged()
