"""Would it fit? A dry run of the next call with another budget; nothing is recorded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from daypack.errors import BudgetTooSmall, Damaged, DaypackError, NoUserMessage
from daypack.serve.page.calls.items import items_of
from daypack.serve.page.calls.omissions import omissions_of
from daypack.serve.page.calls.shapes import MOST_CHARS, ShownItem, ShownOmission
from daypack.serve.page.views.asked import Asked
from daypack.serve.page.views.opened import OpenedHome
from daypack.session import Session
from daypack.session.shown import shown
from daypack.turn.evidence.calls.parts import PARTS, Part
from daypack.turn.evidence.explain import headline
from daypack.turn.evidence.replay import read_turn
from daypack.turn.evidence.words import EPOCHS
from daypack.turn.tools import load_tools
from daypack.turn.turn import Turn

if TYPE_CHECKING:
    from daypack.turn.prepare import TurnOptions

_MOST_TOKENS = 2_000_000  # as many as the largest windows of models have
_NO_PACK = (BudgetTooSmall, NoUserMessage, Damaged)


class FittedItem(Struct, frozen=True, kw_only=True):
    """An item that the pack would hold."""

    id: str
    category: Part
    part: str
    tokens: int | None
    title: str


class Problem(Struct, frozen=True):
    """Why there is no pack of that size."""

    message: str
    hint: str


class Fit(Struct, frozen=True, kw_only=True):
    """The pack that the next call would get; nothing in it if it does not fit."""

    budget_tokens: int
    tokens: int | None = None
    reserved_tokens: int | None = None
    parts: Sequence[Part] = PARTS
    split: Sequence[int] = ()
    messages: int | None = None
    of_messages: int
    new_epoch: str | None = None
    headline: str = ""
    items: Sequence[FittedItem] = ()
    omitted: Sequence[ShownOmission] = ()
    problem: Problem | None = None


def show_fit(home: OpenedHome, asked: Asked) -> Fit:
    """Return what a pack of a budget would hold if the next call were made now."""
    budget = asked.number("budget", most=_MOST_TOKENS)
    with home.session(asked.text("agent"), asked.text("session")) as session:
        count = session.history.messages.reader.count()
        try:
            turn = session.prepare(**{**_as_before(session), "budget": budget, "dry_run": True})
        except _NO_PACK as error:
            problem = Problem(error.problem, error.hint)
            return Fit(budget_tokens=budget, of_messages=count, problem=problem)
        return _fit(session, turn, budget, count)


def _fit(session: Session, turn: Turn, budget: int, count: int) -> Fit:
    items = items_of(session.history, turn, MOST_CHARS)
    return Fit(
        budget_tokens=budget,
        tokens=turn.tokens,
        reserved_tokens=turn.record.limits.reserved_tokens,
        split=_split(turn, items),
        messages=len(turn.parts.messages),
        of_messages=count,
        new_epoch=EPOCHS.get(turn.new_epoch, turn.new_epoch) or None,
        headline=shown(session.history, headline(turn)),
        items=[
            FittedItem(id=item.id, category=item.category, part=item.part, tokens=item.tokens, title=item.title)
            for item in items
        ],
        omitted=omissions_of(session.history, turn),
    )


def _split(turn: Turn, items: Sequence[ShownItem]) -> tuple[int, ...]:
    """Return the tokens of a turn by part, which sum to all of them: text around items counts for the part it is in."""
    split = dict.fromkeys(PARTS, 0)
    for item in items:
        split[item.category] += item.tokens or 0
    stable = turn.record.stable
    ends = {"prefix": stable.prefix_tokens, "tail": stable.tokens - stable.prefix_tokens}
    for part in ("prefix", "tail", "volatile"):
        counted = sum(item.tokens or 0 for item in items if item.part == part)
        split[part] += ends.get(part, turn.tokens - stable.tokens) - counted
    return tuple(split.values())


def _as_before(session: Session) -> "TurnOptions":
    """Return the model and the tools of the newest turn: the next call will most likely have them too."""
    try:
        record = read_turn(session.history, session.turns.newest())
        tools = load_tools(session.history, record.tools.digest) if record.tools else None
    except DaypackError:  # no turn yet, or a damaged one
        return {}
    return {"model": record.model, "tools": tools}
