"""Rules about what was chosen: selections, the blocks of assemblies and the segments of windows."""

from collections.abc import Iterator
from itertools import chain

from daypack.turn.conformance.objects import Object, elements, strings
from daypack.turn.conformance.subject import Finding, Subject, is_stated, number, text


def candidates(subject: Subject) -> Iterator[Finding]:
    """Look at what is selected, omitted and a candidate."""
    for selection in subject.records("selections"):
        offered = frozenset(strings(selection.value, "candidate_item_refs"))
        if "candidate_item_refs" in selection.value:
            for path, ref in chain(_selected(selection), _omitted(selection)):
                yield Finding(path, "" if ref in offered else f"{ref!r} is not in candidate_item_refs")
        surface = subject.linked(selection, "surface_id", "surfaces")
        available = frozenset(strings(surface.value, "available_item_refs")) if surface else frozenset[str]()
        if available:
            for at, ref in enumerate(strings(selection.value, "candidate_item_refs")):
                here = ref in available or ref not in subject.known_items  # what is unknown breaks refs.item
                path = f"{selection.path}.candidate_item_refs[{at}]"
                yield Finding(path, "" if here else f"{ref!r} is not available on its surface")


def complete(subject: Subject) -> Iterator[Finding]:
    """Look at every candidate, and at what is selected."""
    for selection in subject.records("selections"):
        selected = frozenset(ref for _, ref in _selected(selection))
        omitted = frozenset(ref for _, ref in _omitted(selection))
        for at, ref in enumerate(strings(selection.value, "candidate_item_refs")):
            path = f"{selection.path}.candidate_item_refs[{at}]"
            yield Finding(path, "" if ref in selected or ref in omitted else f"{ref!r} is neither selected nor omitted")
        for path, ref in _selected(selection):
            yield Finding(path, f"{ref!r} is omitted too" if ref in omitted else "")


def reason(subject: Subject) -> Iterator[Finding]:
    """Look at every omission."""
    for selection in subject.records("selections"):
        for path, omission in elements(selection.value, "omitted_item_refs", selection.path):
            if "reason" in omission:  # its absence breaks schema.required
                yield Finding(f"{path}.reason", "" if is_stated(omission["reason"]) else "the reason is empty")


def assembled(subject: Subject) -> Iterator[Finding]:
    """Look at the items that assemblies show, if something was selected for their target."""
    chosen: dict[str, set[str]] = {}
    for selection in subject.records("selections"):
        refs = chosen.setdefault(text(selection.value, "target"), set())
        refs.update(ref for _, ref in _selected(selection))
    for assembly in subject.records("assemblies"):
        target = text(assembly.value, "target")
        selections = [chosen[name] for name in {target, ""} if name in chosen]  # one without a target is for all
        for path, block in subject.blocks(assembly) if selections else ():
            for at, ref in enumerate(strings(block, "item_refs")):
                if ref in subject.known_items:  # what is unknown breaks refs.item
                    there = any(ref in refs for refs in selections)
                    problem = "" if there else f"{ref!r} was not selected for {target}"
                    yield Finding(f"{path}.item_refs[{at}]", problem)


def sources(subject: Subject) -> Iterator[Finding]:
    """Look at assemblies that state their sources."""
    for assembly in subject.records("assemblies"):
        if "source_item_refs" in assembly.value:
            stated = set(strings(assembly.value, "source_item_refs"))
            shown = {ref for _, block in subject.blocks(assembly) for ref in strings(block, "item_refs")}
            known = (stated ^ shown) & subject.known_items
            problem = f"differ from the blocks: {', '.join(sorted(known)[:5])}" if known else ""
            yield Finding(f"{assembly.path}.source_item_refs", problem)


def block_order(subject: Subject) -> Iterator[Finding]:
    """Look at the positions of blocks."""
    for assembly in subject.records("assemblies"):
        yield from _ascending(
            [(f"{path}.position", number(block, "position")) for path, block in subject.blocks(assembly)]
        )


def segments(subject: Subject) -> Iterator[Finding]:
    """Look at the order of segments, and at the items in them."""
    for window in subject.records("windows"):
        parts = list(elements(window.value, "segments", window.path))
        yield from _ascending([(f"{path}.order", number(segment, "order")) for path, segment in parts])
        seen: dict[str, str] = {}
        for path, segment in parts:
            for ref in strings(segment, "item_refs"):
                first = seen.setdefault(ref, path)
                yield Finding(path, "" if first == path else f"{ref!r} is also in {first}")


def _ascending(positions: list[tuple[str, float | None]]) -> Iterator[Finding]:
    before: float | None = None
    for path, position in positions:
        if position is not None:
            problem = "" if before is None or position > before else f"{position} follows {before}"
            yield Finding(path, problem)
            before = position


def _selected(selection: Object) -> Iterator[tuple[str, str]]:
    for at, ref in enumerate(strings(selection.value, "selected_item_refs")):
        yield f"{selection.path}.selected_item_refs[{at}]", ref


def _omitted(selection: Object) -> Iterator[tuple[str, str]]:
    for path, omission in elements(selection.value, "omitted_item_refs", selection.path):
        if ref := text(omission, "item_ref"):
            yield f"{path}.item_ref", ref
