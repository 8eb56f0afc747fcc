"""Every number of the window's policy, with its reason.

The *room* is the budget without the reserve for the answer. Shares are of the room unless a comment says otherwise.
Space is allocated in priority order: the newest user message, the prefix, the tail, then volatile items.
"""

# Budget
DEFAULT_BUDGET_TOKENS = 128_000  # the smallest window of the models in use
OUTPUT_RESERVE_TOKENS = 4096  # for the answer; a quarter of a smaller budget
REQUEST_TOKENS = 7  # added by providers around the request, the prefix and the volatile part

# Prefix
PREFIX_SHARE = 0.5  # the most that items other than instructions take: the conversation comes first
RECENT_SHARE = 0.25  # kept for recent messages, however long the instructions are

# Epochs. An epoch starts small, so that many turns append to it before the cached prefix is given up.
EPOCH_SHARE = 0.4  # prefix and tail at the start of an epoch
TAIL_SHARE = 0.6  # of the space after the prefix: the tail at the start of an epoch
UNCOMPACTED_SHARE = 0.5  # instead of EPOCH_SHARE when everything no compaction covers fits: better than a gap
SOFT_SHARE = 0.75  # prefix and tail above this: compact in the background, where there is a model
HARD_SHARE = 0.9  # prefix and tail above this: a new epoch, and a compaction at once without a model

# Volatile items: none of them can be cached.
VOLATILE_SHARE = 0.5  # of the space after the prefix: the most that is kept free for items other than excerpts
FREE_SHARE = 0.125  # of the space after the prefix: kept for excerpts once messages have left the window
FREE_ITEMS = 8
EXCERPT_SHARE = 0.65  # the most that excerpts take
MAX_EXCERPT_TOKENS = 2048  # measured on LoCoMo: more excerpts add cost, not recall
IMPORT_SHARE = 0.25  # items of imported envelopes; at most MAX_EXCERPT_TOKENS as well

# History search
RELEVANCE_FLOOR = 0.2  # of the best score; hits below it are noise
MAX_HITS = 120
MAX_QUOTED_EXCERPTS = 64  # each is part of the event
MAX_QUOTED_TOKENS = 2 * MAX_EXCERPT_TOKENS  # some of the quoted messages may be in the tail
MEMORY_HITS = 10  # a maximum: the memory has its own relevance floor

# Large tool outputs
FRESH_OUTPUTS = 6  # the newest outputs stay verbatim: the next step depends on them

# Tiers: the part of the room that the blocks of one tier take at most, as a divisor
CORE_PART, WORKING_PART, EPHEMERAL_PART = 12, 12, 24

# References to files and artifacts
MIN_REF_CHARS, MAX_REF_CHARS = 600, 3600

# Compaction during a turn
COMPACTION_MIN_ROOM_TOKENS = 6000  # smaller windows that never overflowed do better with excerpts
COMPACTION_RESERVE_TOKENS = 1200  # about what the first compaction adds to the prefix; an eighth of a small room
MAX_INLINE_COMPACTION_BYTES = 8 << 20  # read while a turn waits; older messages wait for the next compaction


def compaction_reserve(room_tokens: int) -> int:
    """Return about how many tokens the first compaction adds to the prefix."""
    return min(COMPACTION_RESERVE_TOKENS, room_tokens // 8)
