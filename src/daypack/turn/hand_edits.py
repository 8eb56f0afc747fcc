"""What people write into context/ by hand, the budget and pins: history takes it in, and a deleted folder is no loss.

An event is appended when a file says something else than the events do.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from daypack.errors import BadInput
from daypack.files import atomic
from daypack.files.blobs import digest_bytes
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.turn.ledger import BUDGET, Ledger
from daypack.turn.limits import DEFAULT_TOKENS, Limits, limits_in
from daypack.types.kinds import Target


class Edits:
    """The files of one session that people edit."""

    def __init__(self, history: History, ledger: Ledger) -> None:
        self._history = history
        self._ledger = ledger

    def limits(self, target: Target) -> Limits:
        """Return the limits of context/budget; a deleted folder's come from the events."""
        text = self._budget()
        if text is None:
            text = self._ledger.read().budget
        return Limits(DEFAULT_TOKENS) if text is None else limits_in(text, target, self._path)

    def set_budget(self, budget: int | Mapping[str, Any] | None) -> None:
        """Write context/budget and record it."""
        try:
            text = msgspec.json.encode(budget or 0).decode()
        except (TypeError, ValueError) as error:
            hint = "give a number of tokens, or a mapping with tokens, bytes, items, ms"
            raise BadInput(str(error), operation="set budget", place="budget", hint=hint) from error
        limits_in(text, "model", self._path)
        with self._history.lock:
            atomic.make_folders(self._history.layout.context)
            atomic.replace(self._path, f"{text}\n".encode())
            self.take_in_budget()

    def take_in_budget(self) -> None:
        """Record the text of context/budget when it is new."""
        text = self._budget()
        if text is not None and text != self._ledger.read().budget:
            self._history.append_event(draft_event(BUDGET, {"text": text}))

    def take_in_pins(self) -> None:
        """Record pins that somebody wrote, changed or removed by hand."""
        if self._odd_pins():
            with self._history.lock:  # whoever pins meanwhile changes file and event together
                for name, text in self._odd_pins().items():
                    if text is None:
                        self._history.append_event(draft_event("pin.removed", {"name": name}))
                    else:
                        kept = self._history.capture(text.encode("utf-8", "replace"))
                        self._history.append_event(draft_event("pin.set", {"name": name, **kept}))

    def _odd_pins(self) -> dict[str, str | None]:
        """Return the pins of which the events say something else; None: the file is gone."""
        found = self._history.pins()
        known = self._ledger.read().pins
        odd: dict[str, str | None] = {
            name: text
            for name, text in found.items()
            if known.get(name) != digest_bytes(text.encode("utf-8", "replace"))
        }
        return odd | dict.fromkeys(name for name in known if name not in found)

    @property
    def _path(self) -> str:
        return self._history.layout.derived("budget")

    def _budget(self) -> str | None:
        data = atomic.read(self._path)
        return None if data is None else data.decode("utf-8", "replace")
