"""What an audit finds: one finding for each memory that has a fault, of a class."""

from typing import Literal, get_args

from msgspec import Struct

Class = Literal[
    "exact duplicate",
    "near duplicate",
    "contradiction",
    "stale date",
    "dangling pronoun",
    "recalled text",
    "secret",
    "junk",
    "empty",
]
CLASSES: tuple[Class, ...] = get_args(Class)


class Finding(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A fault of one memory; `other` is the position of the memory that it repeats or that contradicts it."""

    kind: Class
    at: int  # position of the memory
    problem: str
    other: int | None = None
