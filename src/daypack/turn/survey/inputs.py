"""The inputs of a session's turns: what several surveys use and what is kept in memory between them."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from daypack.config import Config, from_file
from daypack.derived.tiers import read_capabilities, read_policies
from daypack.forks import cached_property
from daypack.history.session import History
from daypack.text.tokens import Counter, counter_for, counter_named
from daypack.turn.items import TokenMeter
from daypack.turn.ledger import Ledger
from daypack.turn.policy import read_window
from daypack.turn.survey.history_search import HistorySearch
from daypack.turn.survey.memory import MemoryPort
from daypack.turn.survey.messages import RecentMessages
from daypack.turn.survey.stubs import Stubs
from daypack.turn.working_state import WorkingState
from daypack.types.kinds import Tier
from daypack.types.snapshot import Capability, TierPolicy

if TYPE_CHECKING:
    from daypack.memory.answers import Answers
    from daypack.turn.survey.refs import Refs
    from daypack.turn.survey.rules import StandingRules


class TurnInputs:
    """Everything the turns of one session read from."""

    def __init__(self, history: History, config: Config, memory: MemoryPort | None = None) -> None:
        self.history = history
        self.config = config
        self.memory = memory
        self.timer: Callable[[], float] = time.monotonic  # of deadlines; the history's clock can be set back
        self._answers: tuple[MemoryPort, Answers] | None = None
        self.redacting = config.redaction == "on"
        self.window = read_window(config.window)
        self.ledger = Ledger(history)
        self.working_state = WorkingState(history, self.ledger)
        self.history_search = HistorySearch(history, self.window.excerpt_tokens, redacting=self.redacting)
        self._meters: dict[str, TokenMeter] = {}
        self._messages: dict[str, RecentMessages] = {}
        self._stubs: dict[str, Stubs] = {}
        self._policies: dict[Tier, TierPolicy] | None = None
        self._capabilities: tuple[Capability, ...] | None = None

    @cached_property
    def rules(self) -> "StandingRules":
        """The standing rules of the user."""
        from daypack.turn.survey.rules import StandingRules  # noqa: PLC0415 — only when messages leave the window

        return StandingRules(self.history, self.ledger, redacting=self.redacting)

    def answers(self, memory: MemoryPort) -> "Answers":
        """Return the answers of a memory to the turns of this session."""
        if self._answers is None or self._answers[0] is not memory:
            from daypack.memory.answers import Answers  # noqa: PLC0415 — only for sessions with a memory

            self._answers = memory, Answers(self.timer)
        return self._answers[1]

    def forget_answers(self) -> None:
        """Ask the memory again in the next turn, also if the user message is the same."""
        if self._answers is not None:
            self._answers[1].forget()

    @property
    def workspace(self) -> str:
        """The folder whose AGENTS.md and other files go into the prefix; empty if there is none."""
        if self.config.workspace is not None:
            return self.config.workspace and os.path.abspath(self.config.workspace)
        return self.history.facets.read(self.history.layout.cwd)

    @property
    def policies(self) -> dict[Tier, TierPolicy]:
        """The policies of the tiers, from the user's config.toml."""
        if self._policies is None:
            place = self.history.layout.home.config
            self._policies = read_policies(from_file(place), place)
        return self._policies

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What the stamp of a turn allows a model: the session's meta.json decides, then the user's config.toml."""
        layout = self.history.layout
        if self._capabilities is None:
            place = layout.home.config
            layers = ((layout.meta, self.history.facets.meta()), (place, from_file(place)))
            self._capabilities = read_capabilities(layers)
        return self._capabilities

    @property
    def started_ms(self) -> int:
        """When the session began, in milliseconds since 1970; 0 if unknown."""
        created = self.history.facets.read(self.history.layout.created_at)
        try:
            return int(datetime.fromisoformat(created).timestamp() * 1000)
        except (ValueError, OSError, OverflowError):
            return 0

    @cached_property
    def refs(self) -> "Refs":
        """The references to files and artifacts."""
        from daypack.turn.survey.refs import Refs  # noqa: PLC0415 — only after a compaction

        return Refs(self.history.layout)

    def counter(self, model: str | None) -> Counter:
        """Return the token counter of a model; without a model, the session's own."""
        return counter_for(model) if model else counter_named(self.history.tokenizer)

    def meter(self, model: str | None) -> TokenMeter:
        """Return the meter that counts for a model; without a model, for the session."""
        meter = self._meters.get(model or "")
        if meter is None:
            counter = self.counter(model)
            meter = self._meters[model or ""] = self.meter_of(counter, model or self.config.model)
        return meter

    def meter_of(self, counter: Counter, model: str | None) -> TokenMeter:
        """Return the meter of a counter, and of a model for what images cost."""
        return self._meters.setdefault(f"counter:{counter.name}:{model}", TokenMeter(counter, model))

    def messages(self, meter: TokenMeter) -> RecentMessages:
        """Return the recent messages, measured with a meter."""
        name = f"{meter.counter.name}:{meter.model}"
        if name not in self._messages:
            self._messages[name] = RecentMessages(self.history, meter, redacting=self.redacting)
        return self._messages[name]

    def stubs(self, meter: TokenMeter) -> Stubs:
        """Return the stubs of large outputs, measured with a meter."""
        name = f"{meter.counter.name}:{meter.model}"
        if name not in self._stubs:
            self._stubs[name] = Stubs(self.history, meter)
        return self._stubs[name]

    def close(self) -> None:
        """Close the search index; a search opens it again."""
        self.history_search.close()


def now_of(seconds: float) -> str:
    """Return a time in RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
