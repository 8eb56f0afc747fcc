"""The fold of the calls: brought up to date it is the same as made anew, whatever happened to the logs and its file."""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.compacting import fill, step
from turn.scenes import stage

import daypack
from daypack.errors import DaypackError
from daypack.history.draft import draft_event
from daypack.session import Session
from daypack.turn.evidence.calls.fold import CallFold, read_summary
from daypack.turn.evidence.calls.prepared import PreparedCalls
from daypack.turn.evidence.calls.rows import Calls
from daypack.types.history import Event, Message

BUDGET = 3000


def anew(session: Session) -> Calls:
    """The calls, folded from the first line on."""
    path = file_of(session)
    stored = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    calls = CallFold(session.history).read()
    if stored is not None:
        path.write_bytes(stored)
    return calls


def file_of(session: Session) -> Path:
    return Path(session.layout.derived("calls"))


# Things that happen to a session


def ask(session: Session) -> None:
    session.append("user", f"What about lamp {len(session.messages())}? " + "harbour light " * 30)


def prepare(session: Session) -> None:
    session.prepare(budget=BUDGET)


def review(session: Session) -> None:
    session.prepare(budget=BUDGET, target="reviewer")


def answer(session: Session) -> None:
    session.accept("The lamp burns. " + "glacier " * 20)


def answer_with_usage(session: Session) -> None:
    session.accept("It burns.", {"input_tokens": 900, "cached_tokens": 20, "output_tokens": 4})


def work(session: Session) -> None:
    step(session, len(session.messages()), lines=30)


def fail(session: Session) -> None:
    turns = [event.id for event in session.events() if event.type == "context.turn"]
    data = {"error": "APIError", "turn": turns[-1]} if turns else {"error": "APIError"}
    session.history.append_event(draft_event("provider.error", data))


def compact(session: Session) -> None:
    session.compact(keep_tokens=200)


def undo(session: Session) -> None:
    session.undo()


def observe(session: Session) -> None:
    usage = {"input_tokens": 500 + len(session.messages()), "output_tokens": 3, "cache_read_input_tokens": 400}
    meta = {"format": "claude-code", "model": "claude-x", "usage": usage}
    session.history.append([Message(role="assistant", content="Seen.", ts="2027-01-15T08:00:00.000Z", meta=meta)])


def use_tools(session: Session) -> None:
    session.prepare(budget=BUDGET, tools=[{"type": "function", "function": {"name": f"t{len(session.events()) % 3}"}}])


STEPS: list[Callable[[Session], None]] = [
    *(ask, prepare, review, answer, answer_with_usage, work, fail, compact, undo, observe, use_tools),
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    taken=st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(("", "read", "read", "reopen"))), max_size=24),
    imported=st.booleans(),
)
def test_brought_up_to_date_it_is_the_same_as_made_anew(
    taken: list[tuple[Callable[[Session], None], str]], imported: bool
) -> None:
    with tempfile.TemporaryDirectory() as home:
        session = daypack.open_session("odd", home=home, durability="os", model="gpt-4o", workspace="")
        if imported:
            observe(session)
        ask(session)
        for take, then in taken:
            try:
                take(session)
            except DaypackError:
                continue  # nothing to compact, undo or answer
            if then:
                fold = session.turns.calls
                assert fold.read() == anew(session)
            if then == "reopen":
                session.close()
                session = daypack.open_session("odd", home=home, create=False)
        calls = session.turns.calls.read()
        assert calls == anew(session)
        assert all(sum(row.split) == (row.tokens or 0) for row in calls.rows)
        assert all(0 <= fold.before <= len(calls.rows) for fold in calls.folds)
        session.close()


def test_what_another_process_appends_is_seen(home: str) -> None:
    session = stage(home)
    ask(session)
    prepare(session)
    assert len(session.turns.calls.read().rows) == 1
    script = (
        "import sys, daypack\n"
        "with daypack.open_session('work', home=sys.argv[1], create=False) as session:\n"
        "    session.accept('Yes.', {'input_tokens': 50, 'output_tokens': 1})\n"
        "    session.append('user', 'More?')\n"
        "    session.prepare(budget=3000)\n"
    )
    subprocess.run([sys.executable, "-c", script, home], check=True)
    rows = session.turns.calls.read().rows
    assert [(row.reply, row.input) for row in rows] == [(2, 50), (None, None)]
    assert session.turns.calls.read() == anew(session)


def test_threads_read_the_same_while_turns_are_appended(home: str) -> None:
    session = stage(home)

    def read(_: int) -> int:
        return len(session.turns.calls.read().rows)

    with ThreadPoolExecutor(4) as pool:
        seen: list[int] = []
        for _ in range(6):
            ask(session)
            prepare(session)
            seen += pool.map(read, range(8))
    assert seen == sorted(seen)
    assert session.turns.calls.read() == anew(session)


# The logs


