"""The inputs: what the surveys of one session share."""

import os
from datetime import UTC, datetime

from daypack.config import Config, from_file
from daypack.derived.tiers import read_policies
from daypack.history.session import History
from daypack.text.tokens import Counter, counter_for, counter_named
from daypack.turn.items import Scales
from daypack.turn.ledger import Ledger
from daypack.turn.pack.stubs import Masks
from daypack.turn.ports import MemoryPort
from daypack.turn.survey.history_search import Past
from daypack.turn.survey.messages import Recent
from daypack.turn.working_state import Working
from daypack.types.kinds import Tier
from daypack.types.snapshot import TierPolicy


class TurnInputs:
    """What the surveys of one session share: what was read and weighed once is not read again."""

    def __init__(self, history: History, config: Config, memory: MemoryPort | None = None) -> None:
        self.history = history
        self.config = config
        self.memory = memory
        self.ledger = Ledger(history)
        self.redacting = config.redaction == "on"
        self.past = Past(history, redacting=self.redacting)
        self._scales: dict[str, Scales] = {}
        self._recent: dict[str, Recent] = {}
        self._masks: dict[str, Masks] = {}
        self.working = Working(history, self.ledger)
        self._policies: dict[Tier, TierPolicy] | None = None

    @property
    def workspace(self) -> str:
        """The folder whose files speak to the agent; empty: none."""
        if self.config.workspace is not None:
            return self.config.workspace and os.path.abspath(self.config.workspace)
        return self.history.facets.read(self.history.layout.cwd)

    @property
    def policies(self) -> dict[Tier, TierPolicy]:
        """What the tiers show, as the user's config.toml has it."""
        if self._policies is None:
            place = self.history.layout.home.config
            self._policies = read_policies(from_file(place), place)
        return self._policies

    @property
    def started_ms(self) -> int:
        """When the session began, in milliseconds since 1970; 0 when nobody knows."""
        try:
            return int(
                datetime.fromisoformat(self.history.facets.read(self.history.layout.created_at)).timestamp() * 1000
            )
        except (ValueError, OSError, OverflowError):
            return 0

    def scales(self, counter: Counter) -> Scales:
        """The scales of one counter."""
        return self._scales.setdefault(counter.name, Scales(counter))

    def recent(self, scales: Scales) -> Recent:
        """The newest messages, weighed on these scales."""
        name = scales.counter.name
        if name not in self._recent:
            self._recent[name] = Recent(self.history, scales, redacting=self.redacting)
        return self._recent[name]

    def masks(self, scales: Scales) -> Masks:
        """The shorter forms of large outputs, weighed on these scales."""
        return self._masks.setdefault(scales.counter.name, Masks(self.history, scales))

    def counter(self, model: str | None) -> Counter:
        """The counter of a model; the session's own when none is named."""
        return counter_for(model) if model else counter_named(self.history.tokenizer)

    def close(self) -> None:
        """Close the search index."""
        self.past.close()


def now_of(seconds: float) -> str:
    """Return a point in time to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
