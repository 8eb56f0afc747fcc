"""A turn: what one call is given, why, and the proof of it. The same value whether just prepared or replayed."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from daypack.derived.swap import SHORT_ID
from daypack.text.injected import SAME, SWAPPED
from daypack.text.tokens import counter_named
from daypack.turn.dialects import dialect
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.items import CHANGED, Item, Missing, Omission
from daypack.turn.pack.assemble import Assembly, assemble, tail_refs
from daypack.turn.pack.fence import SEPARATOR
from daypack.turn.pack.inject import Injected, inject
from daypack.turn.survey.messages import weigh_message
from daypack.turn.survey.surface import Epoch
from daypack.turn.survey.tiers import stamp_of
from daypack.types.history import Message
from daypack.types.kinds import Target
from daypack.types.records import Pack, PackItem

if TYPE_CHECKING:
    from daypack.types.context import ContextEnvelope


class Parts(Struct, frozen=True, kw_only=True):
    """What a turn is made of, with texts."""

    session: str
    agent: str
    epoch: Epoch
    messages: tuple[Message, ...]
    volatile: tuple[Item, ...]


class Turn:
    """What a call is given. Render it with `messages` or `request`; the rest says what is in it and why."""

    def __init__(self, parts: Parts, record: TurnRecord, event_id: str | None) -> None:
        self.record = record
        self.event_id = event_id  # None: a dry run, nothing was recorded
        self.parts = parts
        self.unwritten = ""  # why pack.json and pack.md are not of this turn

    @cached_property
    def assembly(self) -> Assembly:
        """The ordered blocks."""
        parts = self.parts
        return assemble(self.target, parts.epoch.prefix, parts.messages, parts.volatile)

    @cached_property
    def injections(self) -> tuple[Injected, ...]:
        """Where the blocks become visible."""
        return inject(self.assembly, (*self.parts.epoch.prefix, *self.parts.volatile))

    # What is sent

    def request(self, name: str = "openai") -> dict[str, Any]:
        """Return the keyword arguments for a client's call: messages, or input, or system and messages."""
        return dialect(name).render(self.assembly.given)

    def messages(self, name: str = "openai") -> list[dict[str, Any]]:
        """Return the list of messages for a client; for "anthropic" the prefix is in `system`."""
        body = self.request(name)
        return body["input"] if name == "responses" else body["messages"]

    @property
    def system(self) -> str:
        """The text of the frozen prefix."""
        return SEPARATOR.join(self.assembly.given.prefix)

    # What is in it, and why

    @property
    def target(self) -> Target:
        """Whom the turn is for."""
        return self.record.target

    @property
    def tokens(self) -> int:
        """The tokens of everything, as counted by `token_method`."""
        return self.record.used.tokens

    @property
    def token_method(self) -> str:
        """How tokens were counted."""
        return self.record.tokenizer

    @property
    def budget_tokens(self) -> int | None:
        """The tokens of the whole window; None: no limit."""
        return self.record.limits.tokens

    @cached_property
    def omitted(self) -> tuple[Omission, ...]:
        """What was left out, each with its reason; also the outputs of the tail that stand there as one line."""
        epoch, messages = self.parts.epoch, self.parts.messages
        swapped = (_swapped(one) for one in messages if one.seq in epoch.masked)
        outputs = (one for one in messages if one.role == "tool" and one.seq > epoch.last)
        return (*self.record.omitted, *swapped, *(_said(one) for one in outputs if one.text.startswith(SAME)))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """What the pack refers to and could not find."""
        return self.record.missing

    @property
    def prefix_sha256(self) -> str:
        """The digest of the frozen prefix."""
        return self.record.stable.prefix_sha256

    @property
    def stable_tokens(self) -> int:
        """The tokens of prefix and tail: what the next turn begins with."""
        return self.record.stable.tokens

    @property
    def expected_cached_tokens(self) -> int:
        """The tokens a provider's cache can have from the turn before."""
        return self.record.stable.expected_cached_tokens

    @property
    def expected(self) -> dict[str, Any] | None:
        """What a reply of the hybrid protocol must bring back; None: this call asks for no snapshot."""
        return stamp_of(self.record.items)

    @property
    def new_epoch(self) -> str:
        """Why an epoch begins with this turn; empty when one goes on."""
        return self.record.opening.reason if self.record.opening else ""

    @cached_property
    def items(self) -> tuple[PackItem, ...]:
        """What is in the pack, in order; the tail is one item, its head another when others are missing between."""
        before = [_pack_item(item) for item in self.parts.epoch.prefix]
        return (*before, *self._tail(), *(_pack_item(item) for item in self.parts.volatile))

    def _tail(self) -> list[PackItem]:
        messages, stable = self.parts.messages, self.record.stable
        if not messages:
            return []
        refs = tail_refs(messages)
        tokens = [stable.tokens - stable.prefix_tokens]
        if len(refs) > 1:
            head = weigh_message(messages[0], counter_named(self.token_method)).tokens
            tokens = [head, tokens[0] - head]
        return [
            PackItem(
                kind="recent_messages",
                source="messages.jsonl",
                range=ref.removeprefix("messages:"),
                tokens=cost,
                context_kind="session_history",
                item_ref=ref,
            )
            for ref, cost in zip(refs, tokens, strict=True)
        ]

    @cached_property
    def pack(self) -> Pack:
        """The value of pack.json."""
        return Pack(
            session=self.parts.session,
            agent=self.parts.agent,
            budget_tokens=self.budget_tokens or 0,
            items=self.items,
            target=self.target,
            context_id=self.record.context_id,
            token_method=self.token_method,
            prefix_sha256=self.prefix_sha256,
            stable_tokens=self.stable_tokens,
            expected_cached_tokens=self.expected_cached_tokens,
        )

    @property
    def pack_json(self) -> bytes:
        """The bytes of pack.json."""
        return msgspec.json.format(msgspec.json.encode(self.pack), indent=2) + b"\n"

    @cached_property
    def pack_md(self) -> str:
        """What a person reads: everything that is shown, what is not, and why."""
        from daypack.turn.evidence.pack_md import describe  # noqa: PLC0415 — it describes turns

        return describe(self)

    @cached_property
    def envelope(self) -> "ContextEnvelope":
        """The whole turn as a portable document of the envelope model."""
        from daypack.turn.evidence.envelope import envelope_of  # noqa: PLC0415 — 13 types that a hook need not pay for

        return envelope_of(self)

    def explain(self, item: str | None = None) -> str:
        """Say in words what is in, what is out and why; of one item, or of all."""
        from daypack.turn.evidence.explain import explain  # noqa: PLC0415 — it explains turns

        return explain(self, item)

    def __repr__(self) -> str:
        return f"<daypack turn {self.event_id or 'dry run'} for {self.target}: {self.tokens:,} tokens>"


