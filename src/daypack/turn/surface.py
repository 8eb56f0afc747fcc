"""The surface: everything one turn could use, read once, before anything is chosen."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from daypack.turn.budget import Limits
from daypack.turn.items import Cost, Entry, Excerpt, Item, Missing, Omission
from daypack.turn.policy import DEFAULT_WINDOW, WindowPolicy
from daypack.types.compaction import Compaction
from daypack.types.deadline import NO_DEADLINE, Deadline
from daypack.types.kinds import EpochReason, Target

_SHOWN_LOSSES = 5  # loss notes that turns repeat


class Request(Struct, frozen=True, kw_only=True):
    """The arguments of one turn."""

    target: Target
    limits: Limits
    policy: WindowPolicy = DEFAULT_WINDOW
    model: str | None = None
    items: tuple[Item, ...] = ()
    start_seconds: float = 0.0
    deadline: Deadline = NO_DEADLINE  # for everything the turn waits for
    budget_from_file: bool = False  # the limits are those of context/budget
    protocol: bool | None = None  # ask for a snapshot in the reply; None: as the switch says
    tools: Cost = Cost()  # of the definitions that the request carries
    ids: dict[str, Any] = {}  # the caller's own: see `TurnIds`


class CompactionInfo(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of a compaction that later turns show and record."""

    id: str
    at: str = ""  # when it was made
    source: str
    start: int  # first and last message it covers
    through: int
    method: str
    trigger: str
    model: str
    before_tokens: int
    after_tokens: int
    room_tokens: int = 0  # of the window it was made for; 0: unknown
    refresh: str = "when the window fills again"
    losses: tuple[str, ...] = ()
    swap: str | None = None  # id under which `recall` returns the messages

    def holds(self, room_tokens: int) -> bool:
        """Return True if what it covers stays outside the window: as long as that is no larger than it was then."""
        return not 0 < self.room_tokens < room_tokens


def info_of(compaction: Compaction) -> CompactionInfo:
    """Return the part of a compaction that turns show and record."""
    swapped = next((record.id for record in compaction.swapped if record.kind == "message_range"), None)
    return CompactionInfo(
        id=compaction.id,
        at=compaction.at,
        source=compaction.source,
        start=compaction.start,
        through=compaction.through,
        method=compaction.method,
        trigger=compaction.trigger,
        model=compaction.model,
        before_tokens=compaction.before_tokens,
        after_tokens=compaction.after_tokens,
        room_tokens=compaction.room_tokens,
        losses=tuple(f"{loss.reason}: {loss.what}" for loss in compaction.losses[:_SHOWN_LOSSES]),
        swap=swapped,
    )


class Epoch(Struct, frozen=True, kw_only=True):
    """Consecutive turns that share a frozen prefix and the first message of the tail."""

    event: str  # the event of its first turn; empty until that is recorded
    reason: str  # an EpochReason, or what a newer version recorded
    limits: Limits
    tokenizer: str
    start: int  # first message of the tail
    head: int | None  # the user message before a tail that starts in the middle of its turn
    prefix: tuple[Item, ...]
    prefix_sha256: str
    skipped: dict[str, str] = {}  # id -> digest of items that did not fit into the prefix
    omitted: tuple[Omission, ...] = ()  # what its first turn recorded about these and others
    stubbed: frozenset[int] = frozenset()  # tool outputs of the tail that are shown as stubs
    refer_after: int = 0  # repeated outputs after this message refer to the first copy
    compaction: CompactionInfo | None = None
    memory: str = ""  # the memory that the session was bound to, if that answered


class Addition(Struct, frozen=True):
    """Items that were written into the tail after a message; they stay there for the rest of the epoch."""

    after: int  # seq of the message
    items: tuple[Item, ...]


class LastTurn(Struct, frozen=True, kw_only=True):
    """What the last turn leaves to the next one: its epoch, or the reason why that cannot continue."""

    epoch: Epoch | None = None
    reason: EpochReason | None = None
    last: int = 0  # the newest message it saw
    tail: tuple[int, int] = (0, 0)  # how many messages its tail had, and the seq of the last
    additions: tuple[Addition, ...] = ()  # what its tail contained besides messages
    unsearched: bool = False  # it could not search all of history


Refer = Callable[[Entry, int], Entry]


class Window(Struct, frozen=True, kw_only=True):
    """Messages that a tail is made of, oldest first."""

    entries: tuple[Entry, ...] = ()
    complete: bool = True  # they start with the first message of the conversation
    head: Entry | None = None  # the user message before them, if they start in the middle of a turn
    stubs: dict[int, Entry] = {}  # seq -> stub of each large output
    refer: Refer | None = None  # makes an output a reference to its first copy; None: the target gets every copy
    hidden: tuple[int, ...] = ()  # seqs of messages that the target may not see
    repeats: dict[int, int] = {}  # outputs shown as a reference -> the message with the first copy


class Surface(Struct, frozen=True, kw_only=True):
    """What was available to one turn."""

    target: Target
    now: str
    limits: Limits
    tools: Cost = Cost()
    policy: WindowPolicy = DEFAULT_WINDOW
    tokenizer: str
    model: str | None = None
    epoch: Epoch | None = None  # the epoch that continues if it fits
    former: Epoch | None = None  # the epoch of the last turn under the same limits; a new one keeps what it can
    reason: EpochReason | None = None  # why a new epoch begins in any case
    additions: tuple[Addition, ...] = ()  # what the turns of the epoch added to its tail
    memory: str = ""  # the memory that the session is bound to
    prefix: tuple[Item, ...] = ()
    shorter: dict[str, tuple[Item, ...]] = {}  # id -> shorter forms for a window without room, the longest first
    volatile: tuple[Item, ...] = ()  # items for the end of the tail, or after it
    excerpts: tuple[Excerpt, ...] = ()  # of messages before the epoch's tail, best first
    window_excerpts: tuple[Excerpt, ...] = ()  # the same for a new epoch
    notes: tuple[Item, ...] = ()  # changes since the epoch began; shown only if it continues
    waiting: tuple[Omission, ...] = ()  # changes that are shown from the next epoch on
    tail: Window | None = None  # the messages of the epoch
    window: Window | None = None  # the messages that a new epoch is cut from; None: the epoch is sure to continue
    first: int = 1  # first message that is not an instruction
    last: int = 0  # newest message
    user: Entry | None = None
    compaction: CompactionInfo | None = None  # the newest: the messages it covers stay out of the tail
    summarized: CompactionInfo | None = None  # the newest: CONTEXT.md is its document, for every target
    seen: int = 0  # newest message of the last turn
    searched: int = 0  # newest message that history was searched for
    last_tail: tuple[int, int] = (0, 0)  # length of the last turn's tail, and the seq of its last message
    budget_from_file: bool = False
    pins_edited: bool = False  # context/pinned was changed by hand
    ms: int | None = None  # time spent reading, if there is a limit
    omitted: tuple[Omission, ...] = ()
    missing: tuple[Missing, ...] = ()
    working_missing: tuple[Missing, ...] = ()  # of the working state, which a compaction replaces
