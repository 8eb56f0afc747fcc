"""Rules about budgets and windows: limits are kept, and figures add up."""

from collections.abc import Iterator

from daypack.turn.conformance.objects import Object, elements, strings
from daypack.turn.conformance.subject import Finding, Subject, number, text

_SHARED = ("max_tokens", "reserved_tokens", "actual_tokens")


def limit(subject: Subject) -> Iterator[Finding]:
    """Look at tokens, bytes and items; time that was exceeded cannot be given back and is a warning."""
    for budget in subject.records("budgets"):
        for unit in ("tokens", "bytes", "items"):
            used, most = number(budget.value, f"actual_{unit}"), number(budget.value, f"max_{unit}")
            reserve = (number(budget.value, "reserved_tokens") or 0) if unit == "tokens" else 0
            if used is not None and most is not None:
                problem = f"{used:,} {unit} with {reserve:,} in reserve, the limit is {most:,}"
                yield Finding(f"{budget.path}.actual_{unit}", problem if used + reserve > most else "")


def sums(subject: Subject) -> Iterator[Finding]:
    """Look at windows whose segments state the tokens of all their items."""
    for window, segments in _windows(subject):
        actual = number(window.value, "actual_tokens")
        tokens = [number(segment, "actual_tokens") for segment in segments]
        unstated = [segment for segment, count in zip(segments, tokens, strict=True) if count is None]
        if actual is None or not segments or any(strings(segment, "item_refs") for segment in unstated):
            continue
        total = sum(count or 0 for count in tokens)
        problem = f"the segments add up to {total:,}, the window states {actual:,}"
        yield Finding(f"{window.path}.actual_tokens", "" if total == actual else problem)


def reserves(subject: Subject) -> Iterator[Finding]:
    """Look at windows whose segments reserve tokens."""
    for window, segments in _windows(subject):
        stated = number(window.value, "reserved_tokens")
        parts = [count for segment in segments if (count := number(segment, "reserved_tokens")) is not None]
        if stated is not None and parts:
            problem = f"the segments reserve {sum(parts):,}, the window {stated:,}"
            yield Finding(f"{window.path}.reserved_tokens", "" if sum(parts) == stated else problem)


def window(subject: Subject) -> Iterator[Finding]:
    """Look at the figures that a window and its budget both state."""
    for found in subject.records("windows"):
        budget = subject.linked(found, "budget_ref", "budgets")
        for field in _SHARED if budget else ():
            own, other = number(found.value, field), number(budget.value, field) if budget else None
            if own is not None and other is not None:
                problem = f"{own:,} here, {other:,} in the budget"
                yield Finding(f"{found.path}.{field}", "" if own == other else problem)


def items(subject: Subject) -> Iterator[Finding]:
    """Look at budgets that selections refer to."""
    selected: dict[str, set[str]] = {}
    for selection in subject.records("selections"):
        refs = selected.setdefault(text(selection.value, "budget_ref"), set())
        refs.update(strings(selection.value, "selected_item_refs"))
    for budget in subject.records("budgets"):
        used = number(budget.value, "actual_items")
        if used is not None and budget.id in selected:
            count = len(selected[budget.id])
            problem = f"states {used:,} items, {count:,} are selected"
            yield Finding(f"{budget.path}.actual_items", "" if used == count else problem)


def _windows(subject: Subject) -> Iterator[tuple[Object, list[dict[str, object]]]]:
    for found in subject.records("windows"):
        yield found, [segment for _, segment in elements(found.value, "segments", found.path)]
