"""Context Protocol, Hybrid Mode (Text + JSON Snapshot), version 2.3: text for people, the separator, one JSON object.

Done, the motor turns.<<<CONTEXT>>>{"version":2.3,"runtime":{…},"memory":{"core":[…],…},…}
"""

from daypack.protocol.hybrid import Reply, emit, parse
from daypack.protocol.rules import Violation
from daypack.protocol.sections import SEPARATOR
from daypack.protocol.stream import Splitter
from daypack.types.snapshot import Block, Capability, Runtime, Snapshot, Tiers

__all__ = [
    "SEPARATOR",
    "Block",
    "Capability",
    "Reply",
    "Runtime",
    "Snapshot",
    "Splitter",
    "Tiers",
    "Violation",
    "emit",
    "parse",
]
