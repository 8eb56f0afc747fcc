"""The settings of hooks: the table `[hooks]` of config.toml.

[hooks]
enabled = false              # no hook does anything
off = ["UserPromptSubmit"]   # these events do nothing
swap_output_tokens = 4000    # tool outputs above this are stored and shown in part
recall_before_edit = true    # before a file is edited, what was decided about it is added
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct

from daypack.config import from_file
from daypack.errors import BadConfig
from daypack.history.layout import Home
from daypack.plain_files import open_plain

_MAX_TOKENS = 10_000_000


class HookSettings(Struct, frozen=True):
    """What the user chose for hooks; `swap_output_tokens` 0 leaves tool outputs as they are."""

    enabled: bool = True
    off: tuple[str, ...] = ()
    swap_output_tokens: int = 0
    recall_before_edit: bool = False

    def allows(self, event: str) -> bool:
        """Return True if hooks act at this event."""
        return self.enabled and event not in self.off


def read_settings(home: Home) -> HookSettings:
    """Return the settings of a user; a file that does not mention hooks is not parsed, which takes 15 ms."""
    with suppress(OSError), open_plain(home.config) as file:  # what cannot be read is reported below
        if b"hooks" not in file.read():
            return HookSettings()
    table: object = from_file(home.config).get("hooks", {})
    if not isinstance(table, Mapping):
        raise _bad(home, f"hooks is {table!r}", "it must be a table: [hooks]")
    values = cast(Mapping[str, Any], table)
    enabled, off, tokens = values.get("enabled", True), values.get("off", []), values.get("swap_output_tokens", 0)
    if not isinstance(enabled, bool):
        raise _bad(home, f"enabled is {enabled!r}", "it must be true or false")
    if not isinstance(off, list) or not all(isinstance(event, str) for event in cast("list[object]", off)):
        raise _bad(home, f"off is {off!r}", 'it must be a list of events: ["UserPromptSubmit"]')
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= _MAX_TOKENS:
        raise _bad(home, f"swap_output_tokens is {tokens!r}", f"it must be a whole number from 0 to {_MAX_TOKENS:,}")
    recall = values.get("recall_before_edit", False)
    if not isinstance(recall, bool):
        raise _bad(home, f"recall_before_edit is {recall!r}", "it must be true or false")
    return HookSettings(enabled, tuple(cast("list[str]", off)), tokens, recall)


def _bad(home: Home, problem: str, hint: str) -> BadConfig:
    return BadConfig(problem, operation="read settings of hooks", place=home.config, hint=hint)
