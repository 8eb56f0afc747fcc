"""Files in context/ that people edit: budget and pins. Edits become events, so a deleted folder loses nothing."""

from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.errors import BadInput
from daypack.files import atomic
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.budget import BUDGET_HINT, Limits, parse_budget, parse_budget_file
from daypack.turn.ledger import BUDGET, Ledger
from daypack.types.digest import digest_text
from daypack.types.kinds import Target


class HandEdits:
    """The files of one session that people edit."""

    def __init__(self, history: History, ledger: Ledger) -> None:
        self._history = history
        self._ledger = ledger
        self._path = history.layout.derived("budget")

    def limits(self, target: Target) -> Limits | None:
        """Return the limits that were set; None if none were."""
        text = self.budget_text
        return None if text is None else parse_budget_file(text, target, self._path)

    @property
    def budget_text(self) -> str | None:
        """The text of context/budget; if the file was deleted, that of the newest event."""
        text = self._budget()
        return self._ledger.read().budget if text is None else text

    def set_budget(self, budget: int | str | Mapping[str, Any] | None) -> None:
        """Write context/budget and record it."""
        try:
            text = msgspec.json.encode((parse_budget(budget) if isinstance(budget, str) else budget) or 0).decode()
        except (TypeError, ValueError) as error:
            raise BadInput(str(error), operation="set budget", place="budget", hint=BUDGET_HINT) from error
        parse_budget_file(text, "model", self._path)

        def write() -> None:
            atomic.make_folders(self._history.layout.context)
            atomic.replace(self._path, f"{text}\n".encode())
            self.record_budget()

        self._history.locked(write)

    def record_budget(self) -> None:
        """Append an event if context/budget differs from the newest one."""
        text = self._budget()
        if text is not None and text != self._ledger.read().budget:
            self._history.append_event(draft_event(BUDGET, {"text": text}))

    def record_pins(self) -> None:
        """Append an event for each pin that was written, changed or removed by hand."""
        self._history.locked(self._record_pins)  # pin() changes file and event together

    def _record_pins(self) -> None:
        pins, recorded = self._history.pins(), self._ledger.read().pins
        for name, text in pins.items():
            if recorded.get(name) != digest_text(text):
                captured = self._history.capture(text.encode("utf-8", "replace"))
                self._history.append_event(draft_event("pin.set", {"name": name, **captured}))
        for name in [name for name in recorded if name not in pins]:
            self._history.append_event(draft_event("pin.removed", {"name": name}))

    def _budget(self) -> str | None:
        data = atomic.read(self._path)
        return None if data is None else data.decode("utf-8", "replace")
