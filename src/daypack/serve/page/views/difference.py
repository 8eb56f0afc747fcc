"""The difference between two calls: items and messages that were added, removed, changed or moved, with their texts."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from daypack.errors import SourceMissing
from daypack.history.session import History
from daypack.serve.page.calls.items import items_of, text_of
from daypack.serve.page.calls.kept import kept_of
from daypack.serve.page.calls.place import Place, find_place
from daypack.serve.page.calls.shapes import MOST_CHARS, ShownItem, cut
from daypack.serve.page.calls.text_diff import diff_lines
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.comparison import ComparedCalls, compare_calls, compare_turns, require_one_kind
from daypack.session.shown import shown
from daypack.text.tokens import Counter, counter_for
from daypack.turn.evidence.calls.parts import part_of_source
from daypack.turn.evidence.observed.diff import MessageChange
from daypack.turn.evidence.observed.links import Links
from daypack.turn.evidence.observed.request import ObservedTurn
from daypack.turn.evidence.observed.sources import message_texts
from daypack.turn.ledger import NOT_REDACTED
from daypack.turn.turn import Turn


class Row(Struct, frozen=True, kw_only=True):
    """One thing that differs; `lines` are those of a unified diff of what changed."""

    change: str  # added, removed, changed or moved
    id: str
    kind: str
    category: str | None = None
    ref: str | None = None
    tokens: int | None = None
    text: str = ""
    lines: Sequence[str] = ()


class ShownDifference(Struct, frozen=True, kw_only=True):
    """What differs between two calls; None where it is not known."""

    before: str
    after: str
    kind: str
    difference: dict[str, Any]  # as `daypack diff --json` prints it
    tokens: tuple[int | None, int | None]
    prefix_kept: bool | None = None
    tail_kept: bool | None = None
    epoch_kept: bool | None = None
    rows: Sequence[Row] = ()


def show_difference(home: OpenedHome, asked: Asked) -> ShownDifference:
    """Return what changed from one call to another; without `before`, from the call before."""
    with home.session(asked.text("agent"), asked.text("session")) as session:
        place = find_place(session, asked.text("after"))
        name = asked.text("before", "") or _call_before(session, place)
        before, after = find_place(session, name).chosen, place.chosen
        require_one_kind(before, after)
        if before.call and after.call:
            links = kept_of(session).links(session)
            return _observed(session, compare_calls(session, before.call, after.call, links), links)
        kept = kept_of(session)
        turns = [kept.turn(session, chosen.event).turn for chosen in (before, after)]
        return _prepared(session.history, *turns)


def _call_before(session: Session, place: Place) -> str:
    if place.row is None and place.chosen.call is None:
        session.turns.replay(place.chosen.event, verify_digests=False)  # raises what is wrong with the name
    if place.previous is None:
        problem, hint = f"no call before {place.chosen.event} is known", "name the call to compare with: before=…"
        raise SourceMissing(problem, operation="diff", place=session.history.layout.folder, hint=hint)
    return place.previous


# Turns of daypack


def _prepared(history: History, before: Turn, after: Turn) -> ShownDifference:
    compared = compare_turns(before, after)
    found = compared.difference
    return ShownDifference(
        before=before.event_id or "",
        after=after.event_id or "",
        kind="prepared",
        difference=shown(history, compared.as_json()),
        tokens=found.tokens,
        prefix_kept=found.prefix_kept,
        tail_kept=found.tail_kept,
        epoch_kept=found.epoch_kept,
        rows=_rows(_items(history, before), _items(history, after), frozenset(found.moved)),
    )


def _items(history: History, turn: Turn) -> dict[str, ShownItem]:
    items = items_of(history, turn, None)
    if NOT_REDACTED in turn.record.redacted:
        items = [shown(history, item) for item in items]
    return {item.id: item for item in items}


def _rows(old: Mapping[str, ShownItem], new: Mapping[str, ShownItem], moved: frozenset[str]) -> list[Row]:
    """Return what differs, in the order sent; what was removed is at its former place."""
    rows: list[Row] = []
    names = list(old), list(new)
    for kind, start, stop, new_start, new_stop in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind != "equal":
            rows += [_row("removed", old[name]) for name in names[0][start:stop] if name not in new]
        for name in names[1][new_start:new_stop]:
            item, former = new[name], old.get(name)
            if former is None:
                rows.append(_row("added", item))
            elif (former.text, former.calls) != (item.text, item.calls):
                rows.append(replace(_row("changed", item), text="", lines=diff_lines(_said(former), _said(item))))
            elif name in moved:
                rows.append(_row("moved", item))
    return rows


def _row(change: str, item: ShownItem) -> Row:
    return Row(
        change=change,
        id=item.id,
        kind=item.role or item.kind,
        category=item.category,
        ref=item.ref,
        tokens=item.tokens,
        text=cut(_said(item), MOST_CHARS),
    )


def _said(item: ShownItem) -> str:
    calls = [f"→ {call.name} {call.arguments}" for call in item.calls]
    return "\n".join(filter(None, (item.text, *calls)))


# Calls of other programs


def _observed(session: Session, compared: ComparedCalls, links: Links) -> ShownDifference:
    before, after, found = compared.before, compared.after, compared.difference
    prefix_kept = tail_kept = None
    rows: list[Row] = []
    if found and compared.requests:
        if found.shape_known:
            tools = found.tools_added or found.tools_removed or found.tools_changed or found.tools_reordered
            prefix_kept = not tools and not found.system
        tail_kept = found.kept == len(compared.requests[0].sent)
        rows = [*_shape_rows(compared), *_message_rows(compared, links)]
    else:
        rows = [
            Row(
                change="added",
                id=f"messages:{message.seq}",
                kind=message.role,
                category="tail",
                ref=f"messages:{message.seq}",
                text=text_of(message),
            )
            for message in compared.between
        ]
    rows = [_without_secrets(session.history, row) for row in rows]
    return ShownDifference(
        before=before.event,
        after=after.event,
        kind="observed",
        difference=shown(session.history, compared.as_json()),
        tokens=(before.input_tokens, after.input_tokens),
        prefix_kept=prefix_kept,
        tail_kept=tail_kept,
        rows=rows,
    )


def _without_secrets(history: History, row: Row) -> Row:
    """Return a row as it is shown; what else it has are codes and numbers."""
    name = shown(history, row.id) if row.id.startswith("tool:") else row.id
    lines = shown(history, tuple(row.lines)) if row.lines else ()
    return replace(row, id=name, text=cut(shown(history, row.text), MOST_CHARS), lines=lines)


def _shape_rows(compared: ComparedCalls) -> Iterator[Row]:
    """Yield what differs in tools, system prompt and parameters."""
    found, requests = compared.difference, compared.requests
    assert found is not None
    assert requests is not None
    old, new = map(_tools, requests)
    for change, names, tools in (("removed", found.tools_removed, old), ("added", found.tools_added, new)):
        for name in names:
            yield Row(change=change, id=f"tool:{name}", kind="tools", category="prefix", text=tools.get(name, ""))
    for name in found.tools_changed:
        lines = diff_lines(old.get(name, ""), new.get(name, ""))
        yield Row(change="changed", id=f"tool:{name}", kind="tools", category="prefix", lines=lines)
    if found.tools_reordered:
        yield Row(change="moved", id="tools", kind="tools", category="prefix")
    if found.system:
        yield Row(change="changed", id="system", kind="system", category="prefix", lines=found.system)
    for change in found.parameters:
        lines = diff_lines(_value(change.before), _value(change.after))
        yield Row(change="changed", id=f"parameter:{change.name}", kind="parameter", lines=lines)


def _message_rows(compared: ComparedCalls, links: Links) -> Iterator[Row]:
    found, requests = compared.difference, compared.requests
    assert found is not None
    assert requests is not None
    counters = [counter_for(turn.record.model) for turn in requests]
    for change in found.changes:
        at = change.change == "added"
        yield _message_row(requests[at], change, links, counters[at])


def _message_row(turn: ObservedTurn, change: MessageChange, links: Links, counter: Counter) -> Row:
    found = list(message_texts(turn, change.position, links, counter)) if change.known else []
    refs = [part.ref for part, _ in found if part.ref]
    tokens = [part.tokens for part, _ in found]
    return Row(
        change=change.change,
        id=f"message:{change.position}",
        kind=change.role or "unknown",
        category=part_of_source(found[-1].part.source) if found else "unknown",
        ref=refs[0] if refs else None,
        tokens=sum(count or 0 for count in tokens) if found and None not in tokens else None,
        text="\n".join(text or f"[{part.source}]" for part, text in found),
    )


def _tools(turn: ObservedTurn) -> dict[str, str]:
    return {name: _value(tool) for name, tool in turn.shape.tools_by_name.items()} if turn.shape else {}


def _value(value: object) -> str:
    return "" if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
