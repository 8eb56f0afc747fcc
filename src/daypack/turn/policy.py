"""Every number of the window's policy, with its reason.

The *room* is the budget without the reserve for the answer. Shares are of the room unless a comment says otherwise.
Space is allocated in priority order: the newest user message, the prefix, the tail, then volatile items.

The fields of `WindowPolicy` can be set ([window] in config.toml); the constants cannot. All of them influence only
decisions that a turn records, so a turn replays whatever they are later.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from daypack.config import Given
from daypack.errors import BadConfig

Share = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class WindowPolicy(Struct, frozen=True, kw_only=True):
    """The numbers of the window that a user can set."""

    # Prefix
    prefix_share: Share = 0.5  # the most that items other than instructions take: the conversation comes first
    recent_share: Share = 0.25  # kept for recent messages, however long the instructions are

    # Epochs. An epoch leaves space, so that many turns append to it before the cached beginning is given up.
    epoch_share: Share | None = None  # prefix and tail at the start of an epoch; None: as `opening_share` says
    verbatim_share: Share = 0.4  # kept for large outputs verbatim where the start of the tail has to move
    soft_share: Share = 0.75  # prefix and tail above this: compact in the background, where there is a model
    hard_share: Share = 0.97  # prefix and tail above this: a new epoch, and a compaction at once without a model

    # What is found for a message; it is added to the tail once.
    excerpt_tokens: Count = 2048  # the most that excerpts take; measured on LoCoMo: more add cost, not recall
    memory_hits: Count = 10  # a maximum: the memory has its own relevance floor

    def opening_share(self, room_tokens: int) -> float:
        """Return the share of the room that prefix and tail take at the start of an epoch.

        A new epoch costs about the whole window once, an unused token its place in every call. In a large window many
        calls share the cost of an epoch, so a smaller share is left free. Measured on transcripts (bench, window).
        """
        if self.epoch_share is not None:
            return self.epoch_share
        low, high = OPENING_SHARES
        if room_tokens < COMPACTION_MIN_ROOM_TOKENS:
            low = high = SMALL_OPENING_SHARE
        return min(self.hard_share, max(low, min(high, 1 - FREE_FACTOR / max(1, room_tokens) ** 0.75)))

    def background_share(self, room_tokens: int) -> float:
        """Return the share above which a model compacts in the background: never right after an epoch began."""
        return max(self.soft_share, (self.opening_share(room_tokens) + self.hard_share) / 2)


# Epochs. Names the agent used next that were in the window / share of the input a cache could read, on transcripts:
# 0.90 / 0.84 at 16k, 0.96 / 0.91 at 32k, 0.991 / 0.948 at 64k. At 16k an opening share of 0.72 gives 0.91 / 0.80.
FREE_FACTOR = 767
OPENING_SHARES = (0.52, 0.9)
SMALL_OPENING_SHARE = 0.4  # of rooms below COMPACTION_MIN_ROOM_TOKENS: excerpts find more than a tail holds
KEPT_VERBATIM_SHARE = 0.08  # with this much space for large outputs the start of the tail stays, and stays cached
MAX_VERBATIM_PART = 0.6  # of the tail: the most that is kept for large outputs, however small the tail
AFTER_COMPACTION_SHARE = 0.85  # of the space after the prefix: the tail that a compaction left stays whole up to this
LEAST_PART_OF_REST = 0.5  # of the space after a long prefix: for recent messages
LEAST_FREED_SHARE = 0.03  # a new epoch that frees less is not worth its cost
USER_START_SHARE = 0.9  # a tail that loses less than the rest of this starts with a user message

DEFAULT_WINDOW = WindowPolicy()

# Budget
DEFAULT_BUDGET_TOKENS = 128_000  # the smallest window of the models in use
OUTPUT_RESERVE_TOKENS = 4096  # for the answer; a quarter of a smaller budget
REQUEST_TOKENS = 7  # added by providers around the request, the prefix and the volatile part

# Volatile items
VOLATILE_SHARE = 0.5  # of the space after the prefix: the most that is kept free for items other than excerpts
FREE_SHARE = 0.125  # of the space after the prefix: kept for excerpts once messages have left the window
FREE_ITEMS = 8
EXCERPT_SHARE = 0.65  # the most that excerpts take
ROOM_PART_OF_EXCERPTS = 12  # of a room that is compacted: excerpts stay in the tail and fill it
LONG_TAIL_PARTS = 4  # a tail of so many times the excerpts' tokens: half of them are enough
WORKING_PART_OF_EXCERPTS = 4  # of the excerpts while the agent works on a message: the loop continued without them
IMPORT_SHARE = 0.25  # items of imported envelopes
MAX_IMPORT_TOKENS = 2048

# History search
MAX_HITS = 120
MAX_QUOTED_EXCERPTS = 64  # each is part of the event
QUOTED_PARTS = 2  # times the tokens of the excerpts are read: some of the quoted messages may be in the tail

STEP_TOKENS = 150  # excerpts found with one step of the agent: few, because no user asked for them
STEP_SHARE = 0.1  # excerpts of one epoch above which steps are no longer searched for

MEMORY_TIME_SHARE = 0.8  # of the milliseconds of a turn; the rest is for search in history, which needs a few

# Tiers: the part of the room that the blocks of one tier take at most, as a divisor
CORE_PART, WORKING_PART, EPHEMERAL_PART = 12, 12, 24

# Standing rules: a rule has about 20 tokens, so a window of 8k shows about 45 of them
RULE_SHARE = 0.15
MAX_RULE_TOKENS = 3000
MAX_INLINE_RULE_BYTES = 256 << 10  # of the user's messages, examined while a turn waits; older ones after it

# References to files and artifacts
MIN_REF_CHARS, MAX_REF_CHARS = 600, 3600

# Names of what has left the window
NAME_SHARE, MAX_NAME_TOKENS = 0.08, 2000
NAME_CHARS = 3  # of a token of such a list

# Compaction during a turn
COMPACTION_MIN_ROOM_TOKENS = 6000  # smaller windows that never overflowed do better with excerpts
COMPACTION_RESERVE_TOKENS = 1200  # about what the first compaction adds to the prefix; an eighth of a small room
MAX_INLINE_COMPACTION_BYTES = 1 << 20  # read while a turn waits, in half a second; older ones are read after it
MAX_BACKGROUND_COMPACTION_BYTES = 64 << 20  # read after it, in half a minute; only `compact` on request reads more


def compaction_reserve(room_tokens: int) -> int:
    """Return about how many tokens the first compaction adds to the prefix."""
    return min(COMPACTION_RESERVE_TOKENS, room_tokens // 8)


def read_window(given: Mapping[str, Given]) -> WindowPolicy:
    """Return the policy of a session's windows from its settings; raise BadConfig for a value that is not allowed."""
    if not given:
        return DEFAULT_WINDOW
    types = {field.name: field.type for field in msgspec.structs.fields(WindowPolicy)}
    values: dict[str, Any] = {}
    for name, (value, place) in given.items():
        if name not in types:
            raise _refused(f"no setting window.{name}", place, f"there are {', '.join(types)}")
        try:
            values[name] = msgspec.convert(value, types[name], strict=not isinstance(value, str))
        except msgspec.ValidationError as error:
            whole = types[name] is Count
            allowed = "a whole number from 0 to 1,000,000" if whole else "a number above 0, at most 1"
            raise _refused(f"window.{name} is {value!r}", place, f"it must be {allowed}") from error
    policy = WindowPolicy(**values)
    if not (policy.epoch_share or 0) <= policy.soft_share <= policy.hard_share:
        epoch = "unset" if policy.epoch_share is None else f"{policy.epoch_share:g}"
        shares = f"{epoch}, {policy.soft_share:g}, {policy.hard_share:g}"
        hint = "an epoch starts below the soft share, and that is at most the hard share"
        places = ", ".join(dict.fromkeys(place for _, place in given.values()))
        raise _refused(f"window.epoch_share, soft_share and hard_share are {shares}", places, hint)
    return policy


def _refused(problem: str, place: str, hint: str) -> BadConfig:
    return BadConfig(problem, operation="read settings", place=place, hint=hint)