def _swapped(message: Message) -> Omission:
    name = message.text.removeprefix(SWAPPED)[:SHORT_ID]
    item = f"tool:{message.tool_call_id}"
    return Omission(item=item, reason="too_large", note=f"one line stands for messages:{message.seq}", swap=name)


def _said(message: Message) -> Omission:
    first = message.text.removeprefix(SAME).partition(" ")[0]
    return Omission(item=f"tool:{message.tool_call_id}", reason="duplicate", note=f"said by messages:{first}")


def _pack_item(item: Item) -> PackItem:
    return PackItem(
        kind=item.kind,
        source=item.source,
        range=item.range,
        tokens=item.tokens,
        context_kind=item.context_kind,
        item_ref=item.id,
        hash=item.digest or None,
    )


def original(item_id: str) -> str:
    """Return the id of what a note about a change is about."""
    return item_id.removesuffix(CHANGED)


def find_left(omitted: Sequence[Omission], item: str) -> Omission | None:
    """Return the record about an item that was left out, also when it is one of a range of messages."""
    number = item.removeprefix("messages:").removeprefix("msg-")
    for one in omitted:
        if one.item in (item, original(item)):
            return one
        if number.isdecimal() and one.item.startswith("messages:"):
            start, _, stop = one.item.removeprefix("messages:").partition("-")
            if int(start) <= int(number) <= int(stop or start):
                return one
    return None
