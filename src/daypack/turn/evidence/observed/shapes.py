"""System prompt and tools of recorded requests, and what changed in them from one request to another."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from daypack.errors import DaypackError
from daypack.history.session import History
from daypack.types.digest import file_name_of

_SHOWN = 3  # names of tools in one line


class Shape(NamedTuple):
    """System prompt and tools of a request."""

    system: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    value: Mapping[str, Any] = MappingProxyType({})  # as it was sent

    @property
    def system_text(self) -> str:
        """The text of the system prompt."""
        return "\n\n".join(str(block.get("text", "")) for block in self.system)

    @property
    def tools_by_name(self) -> dict[str, dict[str, Any]]:
        """The tools, by their names."""
        return {str(tool.get("name") or tool.get("type") or ""): tool for tool in self.tools}


class ShapeChange(NamedTuple):
    """What changed from one shape to another; `known` is False if one of the two cannot be read."""

    system: bool = False
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    reordered: bool = False
    known: bool = True

    @property
    def tools(self) -> str:
        """The change of the tools in words; empty if there is none."""
        parts = [_listed("+", self.added), _listed("−", self.removed), _listed("changed ", self.changed)]
        if not any(parts) and self.reordered:
            return "in another order"
        return ", ".join(filter(None, parts))


def read_shape(history: History, digest: str) -> Shape | None:
    """Return a shape by its digest; None if it is unknown."""
    if not digest:
        return Shape()
    try:
        value = msgspec.json.decode(history.blobs.get(file_name_of(digest)))
    except (DaypackError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    fields = cast(dict[str, Any], value) if isinstance(value, dict) else dict[str, Any]()
    system = fields.get("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    return Shape(_objects(blocks), _objects(fields.get("tools", [])), fields)


def compare_shapes(before: Shape | None, after: Shape | None) -> ShapeChange:
    """Return what changed in system prompt and tools."""
    if before is None or after is None:
        return ShapeChange(known=False)
    old, new = before.tools_by_name, after.tools_by_name
    return ShapeChange(
        system=before.system != after.system,
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
        reordered=list(old) != list(new),
    )


def _objects(value: object) -> tuple[dict[str, Any], ...]:
    members = cast(Sequence[object], value) if isinstance(value, list) else ()
    return tuple(cast(dict[str, Any], member) for member in members if isinstance(member, dict))


def _listed(sign: str, names: Sequence[str]) -> str:
    shown = " ".join(f"{sign}{name}" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else shown
