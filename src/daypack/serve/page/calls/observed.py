"""The items of a call that another program made, in the order in which a provider reads them."""

from collections.abc import Sequence

import msgspec

from daypack.history.session import History
from daypack.serve.page.calls.shapes import ShownItem, ShownToolCall, cut
from daypack.text.redact.redact import redact
from daypack.turn.evidence.calls.parts import part_of_source
from daypack.turn.evidence.observed.calls import Call
from daypack.turn.evidence.observed.explain import ObservedExplanation, explain_parts
from daypack.turn.evidence.observed.links import Links, Source
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.observed.sources import PartText, texts_of
from daypack.types.authority import Authority

_AUTHORITIES: dict[Source, Authority] = {
    "system": "system",
    "user": "user",
    "assistant": "agent",
    "thinking": "agent",
    "tool calls": "agent",
    "tool results": "tool",
}


class ObservedItems:
    """The parts of one request. Tokens are shares of what the provider reported, where it did."""

    def __init__(self, history: History, call: Call, turn: ObservedTurn, links: Links) -> None:
        self._redacting = history.config.redaction == "on"
        self._parts: Sequence[PartText] = texts_of(turn, links)
        self.explained: ObservedExplanation = explain_parts(call, turn, [found.part for found in self._parts])

    @property
    def messages(self) -> set[int]:
        """The numbers of the messages of history that the request contains."""
        return {number for total in self.explained.sources for number in total.refs}

    def shown(self, most_chars: int | None) -> list[ShownItem]:
        """Return all parts; texts are cut to `most_chars`."""
        return [self._item(number, found, most_chars) for number, found in enumerate(self._parts, 1)]

    def text(self, item: str) -> str | None:
        """Return the whole text of an item; None if there is no such item."""
        number = item.removeprefix("part:")
        known = number.isascii() and number.isdecimal() and len(number) < 10 and 1 <= int(number) <= len(self._parts)
        return self._item(int(number), self._parts[int(number) - 1], None).text if known else None

    def _item(self, number: int, found: PartText, most_chars: int | None) -> ShownItem:
        part, text = found
        name, kinds = part.name, set[str]()
        if self._redacting:
            name, of_name = redact(name)
            text, of_text = redact(text)
            kinds.update(of_name, of_text)
        if part.source == "tools" and text:
            text = msgspec.json.format(text, indent=2)
        is_call = part.source == "tool calls"
        return ShownItem(
            id=f"part:{number}",
            part="tail" if part.message else "prefix",
            category=part_of_source(part.source),
            kind=part.source,
            source=part.ref or name or part.source,
            ref=part.ref or None,
            role=part.role or None,
            title=name,
            tokens=self.explained.scaled(part.tokens),
            why=f"in message {part.message} of the request" if part.message else _OUTSIDE_MESSAGES[part.source],
            authority=_AUTHORITIES.get(part.source),
            visible_to=("model",),
            redacted=tuple(sorted(kinds)),
            text="" if is_call and most_chars is not None else cut(text, most_chars),
            chars=len(text),
            calls=(ShownToolCall(name, cut(text, most_chars)),) if is_call else (),
        )


_OUTSIDE_MESSAGES: dict[Source, str] = {"tools": "a definition that the request carries", "system": "the system prompt"}
