"""A call as one row of numbers and codes, and a compaction between calls. No text of history is in them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from daypack.turn.evidence.calls.parts import PARTS, Part

Mark = Literal["error", "retry", "incomplete", "erased"]
Split = tuple[int, ...]  # tokens by part, in the order of PARTS
NO_SPLIT: Split = (0,) * len(PARTS)
UNKNOWN = PARTS.index("unknown")


class CallRow(Struct, frozen=True, array_like=True, gc=False):
    """A call: a turn that daypack prepared, or a call of another program."""

    event: str  # what commands name it by: its event, or the reply where only that is known
    at: str
    kind: Literal["prepared", "observed"]
    target: str
    model: str | None
    tokens: int | None  # counted tokens of a turn, reported ones of a call of another program
    budget: int | None
    split: Split  # sums to `tokens`
    omitted: int | None
    missing: int | None
    epoch: str | None  # the event of the first turn of its epoch
    cache_break: str | None  # why the prompt cache broke with this call
    lost: int | None  # tokens that were read again because of it
    expected: int | None  # tokens expected from the cache
    input: int | None  # as the provider reported them, like the next two
    cached: int | None
    output: int | None
    reply: int | None  # the message that answered
    mark: Mark | None = None


COLUMNS = tuple("break" if name == "cache_break" else name for name in CallRow.__struct_fields__)


class FoldRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A compaction, before the call with the index `before`."""

    event: str
    at: str
    before: int
    trigger: str = ""
    before_tokens: int | None = None
    after_tokens: int | None = None
    undone: bool = False
    own: bool = False  # of daypack; else of another program


class Calls(NamedTuple):
    """The calls of a session, oldest first, and the compactions between them."""

    rows: Sequence[CallRow] = ()
    folds: Sequence[FoldRow] = ()

    @property
    def own(self) -> bool:
        """True if daypack prepared a turn."""
        return any(row.kind == "prepared" for row in self.rows)

    @property
    def observed(self) -> bool:
        """True if another program made a call."""
        return any(row.kind == "observed" for row in self.rows)


def split_of(tokens: dict[Part, int]) -> Split:
    """Return tokens by part in the order of PARTS."""
    return tuple(tokens.get(part, 0) for part in PARTS)


def share_out(split: Split, total: int) -> Split:
    """Return a split in the same proportions that sums to a total; rounding is in the largest part."""
    whole = sum(split)
    if not whole:
        return (*(0 for _ in split[:UNKNOWN]), total)
    shares = [tokens * total // whole for tokens in split]
    shares[max(range(len(split)), key=split.__getitem__)] += total - sum(shares)
    return tuple(shares)


def merge(prepared: Calls, observed: Calls) -> Calls:
    """Return the calls of both kinds by their times; each kind keeps the order of its log."""
    if not observed.rows and not observed.folds:
        return prepared
    if not prepared.rows and not prepared.folds:
        return observed
    own, others = _entries(prepared), _entries(observed)
    entries: list[CallRow | FoldRow] = []  # newest first
    while own and others:
        entries.append(own.pop() if own[-1].at >= others[-1].at else others.pop())
    entries += reversed(own or others)
    rows: list[CallRow] = []
    folds: list[FoldRow] = []
    for entry in reversed(entries):
        if isinstance(entry, CallRow):
            rows.append(entry)
        else:
            folds.append(replace(entry, before=len(rows)))
    return Calls(rows, folds)


def _entries(calls: Calls) -> list[CallRow | FoldRow]:
    """Return rows and compactions in one order, oldest first."""
    entries: list[CallRow | FoldRow] = []
    start = 0
    for fold in calls.folds:
        entries += calls.rows[start : fold.before]
        entries.append(fold)
        start = max(start, fold.before)
    return [*entries, *calls.rows[start:]]
