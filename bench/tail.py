"""Reading the last 40 messages of a long history, in a running process and in a new one."""

import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from bench import walk
from bench.appender import Appender
from bench.histories import Histories
from bench.measure import Series, alternate, repeat_after, run, say
from bench.table import Limit, Row, Section, compare, duration
from daypack import Session

COUNT = 40
WARM_ROUNDS, WARM_OPERATIONS = 40, 20
COLD_ROUNDS = 31
_OURS = "import sys, daypack; print(len(daypack.open_session(sys.argv[2], home=sys.argv[1]).tail(int(sys.argv[3]))))"
_HIDDEN = "typing_extensions"


def measure(histories: Histories) -> Section:
    """Compare at the long histories, warm and cold."""
    sizes = [size for size in histories.sizes if size >= 100_000] or list(histories.sizes)
    warm: list[Row] = []
    cold: list[Row] = []
    bare = ""
    for size in sizes:
        series = _warm(histories, size)
        warm.append(compare("warm, another process appends", series["ours"], series["plain"], Limit(1.2), size))
        series = _cold(histories, size)
        cold += [
            compare(label, series[contender], series["plain"], Limit(1.5, "cpu"), size)
            for label, contender in (("cold, a whole process", "ours"), ("cold, as in a core install", "core"))
            if contender in series
        ]
        bare = duration(series["bare"].middle("cpu"))
    title = f"Last {COUNT} messages (warm: {WARM_ROUNDS} rounds of {WARM_OPERATIONS} calls, cold: {COLD_ROUNDS} rounds)"
    notes = [
        "beside: seek from the end of the same file, blocks backwards, orjson.loads of each line; before every warm",
        f"call another process appends a message. Cold figures are CPU time; bare Python alone takes {bare}",
    ]
    if find_spec(_HIDDEN):
        notes.append(
            f"{_HIDDEN} is installed here and msgspec imports it; a core install has none, so it is hidden there"
        )
    return Section(title, (*warm, *cold), tuple(notes))


def _warm(histories: Histories, size: int) -> dict[str, Series]:
    with ExitStack() as stack:
        name = histories.ours(size)
        session = stack.enter_context(histories.open(name))
        fd = stack.enter_context(open(session.history.layout.messages, "rb", buffering=0)).fileno()
        appender = stack.enter_context(Appender(histories, name))
        say(f"last {COUNT} of {size:,}, warm: {WARM_ROUNDS} rounds")
        appender.step()
        _agree(session, fd)
        blocks = {
            "plain": repeat_after(appender.step, lambda: walk.last_lines(fd, COUNT)),
            "ours": repeat_after(appender.step, lambda: session.tail(COUNT)),
        }
        return alternate(blocks, rounds=WARM_ROUNDS, operations=WARM_OPERATIONS)


def _agree(session: Session, fd: int) -> None:
    ours = [message.id for message in session.tail(COUNT)]
    if ours != [line["id"] for line in walk.last_lines(fd, COUNT)] or len(ours) != COUNT:
        raise RuntimeError("the two ways of reading do not agree")


def _cold(histories: Histories, size: int) -> dict[str, Series]:
    name = histories.ours(size)
    with histories.open(name) as session:
        path = session.history.layout.messages
    say(f"last {COUNT} of {size:,}, cold: {COLD_ROUNDS} rounds")
    python = sys.executable
    blocks = {
        "bare": run([python, "-c", "pass"]),
        "plain": run([python, "-c", Path(walk.__file__).read_text(), path, str(COUNT)]),
        "ours": run([python, "-c", _OURS, histories.home, name, str(COUNT)]),
    }
    if find_spec(_HIDDEN):
        hide = f"import sys; sys.modules[{_HIDDEN!r}] = None; "
        blocks["core"] = run([python, "-c", hide + _OURS, histories.home, name, str(COUNT)])
    return alternate(blocks, rounds=COLD_ROUNDS, operations=1)
