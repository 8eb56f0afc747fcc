"""The small files beside the logs: one value each, for people and for other programs.

state        active          cwd          /home/ada/project
created_at   2026-11-15T21:10:20Z          updated_at   2026-11-15T21:14:03Z
latest.md    the newest assistant text     meta.json    who the session belongs to, and its settings
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from daypack.errors import DaypackError
from daypack.files import atomic
from daypack.history.layout import Layout
from daypack.history.logs.lines import UNREADABLE
from daypack.types.kinds import SESSION_STATES, SessionState

_LATEST_EVERY_SECONDS = 1.0
Condition = Callable[[dict[str, Any]], bool]  # of a change: asked with the meta.json that would be changed


def moment(seconds: float) -> str:
    """Return a time in the format of the small files, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_meta(meta: Mapping[str, Any]) -> bytes:
    """Return the bytes of a meta.json."""
    return msgspec.json.format(msgspec.json.encode(meta), indent=2) + b"\n"


def parse_meta(data: bytes) -> dict[str, Any] | None:
    """Return what a meta.json says; None if it is unreadable."""
    try:
        value = msgspec.json.decode(data)
    except UNREADABLE:
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def place_of(memory: object) -> object:
    """Return which memory the "memory" of a meta.json means, without how much of the session it has captured."""
    if not isinstance(memory, dict):
        return memory
    return {name: value for name, value in cast("dict[str, Any]", memory).items() if name != "captured_through"}


class Facets:
    """The small files of one session. None of them is needed to read its history."""

    def __init__(self, layout: Layout, *, redacting: bool = True) -> None:
        """`redacting`: latest.md is for others to read, so it has no secrets."""
        self._layout = layout
        self._redacting = redacting
        # Of a cache: changes meta.json where other workers see it, and returns the result.
        self.change_meta: Callable[[Mapping[str, Any], Condition | None], bytes] | None = None
        self.remake: Callable[[], None] | None = None  # of a cache: makes files again that were deleted
        self.second = 0  # of the newest append noted in updated_at
        self.stale = False  # latest.md does not have the newest text
        self._latest_at = float("-inf")

    def meta(self) -> dict[str, Any]:
        """Return meta.json; {} if it is missing or unreadable (`doctor` reports it)."""
        return self._read_meta() or {}

    def _read_meta(self) -> dict[str, Any] | None:
        try:
            return parse_meta(self._remade(self._layout.meta) or b"{}")
        except DaypackError:
            return None

    def _remade(self, path: str) -> bytes | None:
        data = atomic.read(path)
        if data is None and self.remake is not None:
            self.remake()
            data = atomic.read(path)
        return data

    @property
    def is_unreadable(self) -> bool:
        """True if meta.json is missing, empty or damaged."""
        return not self._read_meta()

    def write_meta(self, changes: Mapping[str, Any], only_if: Condition | None = None) -> None:
        """Change keys of meta.json and keep the others; called under the session's lock.

        `only_if` is asked where no other worker can change it before it is written; if it returns False, nothing is
        changed. An unreadable file is not overwritten: its remains may be the only copy.
        """
        meta = self._read_meta()
        if meta is None or meta == (changed := {**meta, **changes}):
            return
        if self.change_meta is not None and list(changes) != ["counters"]:  # which are counted from the logs
            atomic.replace(self._layout.meta, self.change_meta(changes, only_if))
        elif only_if is None or only_if(meta):
            atomic.replace(self._layout.meta, format_meta(changed))

    def read(self, path: str) -> str:
        """Return the content of a one-value file; "" if it is missing."""
        return (atomic.read(path) or b"").decode("utf-8", "replace").strip()

    def state(self) -> SessionState:
        """Return the session's state; "active" if it is missing or unknown."""
        value = (self._remade(self._layout.state) or b"").decode("utf-8", "replace").strip()
        return value if value in SESSION_STATES else "active"

    def write_state(self, state: SessionState) -> None:
        """Replace the session's state."""
        atomic.replace(self._layout.state, f"{state}\n".encode())

    def touch(self, seconds: float) -> None:
        """Record an append in updated_at, which has a resolution of a second, at most once a second."""
        if int(seconds) == self.second:
            return
        self.second = int(seconds)
        with suppress(OSError):  # the append is in the log; this file is not worth failing it
            fd = os.open(self._layout.updated_at, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, f"{moment(seconds)}\n".encode(), 0)
            finally:
                os.close(fd)

    def note_latest(self, text: str) -> None:
        """Write the newest assistant text to latest.md, at most once a second; otherwise mark it stale."""
        self.stale = time.monotonic() - self._latest_at < _LATEST_EVERY_SECONDS
        if not self.stale:
            self.flush((text,))

    def flush(self, texts: Sequence[str]) -> None:
        """Write the newest text to latest.md."""
        self.stale = False
        self._latest_at = time.monotonic()
        for text in texts:
            with suppress(DaypackError):  # derived: the text is in the log
                atomic.replace(self._layout.latest, self._shown(text).encode("utf-8", "replace"), durable=False)

    def _shown(self, text: str) -> str:
        if not self._redacting:
            return text
        from daypack.text.redact.redact import redact  # noqa: PLC0415 — its patterns cost 20 ms

        return redact(text).text
