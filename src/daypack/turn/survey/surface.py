"""The surface: everything a turn could use, before anything is chosen. `survey` is the one stage that reads."""

from msgspec import Struct

from daypack.turn.items import Entry, Item, Missing, Omission
from daypack.turn.limits import Limits
from daypack.types.kinds import Target


class Brief(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A compaction as the turns behind it know it."""

    id: str
    source: str
    start: int  # the first and the last message that left the window with it
    through: int
    method: str
    trigger: str
    model: str
    before_tokens: int
    after_tokens: int
    refresh: str = "when the window fills again"
    losses: tuple[str, ...] = ()
    swap: str | None = None  # the id of what left the window


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
    masked: frozenset[int] = frozenset()  # the tool outputs of the tail that stand there as one line
    last: int = 1 << 60  # the newest message there was; behind it, repeated outputs name the first
    compaction: "Brief | None" = None  # what its working state was made by


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
    waiting: tuple[Omission, ...]  # changes that are not shown before the next epoch
    entries: tuple[Entry, ...]
    complete: bool  # the entries begin with the first message of the conversation
    first: int  # number of the first message that is not an instruction
    last: int  # number of the newest message
    user: Entry | None
    head: Entry | None  # the epoch's; for a new one, the user message before the entries
    epoch: Epoch | None  # the one that goes on if it can
    masks: tuple[dict[int, Entry], ...] = ()  # the shorter forms of large outputs, few of them first
    compaction: Brief | None = None  # the one that counts: what it summed up does not come back by itself
    keep_tokens: int | None = None  # what a caller wants to keep of the tail
    reserved_tokens: int = 0  # what a compaction will add to the prefix
    shown: int = 0  # the newest message of the turn before
    ms: int | None = None  # what it took to read all this, when there is a limit to it
    omitted: tuple[Omission, ...] = ()
    missing: tuple[Missing, ...] = ()


class Request(Struct, frozen=True, kw_only=True):
    """What a turn is asked for."""

    target: Target
    limits: Limits
    model: str | None
    items: tuple[Item, ...] = ()
    start_seconds: float = 0.0
    reserved_tokens: int = 0
    shown: int = 0
    protocol: bool | None = None  # whether the reply shall carry a snapshot; None: as the switch says
