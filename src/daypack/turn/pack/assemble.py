"""Assembly: the chosen items as ordered blocks for one target, and the digests that prove them.

Frozen prefix, append-only tail, then what is of this turn only: the order a prompt cache can reuse.
"""

from collections.abc import Sequence

from msgspec import Struct

from daypack.files.blobs import digest_bytes
from daypack.turn.dialects import Given, encode
from daypack.turn.items import Item
from daypack.turn.pack.fence import SEPARATOR, show, show_past
from daypack.types.history import Message
from daypack.types.kinds import Target
from daypack.types.shapes import Block


class Assembly(Struct, frozen=True, kw_only=True):
    """What one target is shown, in order."""

    target: Target
    given: Given
    blocks: tuple[Block, ...]
    prefix_sha256: str
    sha256: str


def assemble(target: Target, prefix: Sequence[Item], messages: Sequence[Message], volatile: Sequence[Item]) -> Assembly:
    """Put the parts into their order."""
    before = [(item.id,) for item in prefix]
    texts = tuple(show(item) for item in prefix)
    after, following = _following(volatile)
    given = Given(prefix=texts, messages=tuple(messages), volatile=following)
    blocks = [_block("prefix", at, ids, text) for at, (ids, text) in enumerate(zip(before, texts, strict=True), 1)]
    if messages:
        at = len(blocks) + 1
        blocks.append(Block(block_id=f"tail-{at}", item_refs=tail_refs(messages), position=at))
    start = len(blocks) + 1
    blocks += [
        _block("after", at, ids, text) for at, (ids, text) in enumerate(zip(after, following, strict=True), start)
    ]
    return Assembly(
        target=target,
        given=given,
        blocks=tuple(blocks),
        prefix_sha256=digest_text(SEPARATOR.join(texts)),
        sha256=digest_bytes(encode({"given": given})),
    )


def tail_refs(messages: Sequence[Message]) -> tuple[str, ...]:
    """Name the messages of a tail; a head that does not stand directly before the rest has a name of its own."""
    if len(messages) > 1 and messages[1].seq > messages[0].seq + 1 and messages[0].role == "user":
        return f"messages:{messages[0].seq}", _span(messages[1:])
    return (_span(messages),)


def _span(messages: Sequence[Message]) -> str:
    start, stop = messages[0].seq, messages[-1].seq
    return f"messages:{start}-{stop}" if stop > start else f"messages:{start}"


def digest_text(text: str) -> str:
    """Return the digest of a text."""
    return digest_bytes(text.encode("utf-8", "replace"))


def _following(items: Sequence[Item]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Group what follows the tail: everything from the past is one block, the rest a block each."""
    past = [item for item in items if item.span is not None]
    groups: list[tuple[str, ...]] = []
    texts: list[str] = []
    for item in items:
        if item.span is None:
            groups.append((item.id,))
            texts.append(show(item))
        elif item is past[0]:
            groups.append(tuple(one.id for one in past))
            texts.append(show_past(past))
    return groups, tuple(texts)


def _block(part: str, at: int, ids: tuple[str, ...], text: str) -> Block:
    return Block(block_id=f"{part}-{at}", item_refs=ids, position=at, hash=digest_text(text))
