"""Compactions: the bullets read from history, the losses, and the records of an accepted compaction.

    {"type":"context.compaction.completed","data":{"source":"messages:1-120","model":"none","records":{…},…}}

A compaction never replaces history: its records name the messages they were read from.
"""

from typing import Any, Literal

from msgspec import Struct

from daypack.types.fields import CompactionMethod, CompactionTrigger
from daypack.types.records import Decision, ErrorRecord, Fact, Ref, Summary, SwapRecord, Todo

Section = Literal["task", "decisions", "facts", "pending", "errors"]
SECTIONS: tuple[Section, ...] = ("task", "decisions", "facts", "pending", "errors")


class Bullet(Struct, frozen=True, omit_defaults=True):
    """One sentence for one section, and where it was read: "messages:12" or "messages:12-18"."""

    section: Section
    text: str
    source: str
    resolution: str | None = None  # of an error
    weight: float = 0.0  # the smallest are dropped first
    cause: str | None = None  # of an error
    purpose: str | None = None  # of a command
    keys: tuple[str, ...] = ()  # what closes it: steps that have to succeed, a task of a plan


# Why we reject a text. A recorded loss may have another reason: other programs write compactions too.
LossReason = Literal[
    "ungrounded",  # a path, number, id or name that the source does not contain
    "meta",  # the model talks about itself or its task
    "placeholder",  # copied from the template
    "over_limit",
    "unfinished",  # the model stopped in the middle
    "unreadable",
    "refused",
    "repeated",
    "superseded",  # a newer record contradicts it
    "displaced",  # by records of more weight
    "unread",  # messages that no compactor has seen
    "outdated",  # what it describes was changed later
    "done",  # open work that was finished later
    "resolved",  # an error that was resolved
    "unremarkable",  # no decision, fact, open work or error
    "narration",  # an agent's talk about its own steps
    "question",
    "fragment",  # a heading, a label, a part of a sentence
    "not_prose",  # code, logs, tables
    "injected",  # a harness or another program wrote it
    "tool_output",  # what matters of it is in refs, swap and errors
]


class Loss(Struct, frozen=True, omit_defaults=True):
    """Something that is not in the records, and why: a text, or a number of sentences of the messages in `detail`."""

    what: str
    reason: str  # a LossReason; any text in an event of another program
    detail: str | None = None
    sentences: int = 0  # of the range that this loss counts; 0 for a text that is listed beside its count


class FilledTemplate(Struct, frozen=True):
    """The bullets a model wrote for a range that passed the checks, and its raw outputs."""

    bullets: tuple[Bullet, ...]
    losses: tuple[Loss, ...]
    outputs: tuple[str, ...]
    unread: int = 0  # messages at the start of the range that did not fit into the model's window


class Records(Struct, frozen=True, omit_defaults=True):
    """The typed records of a session; CONTEXT.md is their rendering."""

    task: Summary | None = None
    decisions: tuple[Decision, ...] = ()
    facts: tuple[Fact, ...] = ()
    todos: tuple[Todo, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()


class Compaction(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An accepted compaction; the data of its event, with the captured parts whole."""

    id: str = ""  # of its event
    at: str = ""
    source: str  # what was read: "messages:41-120"
    through: int  # the last message that left the window
    trigger: CompactionTrigger
    method: CompactionMethod
    model: str
    before_tokens: int  # of the messages that left the window
    after_tokens: int  # of CONTEXT.md and the refs that replace them in a pack
    coverage: dict[str, int] = {}  # messages, read, bullets offered, bullets kept, …
    losses: tuple[Loss, ...] = ()
    refresh: str = "when the window fills again"
    records: Records = Records()
    refs: tuple[Ref, ...] = ()  # new or changed since the previous compaction
    room_tokens: int = 0  # of the window it was made for; 0: unknown
    names: dict[str, float] = {}  # in what left the window so far, with their weights
    swapped: tuple[SwapRecord, ...] = ()  # what left the window with it
    output: dict[str, Any] | None = None  # where the model's raw outputs are stored

    @property
    def start(self) -> int:
        """The first message that was read."""
        return int(self.source.removeprefix("messages:").partition("-")[0])
