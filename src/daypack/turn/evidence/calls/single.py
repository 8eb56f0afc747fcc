"""One call of another program, read by its row: no other call but the one before it is looked at."""

from daypack.history.session import History
from daypack.turn.evidence.calls.rows import CallRow, Calls
from daypack.turn.evidence.observed.known import (
    Call,
    Compacted,
    Known,
    compare_calls,
    read_reply,
    read_request,
    read_row,
    with_usage,
)
from daypack.turn.ledger import OBSERVED, USAGE

_NEAR = 64  # events after a call among which its usage nearly always is


def read_call(history: History, calls: Calls, at: int) -> Call | None:
    """Return the call of a row as `find_call` does; None if it cannot be read, or its row is of a turn of daypack."""
    rows = calls.rows
    known = _with_all_usage(history, rows[at]) if rows[at].kind == "observed" else None
    if known is None:
        return None
    earlier = next((place for place in range(at - 1, -1, -1) if rows[place].kind == "observed"), -1)
    before = _known(history, rows[earlier]) if earlier >= 0 else None
    between = (fold for fold in calls.folds if not fold.own and earlier < fold.before <= at)
    fold = next(between, None)
    compaction = Compacted(event=fold.event, at=fold.at, trigger=fold.trigger) if fold else None
    return compare_calls(history, before, known, compaction)


def _known(history: History, row: CallRow) -> Known | None:
    """Return a call with the usage that its row has."""
    number = int(row.event.partition("-")[2] or 0)
    if row.event.startswith("msg-"):
        return next(map(read_reply, history.messages.reader.pick([number])), None)
    for event in history.events.reader.pick([number]):
        if event.type == OBSERVED:
            amounts = {"input_tokens": row.input, "cached_tokens": row.cached, "output_tokens": row.output}
            message = {} if row.reply is None else {"message": f"msg-{row.reply}"}
            return read_request(event, {name: n for name, n in amounts.items() if n is not None} | message)
        found = read_row(history, event)
        if found and not isinstance(found, Compacted):
            return found.known
    return None


def _with_all_usage(history: History, row: CallRow) -> Known | None:
    """Return a call with everything that the provider reported: a row leaves out what was written to the cache."""
    known = _known(history, row)
    if known is None or known.record is None or row.reply is None:
        return known
    number, newest = int(row.event.removeprefix("ev-")), history.events.reader.newest().seq
    word = f'"turn":"{row.event}"'.encode()
    for start, stop in ((number + 1, number + _NEAR), (number + _NEAR + 1, newest)):
        for event in history.events.holding((word,), start, stop):
            data = event.data
            if event.type == USAGE and (data.get("turn"), data.get("message")) == (row.event, f"msg-{row.reply}"):
                return with_usage(known, data)
    return known
