"""Inject: at which of the seven places an assembly becomes visible, and the digests of what is sent."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from daypack.turn.dialects import NAMES, dialect, encode
from daypack.turn.items import Item
from daypack.turn.pack.assemble import AFTER_PART, QUOTED_PART, SYSTEM_PART, Assembly
from daypack.turn.pack.fence import SEPARATOR
from daypack.types.digest import digest_bytes, digest_text
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
    """One place and the blocks that are visible there."""

    point: InjectionPoint
    blocks: tuple[str, ...]
    hash: str


class Injection(Struct, frozen=True):
    """Where an assembly becomes visible, and the digest of the request in each dialect."""

    places: tuple[Injected, ...]
    sha256: dict[str, str]


def inject(assembly: Assembly, items: Sequence[Item]) -> Injection:
    """Return the places of an assembly's blocks and the digests that a replay must reproduce."""
    sha256 = {"assembly": assembly.sha256}
    if assembly.target != "model":
        return Injection(_places(assembly, items), sha256)
    for name in NAMES:
        sha256[name] = digest_bytes(encode(dialect(name).render(assembly.given)))
    return Injection(_model_places(assembly), sha256)


def _places(assembly: Assembly, items: Sequence[Item]) -> tuple[Injected, ...]:
    requested = {item.id: item.metadata.get("place") for item in items}
    groups: dict[InjectionPoint, list[str]] = {}
    for block in assembly.blocks:
        place = _PLACES[assembly.target]
        if assembly.target == "tool" and any(requested.get(ref) == "tool_argument" for ref in block.item_refs):
            place = "tool_argument"
        groups.setdefault(place, []).append(block.block_id)
    texts = _texts(assembly)
    return tuple(
        Injected(place, tuple(blocks), digest_text(SEPARATOR.join(texts[block] for block in blocks)))
        for place, blocks in groups.items()
    )


def _model_places(assembly: Assembly) -> tuple[Injected, ...]:
    before: list[str] = []
    rest: list[str] = []
    for block in assembly.blocks:
        (before if block.block_id.startswith(f"{SYSTEM_PART}-") else rest).append(block.block_id)
    places: list[Injected] = []
    if before:
        places.append(Injected("system_prompt", tuple(before), digest_text(SEPARATOR.join(assembly.given.prefix))))
    if rest:
        places.append(Injected("message_history", tuple(rest), assembly.sha256))
    return tuple(places)


def _texts(assembly: Assembly) -> Mapping[str, str]:
    """Return the text of each block; that of the tail is the text of its messages."""
    given = assembly.given
    parts = {SYSTEM_PART: iter(given.prefix), QUOTED_PART: iter(given.quoted), AFTER_PART: iter(given.volatile)}
    texts: dict[str, str] = {}
    for block in assembly.blocks:
        part = block.block_id.partition("-")[0]
        if part in parts:
            texts[block.block_id] = next(parts[part])
        else:
            texts[block.block_id] = SEPARATOR.join(message.text for message in assembly.given.messages)
    return texts
