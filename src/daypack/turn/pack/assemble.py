"""Assemble: the chosen items as ordered blocks for one target, and their digests.

Frozen prefix, append-only tail, volatile items: the order that lets a prompt cache reuse most.
"""

from collections.abc import Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from daypack.turn.dialects import Given, encode
from daypack.turn.items import CLOCK, Item, message_range
from daypack.turn.pack.additions import added_items, interleave
from daypack.turn.pack.fence import SEPARATOR, show, show_all
from daypack.turn.pack.reference import handed_over
from daypack.turn.surface import Addition
from daypack.types.digest import digest_bytes, digest_text
from daypack.types.history import Message
from daypack.types.kinds import Target
from daypack.types.shapes import Block

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
) -> Assembly:
    """Put prefix, tail and volatile items in order."""
    blocks: list[Block] = []
    before: list[str] = []
    after: list[str] = []
    for item in prefix:
        _add_block(blocks, "prefix", (item.id,), show(item), before)
    if messages or additions:
        refs = tail_refs(messages) if messages else ()
        if additions:
            refs = (*refs, *(item.id for item in added_items(additions)))
        position = len(blocks) + 1
        blocks.append(Block(block_id=f"tail-{position}", item_refs=refs, position=position))
    for ids, text in show_all(volatile):
        _add_block(blocks, "after", ids, text, after)
    references = [item for item in (*prefix, *volatile) if item.reference]
    if references:
        blocks = _with_references(blocks, references, target)
    tail = interleave(messages, additions) if additions else tuple(messages)
    lone = len(volatile) == 1 and volatile[0].id == CLOCK
    attached = True if lone and tail and tail[-1].role in ANSWERED else UNSET
    given = Given(prefix=tuple(before), messages=tail, volatile=tuple(after), attached=attached)
    return Assembly(
        target=target,
        given=given,
        blocks=tuple(blocks),
        prefix_sha256=digest_text(SEPARATOR.join(before)),
        sha256=digest_bytes(encode({"given": given})),
    )


def tail_refs(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return references to the messages of a tail; a head that is not directly before the rest has its own."""
    head = messages[0]
    if len(messages) > 1 and messages[1].seq > head.seq + 1 and head.role == "user":
        return message_range(head.seq, head.seq), message_range(messages[1].seq, messages[-1].seq)
    return (message_range(head.seq, messages[-1].seq),)


def _with_references(blocks: Sequence[Block], items: Sequence[Item], target: Target) -> list[Block]:
    """Return the blocks, those of an item by reference with the reference that a program can follow."""
    refs = {item.id: handed_over(item, target) for item in items}
    return [replace(block, content_ref=refs.get(block.item_refs[0])) for block in blocks]


def _add_block(blocks: list[Block], part: str, ids: tuple[str, ...], text: str, texts: list[str]) -> None:
    position = len(blocks) + 1
    texts.append(text)
    blocks.append(Block(block_id=f"{part}-{position}", item_refs=ids, position=position, hash=digest_text(text)))
