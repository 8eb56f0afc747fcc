"""Assemble: the chosen items as ordered blocks for one target, and their digests.

Frozen prefix, append-only tail, volatile items: the order that lets a prompt cache reuse most. In the system prompt are
only items whose authority lets them instruct; the rest of the prefix follows it, quoted.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from daypack.turn.dialects import Given, encode
from daypack.turn.items import CLOCK, Item, message_range
from daypack.turn.pack.additions import added_items, interleave
from daypack.turn.pack.fence import SEPARATOR, show, show_all, show_message
from daypack.turn.pack.reference import handed_over
from daypack.turn.surface import Addition
from daypack.types.authority import is_quoted
from daypack.types.digest import digest_bytes, digest_text
from daypack.types.history import Message
from daypack.types.kinds import Target
from daypack.types.shapes import Block

# How the ids of blocks begin: in the system prompt, quoted after it (both are the prefix), after the tail.
SYSTEM_PART, QUOTED_PART, AFTER_PART = "prefix", "quoted", "after"
ANSWERED = ("user", "tool")  # roles of the messages that a reply follows: the time can end them


class Assembly(Struct, frozen=True, kw_only=True):
    """What one target is shown, in order."""

    target: Target
    given: Given
    blocks: tuple[Block, ...]
    prefix_sha256: str
    sha256: str


def assemble(
    target: Target,
    prefix: Sequence[Item],
    messages: Sequence[Message],
    additions: Sequence[Addition],
    volatile: Sequence[Item],
    redacted: Collection[int] = (),
) -> Assembly:
    """Put prefix, tail and volatile items in order; `redacted`: the numbers of messages without their secrets."""
    blocks: list[Block] = []
    before: list[str] = []
    quoted: list[str] = []
    after: list[str] = []
    for item in prefix:
        if item.instructs:
            _add_block(blocks, SYSTEM_PART, (item.id,), show(item), before)
    for item in prefix:
        if not item.instructs:
            _add_block(blocks, QUOTED_PART, (item.id,), show(item), quoted)
    if messages or additions:
        refs = tail_refs(messages) if messages else ()
        if additions:
            refs = (*refs, *(item.id for item in added_items(additions)))
        position = len(blocks) + 1
        state = "masked" if _hides_secrets(messages, additions, redacted) else "none"
        blocks.append(Block(block_id=f"tail-{position}", item_refs=refs, position=position, redaction_state=state))
    for ids, text in show_all(volatile):
        _add_block(blocks, AFTER_PART, ids, text, after)
    special = {item.id: item for item in (*prefix, *volatile) if item.reference or item.redacted or item.stated}
    if special:
        blocks = [_described(block, special, target) for block in blocks]
    tail = interleave(messages, additions) if additions else tuple(messages)
    for message in tail:
        if message.role == "system" and is_quoted(message):
            tail = tuple(show_message(message) for message in tail if message.text.strip() or not is_quoted(message))
            break
    lone = len(volatile) == 1 and volatile[0].id == CLOCK
    attached = True if lone and tail and tail[-1].role in ANSWERED else UNSET
    given = Given(prefix=tuple(before), quoted=tuple(quoted), messages=tail, volatile=tuple(after), attached=attached)
    return Assembly(
        target=target,
        given=given,
        blocks=tuple(blocks),
        prefix_sha256=digest_text(SEPARATOR.join((*before, *quoted))),
        sha256=digest_bytes(encode({"given": given})),
    )


def tail_refs(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return references to the messages of a tail; a head that is not directly before the rest has its own."""
    head = messages[0]
    if len(messages) > 1 and messages[1].seq > head.seq + 1 and head.role == "user":
        return message_range(head.seq, head.seq), message_range(messages[1].seq, messages[-1].seq)
    return (message_range(head.seq, messages[-1].seq),)


def _hides_secrets(messages: Sequence[Message], additions: Sequence[Addition], redacted: Collection[int]) -> bool:
    """Return True if something in a tail was redacted."""
    hidden = bool(redacted) and any(message.seq in redacted for message in messages)
    return hidden or (bool(additions) and any(item.redacted for item in added_items(additions)))


def _described(block: Block, items: Mapping[str, Item], target: Target) -> Block:
    """Return a block with the redaction state of its items, and the reference that a program can follow."""
    states = [items[ref].redaction_state for ref in block.item_refs if ref in items]
    state = next((state for state in ("masked", *states) if state in states and state != "none"), None)
    item = items.get(block.item_refs[0])
    content_ref = handed_over(item, target) if item else None
    return replace(block, content_ref=content_ref, redaction_state=state or block.redaction_state)


def _add_block(blocks: list[Block], part: str, ids: tuple[str, ...], text: str, texts: list[str]) -> None:
    position = len(blocks) + 1
    texts.append(text)
    name, digest = f"{part}-{position}", digest_text(text)
    blocks.append(Block(block_id=name, item_refs=ids, position=position, hash=digest, redaction_state="none"))
