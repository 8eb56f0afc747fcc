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

    # Epochs. An epoch starts small, so that many turns append to it before the cached prefix is given up.
    epoch_share: Share = 0.4  # prefix and tail at the start of an epoch
    soft_share: Share = 0.75  # prefix and tail above this: compact in the background, where there is a model
    hard_share: Share = 0.9  # prefix and tail above this: a new epoch, and a compaction at once without a model

    # Volatile items: none of them can be cached.
    excerpt_tokens: Count = 2048  # the most that excerpts take; measured on LoCoMo: more add cost, not recall
    memory_hits: Count = 10  # a maximum: the memory has its own relevance floor

    # Large tool outputs
    fresh_outputs: Count = 6  # the newest outputs stay verbatim: the next step depends on them


DEFAULT_WINDOW = WindowPolicy()

# Budget
DEFAULT_BUDGET_TOKENS = 128_000  # the smallest window of the models in use
OUTPUT_RESERVE_TOKENS = 4096  # for the answer; a quarter of a smaller budget
REQUEST_TOKENS = 7  # added by providers around the request, the prefix and the volatile part

# Epochs
TAIL_SHARE = 0.6  # of the space after the prefix: the tail at the start of an epoch
UNCOMPACTED_SHARE = 0.5  # instead of epoch_share when everything no compaction covers fits: better than a gap

# Volatile items
VOLATILE_SHARE = 0.5  # of the space after the prefix: the most that is kept free for items other than excerpts
FREE_SHARE = 0.125  # of the space after the prefix: kept for excerpts once messages have left the window
FREE_ITEMS = 8
EXCERPT_SHARE = 0.65  # the most that excerpts take
IMPORT_SHARE = 0.25  # items of imported envelopes
MAX_IMPORT_TOKENS = 2048

# History search
RELEVANCE_FLOOR = 0.2  # of the best score; hits below it are noise
MAX_HITS = 120
MAX_QUOTED_EXCERPTS = 64  # each is part of the event
QUOTED_PARTS = 2  # times the tokens of the excerpts are read: some of the quoted messages may be in the tail

# Tiers: the part of the room that the blocks of one tier take at most, as a divisor
CORE_PART, WORKING_PART, EPHEMERAL_PART = 12, 12, 24

# Standing rules: a rule has about 20 tokens, so a window of 8k shows about 45 of them
RULE_SHARE = 0.15
MAX_RULE_TOKENS = 3000
MAX_INLINE_RULE_BYTES = 256 << 10  # of the user's messages, examined while a turn waits; older ones after it

# References to files and artifacts
MIN_REF_CHARS, MAX_REF_CHARS = 600, 3600

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
            allowed = "a number above 0, at most 1" if types[name] is Share else "a whole number from 0 to 1,000,000"
            raise _refused(f"window.{name} is {value!r}", place, f"it must be {allowed}") from error
    policy = WindowPolicy(**values)
    if not policy.epoch_share <= policy.soft_share <= policy.hard_share:
        shares = f"{policy.epoch_share:g}, {policy.soft_share:g}, {policy.hard_share:g}"
        hint = "an epoch starts below the soft share, and that is at most the hard share"
        places = ", ".join(dict.fromkeys(place for _, place in given.values()))
        raise _refused(f"window.epoch_share, soft_share and hard_share are {shares}", places, hint)
    return policy


def _refused(problem: str, place: str, hint: str) -> BadConfig:
    return BadConfig(problem, operation="read settings", place=place, hint=hint)
