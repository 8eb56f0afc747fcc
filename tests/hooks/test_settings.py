"""The table [hooks] of config.toml."""

from pathlib import Path

import pytest

from daypack.errors import BadConfig
from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.settings import HookSettings, read_settings


def configured(home: str, text: str) -> Home:
    found = find_home(home)
    Path(found.folder).mkdir(parents=True, exist_ok=True)
    Path(found.config).write_text(text, encoding="utf-8")
    return found


def test_without_a_table_everything_is_on_and_no_output_is_swapped(home: str) -> None:
    assert read_settings(find_home(home)) == HookSettings()
    assert read_settings(configured(home, 'durability = "os"\n')) == HookSettings()
    assert read_settings(find_home(home)).allows("Stop")


def test_hooks_can_be_switched_off_all_or_by_event(home: str) -> None:
    assert not read_settings(configured(home, "[hooks]\nenabled = false\n")).allows("Stop")
    some = read_settings(configured(home, '[hooks]\noff = ["Stop"]\nswap_output_tokens = 4000\n'))
    assert (some.allows("Stop"), some.allows("SessionEnd"), some.swap_output_tokens) == (False, True, 4000)


@pytest.mark.parametrize(
    "text",
    [
        "hooks = 3",
        "[hooks]\nenabled = 1",
        '[hooks]\noff = "Stop"',
        "[hooks]\noff = [1]",
        "[hooks]\nswap_output_tokens = -1",
        "[hooks]\nswap_output_tokens = true",
        "[hooks]\nrecall_before_edit = 1",
        "[hooks",
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_the_file(home: str, text: str) -> None:
    with pytest.raises(BadConfig) as refused:
        read_settings(configured(home, text))
    assert refused.value.place.endswith("config.toml")
