"""Injection: at which of the seven places an assembly becomes visible, and the digest of what stands there."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from daypack.files.blobs import digest_bytes
from daypack.turn.dialects import NAMES, dialect, encode
from daypack.turn.items import Item
from daypack.turn.pack.assemble import Assembly, digest_text
from daypack.turn.pack.fence import SEPARATOR
from daypack.types.fields import InjectionPoint
from daypack.types.kinds import Target

_PLACES: dict[Target, InjectionPoint] = {
    "tool": "tool_visible_resource",
    "runtime": "runtime_metadata",
    "ui": "ui_panel",
    "user": "ui_panel",
    "reviewer": "ui_panel",
    "peer_agent": "peer_agent_message",
    "evidence_export": "review_export",
}


class Injected(Struct, frozen=True, omit_defaults=True):
    """One place and what stands there."""

    point: InjectionPoint
    blocks: tuple[str, ...]
    hash: str


def inject(assembly: Assembly, items: Sequence[Item]) -> tuple[Injected, ...]:
    """Say where each block of an assembly becomes visible."""
    if assembly.target == "model":
        return _for_model(assembly)
    wanted = {item.id: item.metadata.get("place") for item in items}
    groups: dict[InjectionPoint, list[str]] = {}
    for block in assembly.blocks:
        place = _PLACES[assembly.target]
        if assembly.target == "tool" and any(wanted.get(ref) == "tool_argument" for ref in block.item_refs):
            place = "tool_argument"
        groups.setdefault(place, []).append(block.block_id)
    texts = _texts(assembly)
    return tuple(
        Injected(place, tuple(blocks), digest_text(SEPARATOR.join(texts[block] for block in blocks)))
        for place, blocks in groups.items()
    )


def _for_model(assembly: Assembly) -> tuple[Injected, ...]:
    places: list[Injected] = []
    before = tuple(block.block_id for block in assembly.blocks if block.block_id.startswith("prefix-"))
    if before:
        places.append(Injected("system_prompt", before, assembly.prefix_sha256))
    rest = tuple(block.block_id for block in assembly.blocks if not block.block_id.startswith("prefix-"))
    if rest:
        places.append(Injected("message_history", rest, assembly.sha256))
    return tuple(places)


def _texts(assembly: Assembly) -> Mapping[str, str]:
    """The text of each block; the tail's is the text of its messages."""
    before, after = iter(assembly.given.prefix), iter(assembly.given.volatile)
    texts: dict[str, str] = {}
    for block in assembly.blocks:
        if block.block_id.startswith("prefix-"):
            texts[block.block_id] = next(before)
        elif block.block_id.startswith("after-"):
            texts[block.block_id] = next(after)
        else:
            texts[block.block_id] = SEPARATOR.join(message.text for message in assembly.given.messages)
    return texts


def rendered(assembly: Assembly) -> dict[str, str]:
    """Return the digest of what is sent in each dialect."""
    found: dict[str, str] = {}
    for name in NAMES:
        body: dict[str, Any] = dialect(name).render(assembly.given)
        found[name] = digest_bytes(encode(body))
    return found
