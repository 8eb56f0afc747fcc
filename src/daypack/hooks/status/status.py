"""What a status says, as values. Plain tuples: a status line has 50 ms, and msgspec takes half of them."""

from typing import Any, NamedTuple


class Window(NamedTuple):
    """How full the window of the model is, in tokens; size 0: unknown."""

    used: int
    size: int = 0

    @property
    def share(self) -> float:
        """The share that is used, 0 to 1; 0 if the size is unknown."""
        return min(1.0, self.used / self.size) if self.size > 0 else 0.0


class Cache(NamedTuple):
    """The provider's prompt cache; None: unknown. `expires_at` is in seconds since 1970."""

    hit_share: float | None = None  # of the input tokens
    warm: bool | None = None
    expires_at: int = 0
    misses: int = 0
    cause: str = ""  # of the last miss


class ProjectMemory(NamedTuple):
    """The memory of the project; `entries` None: they were not counted. `place`: the database that has it."""

    memory_id: str
    entries: int | None = None
    place: str = ""


class LastCompaction(NamedTuple):
    """The last time that messages left the window. `left` counts them, 0: unknown; tokens are those of the window."""

    at: str = ""
    trigger: str = ""
    left: int = 0
    through: int = 0
    before_tokens: int = 0
    after_tokens: int = 0


class RecordedSession(NamedTuple):
    """A session in the home."""

    agent: str
    name: str
    messages: int = 0
    at: str = ""  # of its newest message
    title: str = ""


class Status(NamedTuple):
    """Everything that is known; what is not is None or empty. `failures` counts those of hooks."""

    project: str
    key: str
    folder: str = ""  # of the project: the top of this worktree
    session: RecordedSession | None = None
    host_session: str = ""  # as the host names it, whether or not it is in the home
    model: str = ""
    cost_usd: float | None = None
    window: Window | None = None
    cache: Cache | None = None
    memory: ProjectMemory | None = None
    memory_off: bool = False
    compaction: LastCompaction | None = None
    failures: int = 0
    failures_since: str = ""
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object, in which what is unknown is null."""
        fields = self._asdict()
        parts = ("session", "window", "cache", "memory", "compaction")
        return fields | {name: part._asdict() if (part := fields[name]) is not None else None for name in parts}
