"""A turn as evidence reads it: the parts that were sent, the record that was kept, and what follows from the two."""

from typing import Any

from msgspec import Struct

from daypack.derived.swap import SHORT_ID
from daypack.forks import cached_property
from daypack.text.injected import SWAPPED
from daypack.text.tokens import counter_named
from daypack.turn.evidence.record import TurnRecord
from daypack.turn.items import Item, Missing, Omission, cost_of, stamp_of
from daypack.turn.ledger import NOT_REDACTED
from daypack.turn.pack.additions import added_items
from daypack.turn.pack.assemble import Assembly, assemble, tail_refs
from daypack.turn.pack.inject import Injected, inject
from daypack.turn.surface import Addition, Epoch
from daypack.turn.survey.message_cost import message_cost
from daypack.types.history import Message
from daypack.types.kinds import ContextKind, Target
from daypack.types.records import PackItem

TOOLS = "tools"  # the name of the definitions among the items


class Parts(Struct, frozen=True, kw_only=True):
    """The contents of a turn, with their texts."""

    session: str
    agent: str
    epoch: Epoch
    messages: tuple[Message, ...]
    repeats: dict[int, int] = {}  # messages that are a reference to an earlier output: seq -> seq of that one
    volatile: tuple[Item, ...]
    additions: tuple[Addition, ...] = ()  # items in the tail, each after a message
    tools: tuple[dict[str, Any], ...] = ()  # definitions, as the caller passed them


class TurnView:
    """The values of one turn. They are the same for a turn just prepared and for its replay."""

    def __init__(self, parts: Parts, record: TurnRecord, event_id: str | None) -> None:
        self.record = record
        self.event_id = event_id  # None for a dry run, which records nothing
        self.parts = parts

    @cached_property
    def assembly(self) -> Assembly:
        """The ordered blocks."""
        parts = self.parts
        redacted = {int(seq) for seq in self.record.redacted if seq != NOT_REDACTED}
        return assemble(self.target, parts.epoch.prefix, parts.messages, parts.additions, parts.volatile, redacted)

    @cached_property
    def injections(self) -> tuple[Injected, ...]:
        """The places where the blocks become visible."""
        return inject(self.assembly, self.inserted).places

    @property
    def inserted(self) -> tuple[Item, ...]:
        """The items before, between and after the messages."""
        return (*self.parts.epoch.prefix, *added_items(self.parts.additions), *self.parts.volatile)

    @property
    def target(self) -> Target:
        """The target the turn was prepared for."""
        return self.record.target

    @property
    def tokens(self) -> int:
        """The tokens of the whole turn, as counted by `token_method`."""
        return self.record.used.tokens

    @property
    def token_method(self) -> str:
        """The tokenizer or estimate that counted the tokens."""
        return self.record.tokenizer

    @property
    def budget_tokens(self) -> int | None:
        """The tokens of the whole window; None if there is no limit."""
        return self.record.limits.tokens

    @cached_property
    def omitted(self) -> tuple[Omission, ...]:
        """Everything that was left out, with the reason; includes tool outputs that the tail shows as one line."""
        epoch, messages, repeats = self.parts.epoch, self.parts.messages, self.parts.repeats
        swapped: list[Omission] = []
        repeated: list[Omission] = []
        for message in messages:
            if message.seq in epoch.stubbed:
                swapped.append(_swapped_output(message))
            if message.role == "tool" and message.seq in repeats:
                note = f"same text as messages:{repeats[message.seq]}"
                repeated.append(Omission(item=f"tool:{message.tool_call_id}", reason="duplicate", note=note))
        return (*self.record.omitted, *swapped, *repeated)

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
        """The tokens of prefix and tail, which the next turn starts with."""
        return self.record.stable.tokens

    @property
    def expected_cached_tokens(self) -> int:
        """The tokens a provider's cache can hold from the previous turn."""
        return self.record.stable.expected_cached_tokens

    @property
    def cache_lost(self) -> str:
        """Why a provider's cache is of no use although the epoch continues: `tools_changed`, or empty."""
        return self.record.stable.cache_lost

    @property
    def expected(self) -> dict[str, Any] | None:
        """The fields a reply of the hybrid protocol must return; None if the call asks for no snapshot."""
        return stamp_of(self.record.items)

    @property
    def new_epoch(self) -> str:
        """The reason an epoch begins with this turn; empty if the turn continues one."""
        return self.record.opening.reason if self.record.opening else ""

    @cached_property
    def items(self) -> tuple[PackItem, ...]:
        """The contents of the pack, in order.

        The tail is one item, with the text around what was added to it. Its head is another if messages between the
        two are missing.
        """
        parts = self.parts
        added = map(_pack_item, added_items(parts.additions)) if parts.additions else ()
        prefix = (*self._tools(), *map(_pack_item, parts.epoch.prefix))
        return (*prefix, *self.tail_items(), *added, *map(_pack_item, parts.volatile))

    def _tools(self) -> tuple[PackItem, ...]:
        tools = self.record.tools
        if tools is None:
            return ()
        kind: ContextKind = "runtime_state"
        return (
            PackItem(
                kind="tools", source=TOOLS, tokens=tools.tokens, context_kind=kind, item_ref=TOOLS, hash=tools.digest
            ),
        )

    def tail_items(self) -> list[PackItem]:
        """Return the messages of the tail as one item, or two if messages after its head are missing."""
        messages, stable = self.parts.messages, self.record.stable
        if not messages:
            return []
        refs = tail_refs(messages)
        tokens = [stable.tokens - stable.prefix_tokens]
        if self.parts.additions:
            tokens = [tokens[0] - cost_of(added_items(self.parts.additions)).tokens]
        if len(refs) > 1:
            head = message_cost(messages[0], counter_named(self.token_method), model=self.record.model).tokens
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


def _swapped_output(message: Message) -> Omission:
    swap_id = message.text.removeprefix(SWAPPED)[:SHORT_ID]
    note = f"messages:{message.seq} is shown as one line"
    return Omission(item=f"tool:{message.tool_call_id}", reason="too_large", note=note, swap=swap_id)


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
