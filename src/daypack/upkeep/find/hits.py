"""A result of `find`: a message, where it is, its best line, and why it is there."""

from msgspec import Struct


class Hit(Struct, frozen=True, kw_only=True):
    """A message that answers a query. `parts` adds up to `score`.

    `line` is its best line, redacted; `marks` are the places in it to highlight, from start to before stop. `more` is
    how many further messages of the session match, `same` how many other sessions have the same message. `relevance` is
    the part of the query it contains: 1 is the least for an answer. `short` is the start of the session's name, as far
    as no other session of the agent begins with it.
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
    same: int = 0
    short: str = ""

    @property
    def id(self) -> str:
        """The id of the message in its session."""
        return f"msg-{self.seq}"

    @property
    def command(self) -> tuple[str, ...]:
        """The command that shows it with the messages around it."""
        return self._command(self.session)

    @property
    def short_command(self) -> tuple[str, ...]:
        """The same command, with the start of the session's name."""
        return self._command(self.short or self.session)

    def _command(self, name: str) -> tuple[str, ...]:
        return "daypack", "log", f"{self.agent}/{name}", "--around", str(self.seq)
