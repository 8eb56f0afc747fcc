"""What a reader of a memory store yields: memories, and what in the store belongs to none or cannot be read."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from msgspec import Struct, field

MAX_TEXT_CHARS = 1_000_000  # of one memory; a longer text is reported as unreadable
MAX_METADATA_CHARS = 2_000
_SHOWN_CHARS = 80
_LARGE = 1 << 63


class Owner(Struct, frozen=True, omit_defaults=True):
    """Whose memory it is: the user, the agent, the project, and the run or session, as far as its system names them."""

    user: str = ""
    agent: str = ""
    project: str = ""
    run: str = ""

    @property
    def name(self) -> str:
        """The name under which memories of one owner are kept together; "" if the system names none."""
        return self.user or self.agent or self.project


class Link(NamedTuple):
    """A relation to another record of the store, by its id or name."""

    kind: str
    target: str


class StoredMemory(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One memory of a store.

    `id` is unique in the store and stays the same when the store is read again. Times are as the system wrote them, in
    ISO 8601. `place` is the file, with the table or the line. `subject` is what the text is about where the store says
    so beside it: an entity, a note, a block.
    """

    id: str
    text: str
    subject: str = ""
    kind: str = "memory"
    owner: Owner = Owner()
    created_at: str = ""
    updated_at: str = ""
    place: str = ""
    links: tuple[Link, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def statement(self) -> str:
        """The text with its subject: what can be read without the store."""
        return f"{self.subject}: {self.text}" if self.subject and self.text else self.text

    @property
    def written_at(self) -> str:
        """When its text was written last; "" if the store does not say."""
        return self.updated_at or self.created_at


class Orphan(Struct, frozen=True, kw_only=True):
    """A part of a store that belongs to no memory, or points to nothing."""

    id: str
    problem: str
    place: str = ""


class Unreadable(Struct, frozen=True, kw_only=True):
    """A row, line or file of a store that could not be read; the others were."""

    place: str
    problem: str


Record = StoredMemory | Orphan | Unreadable
Records = Iterator[Record]


def checked(memory: StoredMemory) -> StoredMemory | Unreadable:
    """Return a memory, or that it is too long to be one."""
    if len(memory.text) <= MAX_TEXT_CHARS:
        return memory
    problem = f"{memory.id[:_SHOWN_CHARS]} has {len(memory.text):,} characters, at most {MAX_TEXT_CHARS:,} are read"
    return Unreadable(place=memory.place, problem=problem)


def text_of(value: object) -> str:
    """Return a text of a store without what cannot be stored as UTF-8; "" if it is no text."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def dict_of(value: object) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def texts_of(values: Mapping[str, object], left_out: frozenset[str]) -> dict[str, str]:
    """Return the plain values of a record's metadata as texts."""
    kept: dict[str, str] = {}
    for key, value in values.items():
        if key in left_out or isinstance(value, bool):
            continue
        text = str(value) if isinstance(value, int | float) and abs(value) < _LARGE else text_of(value)
        if text:
            kept[text_of(key)[:_SHOWN_CHARS]] = text[:MAX_METADATA_CHARS]
    return kept
