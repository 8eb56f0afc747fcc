"""The surface: everything a turn could use, before anything is chosen. `survey` is the one stage that reads."""

from msgspec import Struct

from daypack.flow.items import Entry, Item, Left, Lost
from daypack.flow.limits import Limits
from daypack.types.kinds import Target


class Epoch(Struct, frozen=True, kw_only=True):
    """A stretch of turns that share a frozen prefix and the place where the tail begins."""

    event: str  # of the turn it began with; empty until that is recorded
    reason: str
    limits: Limits
    tokenizer: str
    start: int  # number of the first message of the tail
    head: int | None  # the user message that stands before a tail that begins in the middle of its turn
    prefix: tuple[Item, ...]
    prefix_sha256: str
    skipped: dict[str, str] = {}  # id -> digest of what did not fit into the prefix


class Surface(Struct, frozen=True, kw_only=True):
    """What was available to one turn."""

    target: Target
    now: str
    limits: Limits
    tokenizer: str
    model: str | None
    prefix: tuple[Item, ...]
    volatile: tuple[Item, ...]
    notes: tuple[Item, ...]  # what changed since the epoch began; shown only if it goes on
    waiting: tuple[Left, ...]  # changes that are not shown before the next epoch
    entries: tuple[Entry, ...]
    complete: bool  # the entries begin with the first message of the conversation
    first: int  # number of the first message that is not an instruction
    last: int  # number of the newest message
    user: Entry | None
    head: Entry | None  # the epoch's; for a new one, the user message before the entries
    epoch: Epoch | None  # the one that goes on if it can
    ms: int | None = None  # what it took to read all this, when there is a limit to it
    left: tuple[Left, ...] = ()
    lost: tuple[Lost, ...] = ()


class Request(Struct, frozen=True, kw_only=True):
    """What a turn is asked for."""

    target: Target
    limits: Limits
    model: str | None
    items: tuple[Item, ...] = ()
    start_seconds: float = 0.0
