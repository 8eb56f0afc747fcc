"""Raw entries: the only thing a context document grows from, so that no summary ever finds its way into one."""

from msgspec import Struct

from daypack.types.memory import Entry


class RawEntry(Struct, frozen=True):
    """An entry as it was said, and by whom. It has no summary: no document can grow from one."""

    text: str
    author: str | None = None
    role: str | None = None
    at: str | None = None
    source: str | None = None


def raw_of(entry: Entry) -> RawEntry:
    """Return what a document may grow from: an entry without its summary."""
    return RawEntry(entry.raw_entry, author=entry.author, role=entry.role, at=entry.at, source=entry.source)
