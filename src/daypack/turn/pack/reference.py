"""How an item by reference is shown: one line for readers, a JSON object for programs that follow it.

Build log (tool_result): https://ci.example/17/log; 48,120 bytes; sha256:1f3a…; open the URL to see it
"""

from typing import Any

import msgspec

from daypack.text.redact.redact import redact_value
from daypack.turn.items import Item, Reference
from daypack.types.kinds import Target
from daypack.types.names import one_line
from daypack.types.shapes import Link

_PROGRAMS: frozenset[Target] = frozenset({"tool", "ui", "peer_agent"})  # they get the reference itself
_ADDRESSES = ("uri", "url", "href", "path", "ref", "id")  # where the owners of references write the address


def show_reference(item: Item, reference: Reference, target: Target) -> str:
    """Return the text of an item by reference for a target."""
    if target in _PROGRAMS:
        value = reference_value(item, reference)
        return msgspec.json.encode({"title": item.title, **value}).decode()
    ref = address_of(reference.ref)
    shown = ref if ref else msgspec.json.encode(reference.ref).decode()
    title = _title(reference.title or item.title)
    name = f"{title} ({item.context_kind})" if title else item.context_kind
    facts = [
        f"{name}: {one_line(shown)}",
        f"{reference.size:,} bytes" if reference.size is not None else "",
        one_line(reference.mime_type),
        one_line(reference.digest),
        _how(reference, one_line(ref)),
    ]
    return "; ".join(filter(None, facts))


def handed_over(item: Item, target: Target) -> dict[str, Any] | None:
    """Return the reference that a program gets in place of the content; None for text and for other readers."""
    return reference_value(item, item.reference) if item.reference and target in _PROGRAMS else None


def reference_value(item: Item, reference: Reference) -> dict[str, Any]:
    """Return a reference as a JSON object."""
    value: dict[str, Any] = {"ref": reference.ref, "kind": item.context_kind, "access": reference.access}
    if reference.size is not None:
        value["byte_size"] = reference.size
    named = {"digest": reference.digest, "mime_type": reference.mime_type, "problem": reference.problem}
    return value | {name: text for name, text in named.items() if text}


def address_of(ref: Link) -> str:
    """Return the address in a reference: the text itself, or the member of an object that is one; else empty."""
    if isinstance(ref, str):
        return ref
    return next((ref[name] for name in _ADDRESSES if isinstance(ref.get(name), str) and ref[name]), "")


def redact_reference(reference: Reference) -> tuple[Reference, tuple[str, ...]]:
    """Return a reference without secrets, and the kinds of those it had."""
    value, kinds = redact_value(msgspec.to_builtins(reference))
    return (msgspec.convert(value, Reference), kinds) if kinds else (reference, ())


def _how(reference: Reference, address: str) -> str:
    if reference.problem:
        return f"not found here: {_title(reference.problem)}"
    if reference.access == "recall":
        return f"recall {address} returns it"
    if reference.access == "file":
        return "read the file at this path to see it"
    if reference.access == "url":
        return "open the URL to see it"
    scheme, found, _ = address.partition("://")
    return f"a tool for {scheme}:// addresses can open it" if found else "its owner keeps it under this id"


def _title(text: str) -> str:
    """Return a text for people as one line."""
    return one_line(" ".join(text.split()))


# Built at import: msgspec builds a type without a lock, and two threads doing it at once crash.
_WARM = msgspec.json.Decoder(Reference)
