"""One session: what it is, and all its calls as rows for the strip."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from daypack.derived.children import read_children
from daypack.errors import DaypackError
from daypack.history.sessions import CHILD, nearest_parent
from daypack.serve.page.session_list import program_of
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.listing import describe
from daypack.session.shown import shown
from daypack.turn.evidence.calls.parts import PARTS
from daypack.turn.evidence.calls.rows import COLUMNS, CallRow, Calls, FoldRow
from daypack.turn.memory_binding import read_binding
from daypack.upkeep.find.filters import name_of


def show_strip(home: OpenedHome, asked: Asked) -> dict[str, Any]:
    """Return the facts of a session and its calls, oldest first, from the index `from` on."""
    start = asked.number("from", 0)
    with home.session(asked.text("agent"), asked.text("session")) as session:
        calls = session.turns.calls.read()
        return {
            "facts": _facts(home, asked, session, calls),
            "parts": PARTS,
            "columns": COLUMNS,
            "calls": _rows(session, calls.rows[start:]),
            "total": len(calls.rows),
            "from": start,
            "folds": _folds(session, calls.folds),
        }


def _rows(session: Session, rows: Sequence[CallRow]) -> list[CallRow]:
    """Return rows without secrets: the names of models and tools are the only texts in them."""
    words = {text for row in rows for text in (row.model, row.cache_break) if text}
    clean = _clean(session, words)
    if not clean:
        return list(rows)
    return [
        replace(
            row,
            model=clean.get(row.model or "", row.model),
            cache_break=clean.get(row.cache_break or "", row.cache_break),
        )
        for row in rows
    ]


def _folds(session: Session, folds: Sequence[FoldRow]) -> list[dict[str, Any]]:
    clean = _clean(session, {fold.trigger for fold in folds})
    return [
        {
            **{name: getattr(fold, name) for name in FoldRow.__struct_fields__},
            "trigger": clean.get(fold.trigger, fold.trigger) or None,
        }
        for fold in folds
    ]


def _clean(session: Session, words: set[str]) -> dict[str, str]:
    """Return the texts that have secrets in them, without these."""
    ordered = sorted(words)
    return {text: clean for text, clean in zip(ordered, shown(session.history, ordered), strict=True) if text != clean}


def _facts(home: OpenedHome, asked: Asked, session: Session, calls: Calls) -> dict[str, Any]:
    facts = describe(session)
    del facts["path"]
    ledger = session.turns.inputs.ledger.read()
    session.turns.inputs.ledger.save()  # of an imported session nothing else does: the next process reads less
    names = frozenset(home.home.list(session.agent))
    facts |= {
        "program": program_of(session.agent),
        "project": name_of(facts["cwd"] or ""),
        "budget_tokens": None,
        "memory": _memory(home, asked, session),
        "pins": [],
        "children": len(_children(session, names, recorded=ledger.children)),
        "parent": nearest_parent(session.name, names),
        "protocol": ledger.switches.get("protocol", False),
        "own": calls.own,
        "observed": calls.observed,
    }
    with suppress(DaypackError):  # a budget or a pin that cannot be read: `daypack doctor` says why
        if calls.own or session.turns.budget_text is not None:  # the budget of another program is not known
            facts["budget_tokens"] = session.turns.limits("model").tokens
    with suppress(DaypackError):
        facts["pins"] = list(session.pins)
    texts = ("title", "cwd", "project", "model", "memory")
    words = {name: facts[name] or None for name in texts} | {"pins": facts["pins"]}
    return {**facts, **shown(session.history, words)}


def _memory(home: OpenedHome, asked: Asked, session: Session) -> dict[str, str | None] | None:
    """Return the memory that a session is bound to, with its title if the viewer may see it."""
    title = None
    with suppress(DaypackError):
        binding = read_binding(session.meta)
        if binding is None:
            return None
        if home.memories and binding.url is None and binding.user == asked.viewer.user:
            with suppress(DaypackError):
                title = home.memories.as_user(binding.user).get_memory(binding.memory_id).title
        return {"id": binding.memory_id, "title": title}
    return None


def _children(session: Session, names: frozenset[str], *, recorded: bool) -> set[str]:
    """Return the names of the children that were recorded, and of the sub-agents that have sessions."""
    start = session.name + CHILD
    known = {
        name.removeprefix(start)
        for name in names
        if name.startswith(start) and nearest_parent(name, names) == session.name
    }
    if recorded:
        known |= {child.name for child in read_children(session.history, recorded=True)}
    return known
