"""Events about what left the window of another agent: turns that the user rolled back, and compactions.

The messages stay in history. The events name them, so that it is known what is in the window of the agent.
"""

from collections.abc import Sequence
from typing import Any

from daypack.importers.import_events import COMPACTED, ROLLED_BACK, ImportLog
from daypack.importers.transcript import Compaction, Removal, Rollback
from daypack.session import Session
from daypack.types.history import Event, Message
from daypack.types.source import Messages

WindowStep = tuple[int, Rollback | Removal | Compaction]  # with the number of messages of its batch before it
_MOST_KEPT = 1000  # messages before a compaction that are looked at for those that stay


class WindowEvents:
    """Makes the events of one import into a session."""

    def __init__(self, log: ImportLog, session: Session) -> None:
        self._log = log
        self._session = session

    def read(self, steps: Sequence[WindowStep], stored: Sequence[Message | None], newest: int) -> list[Event]:
        """Return the new events of a batch, given its messages as stored, and the newest message before the batch."""
        events: list[Event] = []
        for position, step in steps:
            before = [message.seq for message in stored[:position] if message]
            after = [message.seq - 1 for message in stored[position:] if message]
            last = max(before) if before else min(after, default=newest)
            events += self._compaction(step, last) if isinstance(step, Compaction) else self._rollback(step, last)
        return events

    def _compaction(self, step: Compaction, last: int) -> list[Event]:
        if step.id in self._log.compacted:
            return []
        self._log.compacted.add(step.id)
        first = max(1, last - _MOST_KEPT + 1)
        kept = [message.seq for message in self._session.messages(first, last) if step.is_kept(message)]
        facts: dict[str, Any] = {"line": step.row.number, "id": step.id, "through": last, "kept": kept, **step.facts}
        return [self._log.draft(COMPACTED, facts, step.row)]

    def _rollback(self, step: Rollback | Removal, last: int) -> list[Event]:
        self._log.read_all()  # turns that were rolled back before are not counted again
        line = step.row.number
        if line in self._log.rolled_back:
            return []
        span = self._rolled_back(last, step) if isinstance(step, Rollback) else self._removed(last, step)
        if span is None:
            return []
        self._log.rolled_back[line] = span
        turns = {"turns": step.turns} if isinstance(step, Rollback) else {}
        facts = {"line": line, **turns, "messages": str(span)}
        return [self._log.draft(ROLLED_BACK, facts, step.row)]

    def _removed(self, last: int, removal: Removal) -> Messages | None:
        first = last + 1
        while first > 1 and all(map(removal.is_removed, self._session.messages(first - 1, first - 1))):
            first -= 1
        return Messages(first, last) if first <= last else None

    def _rolled_back(self, last: int, rollback: Rollback) -> Messages | None:
        """Return the messages of the newest turns up to `last`, skipping turns that were rolled back before.

        Messages before the first turn are never rolled back.
        """
        earlier = list(self._log.rolled_back.values())
        first, turns = 0, rollback.turns
        for seq in range(last, 0, -1):
            if turns == 0:
                break
            if any(span.start <= seq <= span.stop for span in earlier):
                continue
            for message in self._session.messages(seq, seq):
                if rollback.is_turn(message):
                    first, turns = seq, turns - 1
        return Messages(first, last) if first else None
