"""Which targets see the conversation, and what of a message they see."""

from msgspec.structs import replace

from daypack.turn.items import Entry
from daypack.types.history import Message, Other, Part, Thinking
from daypack.types.kinds import Target

# Targets that see messages; a tool and the runtime get only items that name them.
READERS: frozenset[Target] = frozenset({"model", "ui", "user", "reviewer", "peer_agent", "evidence_export"})
OUTSIDE: frozenset[Target] = frozenset({"ui", "user", "peer_agent"})  # they see neither instructions nor thinking
_SEALED_THINKING = ("thinking", "redacted_thinking", "reasoning")


def is_hidden_from(message: Message, target: Target) -> bool:
    """Return True if a target does not see a message at all."""
    return target not in READERS or (target in OUTSIDE and message.role == "system")


def entry_seen_by(entry: Entry, target: Target) -> Entry:
    """Return an entry as a target sees it."""
    return entry._replace(message=message_seen_by(entry.message, target)) if target in OUTSIDE else entry


def message_seen_by(message: Message, target: Target) -> Message:
    """Return a message as a target sees it: without thinking for those outside."""
    if target in OUTSIDE and not isinstance(message.content, str):
        parts = tuple(part for part in message.content if not _is_thinking(part))
        if len(parts) != len(message.content):
            return replace(message, content=parts)
    return message


def _is_thinking(part: Part) -> bool:
    return isinstance(part, Thinking) or (isinstance(part, Other) and part.kind in _SEALED_THINKING)