def test_a_damaged_event_is_left_out_and_the_others_stay(home: str) -> None:
    session = stage(home)
    for _ in range(5):
        ask(session)
        prepare(session)
        answer(session)
    turns = [event.id for event in session.events() if event.type == "context.turn"]
    session.close()
    path = Path(session.layout.events)
    lines = path.read_bytes().split(b"\n")
    at = [number for number, line in enumerate(lines) if b'"context.turn"' in line][2]
    lines[at] = lines[at][:50] + b"~" + lines[at][51:]
    path.write_bytes(b"\n".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = stage(home)
        rows = again.turns.calls.read().rows
        assert [row.event for row in rows] == [*turns[:2], *turns[3:]]
        assert all(sum(row.split) == row.tokens for row in rows)


def test_a_half_written_line_counts_once_it_is_whole(home: str) -> None:
    session = stage(home)
    ask(session)
    prepare(session)
    session.turns.calls.read()
    path = Path(session.layout.events)
    ask(session)
    prepare(session)
    session.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    again = stage(home)
    assert len(again.turns.calls.read().rows) == 1
    path.write_bytes(whole)
    assert len(again.turns.calls.read().rows) == 2
    assert again.turns.calls.read() == anew(again)


def test_logs_that_were_replaced_by_shorter_ones_are_folded_anew(home: str) -> None:
    session = stage(home)
    for _ in range(4):
        ask(session)
        prepare(session)
        answer(session)
    assert len(session.turns.calls.read().rows) == 4
    paths = Path(session.layout.events), Path(session.layout.messages)
    session.close()
    for path, kept in zip(paths, (1, 2), strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in path.read_bytes().split(b"\n")[:kept]))
    again = stage(home)
    calls = again.turns.calls.read()
    assert len(calls.rows) == 1
    assert calls == anew(again)


# The file


def garble(path: Path) -> None:
    path.write_bytes(b'{"version":1,"events":[1,2')


def change_a_number(path: Path) -> None:
    data = path.read_bytes()
    assert b'"gpt-4o",' in data
    path.write_bytes(data.replace(b'"gpt-4o",', b'"gpt-4o",1', 1))


def make_older(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"version":2', b'"version":1', 1))


def change_a_count(path: Path) -> None:
    head, _, rest = path.read_bytes().partition(b"\n")
    fields = msgspec.json.decode(head)
    path.write_bytes(msgspec.json.encode(fields | {"calls": fields["calls"] + 1}) + b"\n" + rest)


def change_a_position(path: Path) -> None:
    """Claim that fewer lines were folded: their calls would be folded again, and counted twice."""
    head, _, rest = path.read_bytes().partition(b"\n")
    fields = msgspec.json.decode(head)
    path.write_bytes(msgspec.json.encode(fields | {"events": [0, 0, 0, 0]}) + b"\n" + rest)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "break_it",
    [garble, change_a_number, change_a_count, change_a_position, make_older, make_folder, make_pipe, make_empty],
)
def test_a_file_that_is_not_ours_is_ignored(home: str, break_it: Callable[[Path], None]) -> None:
    session = stage(home)
    fill(session, 1)
    calls = session.turns.calls.read()
    path = file_of(session)
    break_it(path)
    session.close()
    assert (read_summary(session.layout) is None) == (break_it != change_a_number), "its first line is whole"
    assert stage(home).turns.calls.read() == calls


def test_a_folder_that_cannot_be_written_costs_only_time(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage(home)
    ask(session)
    prepare(session)

    def refuse(*_: object, **__: object) -> None:
        raise DaypackError("read-only", operation="write", place="calls", hint="")

    monkeypatch.setattr("daypack.files.atomic.replace", refuse)
    assert len(session.turns.calls.read().rows) == 1
    assert not file_of(session).exists()


def test_the_next_process_continues_where_the_file_ends(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage(home)
    fill(session, 1)
    calls = session.turns.calls.read()
    session.close()
    again = stage(home)
    taken: list[str] = []

    def take(_: PreparedCalls, event: Event) -> None:
        taken.append(event.id)

    monkeypatch.setattr(PreparedCalls, "take", take)
    assert again.turns.calls.read() == calls
    ask(again)
    prepare(again)
    again.turns.calls.read()
    new = [event for event in again.events() if event.type == "context.turn"][-1]
    assert taken == [new.id]


def test_the_first_line_has_the_counts_while_both_logs_are_the_same(home: str) -> None:
    session = stage(home)
    assert read_summary(session.layout) is None
    fill(session, 2)
    session.undo()
    calls = session.turns.calls.read()
    summary = read_summary(session.layout)
    assert summary is not None
    assert (summary.calls, summary.compactions) == (len(calls.rows), 2)
    assert len(msgspec.json.encode(summary)) < 500
    ask(session)
    assert read_summary(session.layout) is None


def test_a_rebuild_drops_the_file(home: str) -> None:
    from daypack.upkeep.rebuild import rebuild

    session = stage(home)
    ask(session)
    prepare(session)
    calls = session.turns.calls.read()
    rebuild(session.history, session.turns)
    assert not file_of(session).exists()
    assert session.turns.calls.read() == calls
