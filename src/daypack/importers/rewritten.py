"""A transcript that its program has written anew: the same messages in other bytes, and perhaps more of them.

Codex does this when it migrates a session (`codex migrate-rollouts`): rows get numbers, and other rows are added
between them. Rows without ids cannot be matched one by one; but if the file begins with the messages that are stored,
in their order, the import continues after them. Otherwise it is another file.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from daypack.errors import BadMessage
from daypack.history.draft import draft_from
from daypack.importers.import_events import Boundary, Totals
from daypack.importers.import_start import PartDigest
from daypack.importers.lines import Lines
from daypack.importers.transcript import Draft, RowReader, Step, parse_row
from daypack.types.history import Message


def find_stored_part(lines: Lines, reader: RowReader, stored: Iterable[Message], totals: Totals) -> Boundary | None:
    """Return the boundary after the last stored message, if the file has all of them first and in order."""
    expected = [message for message in stored if message.role != "system"]
    matched = last = 0
    for draft in _drafts(lines, reader):
        if matched == len(expected):
            break
        message = _message(draft)
        if message is None or message.role == "system":
            continue
        if not _same(message, expected[matched]):
            return None
        matched += 1
        last = max(row.number for row in draft.rows)
    if not expected or matched < len(expected):
        return None
    digest = PartDigest("")
    for number, line in enumerate(lines.read(), 1):
        digest.add(line.raw)
        if number == last:
            break
    return Boundary(last, str(digest), msgspec.structs.replace(totals))


def find_difference(lines: Lines, reader: RowReader, stored: Iterable[Message]) -> int:
    """Return the line of the first message that is not the stored one at its place; 0 if there is none."""
    expected = iter([message for message in stored if message.role != "system"])
    for draft in _drafts(lines, reader):
        message = _message(draft)
        if message is None or message.role == "system":
            continue
        found = next(expected, None)
        if found is None or not _same(message, found):
            return draft.rows[0].number
    return 0


def _drafts(lines: Lines, reader: RowReader) -> Iterator[Draft]:
    def steps() -> Iterator[Step]:
        for number, line in enumerate(lines.read(), 1):
            row = parse_row(number, line.raw)
            if row.raw.strip() and not row.problem:
                yield from reader.read(row)

    for step in chain(steps(), _last(reader)):
        if isinstance(step, Draft) and not step.child:
            yield step


def _last(reader: RowReader) -> Iterator[Step]:
    yield from reader.finish()


def _message(draft: Draft) -> Message | None:
    try:
        return draft_from(draft.message)
    except BadMessage:
        return None


def _same(message: Message, stored: Message) -> bool:
    names = ("role", "text", "tool_calls", "tool_call_id")
    return all(getattr(message, name) == getattr(stored, name) for name in names)
