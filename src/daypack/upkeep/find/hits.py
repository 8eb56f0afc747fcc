"""A result of `find`: a message, where it is, its best line, and why it is there."""

from msgspec import Struct


class Hit(Struct, frozen=True, kw_only=True):
    """A message that answers a query. `parts` adds up to `score`.

    `line` is its best line, redacted; `marks` are the places in it to highlight, from start to before stop. `more` is
    how many further messages of the session match.
    """

    agent: str
    session: str
    seq: int
    role: str
    ts: str
    cwd: str
    project: str
    line: str
    marks: tuple[tuple[int, int], ...] = ()
    score: float
    parts: dict[str, float]
    relevance: float = 0.0
    more: int = 0

    @property
    def id(self) -> str:
        """The id of the message in its session."""
        return f"msg-{self.seq}"

    @property
    def command(self) -> tuple[str, ...]:
        """The command that shows it with the messages around it."""
        return "daypack", "log", f"{self.agent}/{self.session}", "--around", str(self.seq)
