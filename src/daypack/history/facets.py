"""The small files beside the logs: one value each, for people and for other programs.

state        active          cwd          /home/ada/project
created_at   2026-11-15T21:10:20Z          updated_at   2026-11-15T21:14:03Z
latest.md    the newest assistant text     meta.json    who the session belongs to, and its settings
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

import msgspec

from daypack.errors import BadInput, DaypackError
from daypack.files import atomic
from daypack.history.layout import Layout

State = Literal["active", "idle", "done", "error", "cancelled"]
STATES: tuple[State, ...] = get_args(State)
_LATEST_EVERY_SECONDS = 1.0


def moment(seconds: float) -> str:
    """Return a point in time as the small files spell it, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Facets:
    """The small files of one session. None of them is needed to read its history."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._updated = 0
        self._latest: str | None = None  # a text that is not in latest.md yet
        self._latest_at = float("-inf")

    def meta(self) -> dict[str, Any]:
        """Return meta.json; missing or unreadable, it reads as empty (`doctor` tells)."""
        try:
            value = msgspec.json.decode(atomic.read(self._layout.meta) or b"{}")
        except (DaypackError, msgspec.DecodeError):
            return {}
        return cast(dict[str, Any], value) if isinstance(value, dict) else {}

    def write_meta(self, changes: Mapping[str, Any]) -> None:
        """Change keys of meta.json and keep the others; called under the session's lock."""
        meta = self.meta()
        if meta != (changed := {**meta, **changes}):
            atomic.replace(self._layout.meta, msgspec.json.format(msgspec.json.encode(changed), indent=2) + b"\n")

    def read(self, path: str) -> str:
        """Return the value of a one-value file; a missing one reads as empty."""
        return (atomic.read(path) or b"").decode("utf-8", "replace").strip()

    def state(self) -> State:
        """Return the session's state; a missing or unknown one reads as active."""
        value = self.read(self._layout.state)
        return value if value in STATES else "active"

    def write_state(self, state: str) -> None:
        """Replace the session's state."""
        if state not in STATES:
            raise BadInput(f"{state!r} is not a state", operation="set state", hint=f"use one of {', '.join(STATES)}")
        atomic.replace(self._layout.state, f"{state}\n".encode())

    def touch(self, seconds: float) -> None:
        """Note an append in updated_at. The file has a resolution of a second, so it is written once a second."""
        if int(seconds) == self._updated:
            return
        self._updated = int(seconds)
        with suppress(OSError):  # the append is safe in the log; a clock file is not worth failing it
            fd = os.open(self._layout.updated_at, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, f"{moment(seconds)}\n".encode(), 0)
            finally:
                os.close(fd)

    def note_latest(self, text: str) -> None:
        """Put the newest assistant text into latest.md, at most once a second; `flush` writes what waits."""
        self._latest = text
        if time.monotonic() - self._latest_at >= _LATEST_EVERY_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write latest.md if it is behind."""
        text, self._latest = self._latest, None
        if text is None:
            return
        self._latest_at = time.monotonic()
        with suppress(DaypackError):  # derived: the text is in the log
            atomic.replace(self._layout.latest, text.encode("utf-8", "replace"), durable=False)
