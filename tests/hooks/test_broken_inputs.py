"""Whatever is wrong, a hook ends with 0, prints nothing, and leaves a line in the log."""

from pathlib import Path

import pytest
from campaigns import Campaign
from hooks.broken_inputs import Scene, cases

from daypack.hooks.call import HostName
from daypack.hooks.hosts import HOSTS


@pytest.mark.parametrize("host", HOSTS)
def test_a_hook_never_disturbs_the_agent(host: HostName, tmp_path: Path, campaign: Campaign) -> None:
    found = cases()
    size = campaign.size("broken hook inputs", len(found))
    first, step = campaign.seed % len(found), len(found) / size
    for number in range(size):
        case = found[(first + int(number * step)) % len(found)]
        scene = Scene(tmp_path / str(number), host)
        case.arrange(scene)
        before = len(scene.log)
        done = scene.run()
        ended = (done.returncode, done.stdout, done.stderr)
        assert ended == (0, b"", b""), f"{case.name}: {ended}"
        assert case.line == "perhaps" or len(scene.log) > before, case.name


def test_there_are_enough_of_them() -> None:
    found = [case.name for case in cases()]
    assert len(set(found)) == len(found)
    assert len(found) * len(HOSTS) >= 200
