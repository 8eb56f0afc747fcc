"""The index of a session's messages: after a long import it is built newest part first, in the background."""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from turn.scenes import release

import daypack
from daypack.derived import history_index
from daypack.derived.history_index import BLOCK, HistoryIndex, Unindexed
from daypack.files.lock import held_without_waiting
from daypack.history.searchable import searchable
from daypack.search.lexical import Lexical
from daypack.session import Session
from daypack.turn.items import Missing
from daypack.turn.turn import Turn
from daypack.types.deadline import Deadline
from daypack.types.history import Message, ToolCall

TOPICS = ("harbour", "glacier", "orchard", "violin", "lantern", "walrus", "copper")
QUERIES = ("the lantern of the harbour", "walrus 12", "what did we say about copper and violin 77?")
COUNT = 950  # messages of the import: nine blocks and a half


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which the import of a test is long and its index needs several steps."""
    monkeypatch.setattr(history_index, "INLINE_BYTES", 40_000)
    monkeypatch.setattr(history_index, "NEWEST_BYTES", 30_000)
    monkeypatch.setattr(history_index, "STEP_BYTES", 30_000)


def fill(session: Session, count: int, first: int = 0) -> None:
    """Append messages on a few topics; every ninth has no words."""
    session.append_many(
        {
            "role": "user" if number % 2 else "assistant",
            "content": "" if number % 9 == 5 else f"{TOPICS[number % 7]} {number} and {TOPICS[number % 5]} " * 2,
        }
        for number in range(first, first + count)
    )


@pytest.fixture
def imported(home: str) -> Iterator[Session]:
    """A session after a long import, without an index."""
    with daypack.open_session("long", home=home, durability="os", workspace="") as session:
        fill(session, COUNT)
        yield session


def index_of(session: Session) -> HistoryIndex:
    return session.turns.inputs.history_search.index


def ask(session: Session, question: str = QUERIES[0]) -> Turn:
    session.append("user", question)
    return session.prepare(budget=6000)


def unsearched(turn: Turn) -> list[Missing]:
    return [missing for missing in turn.missing if missing.id.startswith("excerpts")]


def answers(session: Session) -> list[Any]:
    end = session.history.messages.reader.newest().seq + 1
    return [index_of(session).search(query, limit=30, below=below) for query in QUERIES for below in (end, 400)]


def plain_answers(session: Session, folder: Path) -> list[Any]:
    """The answers of an index that is built from the beginning, in one go."""
    plain = Lexical(str(folder / "plain.db"), block=BLOCK)
    plain.add(map(history_index._doc, session.messages()))  # pyright: ignore[reportPrivateUsage]
    end = session.history.messages.reader.newest().seq + 1
    found = [plain.search(query, limit=30, below=below) for query in QUERIES for below in (end, 400)]
    plain.close()
    return found


def test_names_and_arguments_of_calls_are_searched() -> None:
    call = ToolCall("c1", "grep", '{"pattern": "walrus"}')
    message = Message(seq=3, role="assistant", content="I look.", tool_calls=(call,))
    assert searchable(message) == 'I look.\ngrep {"pattern": "walrus"}'


# A turn


@pytest.mark.requirement("S3-O12", "S3-L2")
def test_a_turn_after_a_long_import_searches_the_newest_part_and_reports_the_rest(imported: Session) -> None:
    started: list[bool] = []
    index_of(imported).start = lambda: started.append(True)
    turn = ask(imported)
    [missing] = unsearched(turn)
    [gap] = index_of(imported).unindexed()
    assert gap.start == 1
    assert gap.stop % BLOCK == 1
    assert COUNT - 5 * BLOCK < gap.stop < COUNT
    assert missing.requested == f"messages:1-{gap.stop - 1}"
    assert missing.question == (
        f"What was said in messages:1-{gap.stop - 1}? It is not searched yet: its index is being built."
    )
    assert started == [True]
    assert imported.replay(turn.event_id or "").missing == turn.missing


@pytest.mark.requirement("G11")
def test_the_index_is_built_in_the_background_and_finds_what_one_from_the_beginning_finds(
    imported: Session, tmp_path: Path
) -> None:
    assert unsearched(ask(imported))
    index_of(imported).wait()
    assert index_of(imported).unindexed() == []
    assert unsearched(ask(imported)) == []
    assert answers(imported) == plain_answers(imported, tmp_path)


def test_a_short_history_is_indexed_while_the_turn_waits(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_index, "INLINE_BYTES", 10 << 20)
    with daypack.open_session("short", home=home, durability="os", workspace="") as session:
        fill(session, COUNT)
        index_of(session).start = lambda: pytest.fail("nothing is left for the background")
        assert unsearched(ask(session)) == []
        assert index_of(session).unindexed() == []


def test_new_messages_are_indexed_at_once_while_the_gap_is_filled(imported: Session, tmp_path: Path) -> None:
    index = index_of(imported)
    index.start = lambda: None
    ask(imported)
    [before] = index.unindexed()
    ask(imported, "is the zeppelin in the harbour?")
    assert index.unindexed() == [before]
    assert index.search("zeppelin", limit=3, below=index.end)[0].id == index.end - 1
    index.build()
    assert answers(imported) == plain_answers(imported, tmp_path)


def test_a_second_long_import_waits_for_the_gap_of_the_first(imported: Session, tmp_path: Path) -> None:
    index = index_of(imported)
    index.start = lambda: None
    ask(imported)
    [gap] = index.unindexed()
    newest = index.end - 1
    fill(imported, COUNT, first=COUNT)
    turn = ask(imported)
    assert index.unindexed() == [gap, Unindexed(newest + 1, index.end)]
    ranges = {missing.id: missing.requested for missing in unsearched(turn)}
    assert ranges == {
        "excerpts": f"messages:1-{gap.stop - 1}",
        "excerpts:952": f"messages:952-{turn.parts.messages[0].seq - 1}",
    }
    index.build()
    assert answers(imported) == plain_answers(imported, tmp_path)


def test_a_turn_without_time_indexes_nothing(imported: Session) -> None:
    index = index_of(imported)
    assert index.catch_up(index.end, Deadline(seconds=0)) == [Unindexed(1, COUNT + 1)]


def test_a_turn_waits_for_another_writer_of_the_index_until_its_deadline_only(imported: Session) -> None:
    index = index_of(imported)
    index.catch_up(index.end)
    index.build()
    imported.append("user", "one more")
    writer = sqlite3.connect(imported.history.layout.derived("search"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")  # held for the whole test
    try:
        assert index.catch_up(index.end, Deadline.after(0.05)) == [Unindexed(index.end - 1, index.end)]
        turn = imported.prepare(budget={"tokens": 8000, "ms": 60})
        assert [missing.requested for missing in unsearched(turn)] in ([], [f"messages:{index.end - 1}"])
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    assert index.catch_up(index.end) == []


def test_a_search_waits_for_the_whole_index_and_reports_progress(imported: Session, tmp_path: Path) -> None:
    left: list[int] = []
    index_of(imported).on_progress = left.append
    assert imported.search_history("harbour 0", k=1)[0].source == "messages:1"
    assert left[0] == COUNT
    assert left == sorted(left, reverse=True)
    assert len(left) > 3
    assert answers(imported) == plain_answers(imported, tmp_path)


def test_damaged_lines_are_passed_over(imported: Session, tmp_path: Path) -> None:
    release(imported)
    path = Path(imported.history.layout.messages)
    lines = path.read_bytes().splitlines(keepends=True)
    for at in (0, 1, 499, 500, 501, COUNT - 1):
        lines[at] = b"x" * (len(lines[at]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.warns(daypack.errors.DamageWarning):
        index_of(imported).build()
    assert index_of(imported).unindexed() == []
    assert answers(imported) == plain_answers(imported, tmp_path)


# Threads and processes


def test_closing_a_session_stops_the_build_and_a_later_turn_continues_it(imported: Session, tmp_path: Path) -> None:
    ask(imported)
    index = index_of(imported)
    release(imported)
    assert not index.being_built
    left = index.unindexed()
    ask(imported)
    index.wait()
    assert left != index.unindexed() == []
    assert answers(imported) == plain_answers(imported, tmp_path)


def test_one_build_runs_at_a_time(imported: Session) -> None:
    index = index_of(imported)
    index.start = lambda: pytest.fail("another process builds the index")
    with held_without_waiting(os.path.join(imported.history.layout.offsets, "indexing")) as held:
        assert held
        assert index.being_built
        assert unsearched(ask(imported))
    assert not index.being_built


def _build(home: str, kill_at: int) -> None:
    """Build the index in this process, which is killed in the middle of a transaction."""
    taken = 0
    real = history_index._doc  # pyright: ignore[reportPrivateUsage]

    def counted(message: Message) -> Any:
        nonlocal taken
        taken += 1
        if taken == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(message)

    history_index._doc = counted  # pyright: ignore[reportPrivateUsage]
    with daypack.open_session("long", home=home, create=False) as session:
        index_of(session).build()


@pytest.mark.requirement("T1")
def test_a_killed_build_continues_where_it_was(imported: Session, home: str, tmp_path: Path) -> None:
    release(imported)
    reached = [COUNT + 1]
    for kill_at in (150, 450, 250):
        process = multiprocessing.get_context("fork").Process(target=_build, args=(home, kill_at))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        left = index_of(imported).unindexed()
        reached.append(left[0].stop)
        release(imported)
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] < COUNT // 2
    index_of(imported).build()
    assert answers(imported) == plain_answers(imported, tmp_path)
    assert imported.search_history("harbour 0", k=1)[0].source == "messages:1"


def test_several_builds_and_turns_at_once_share_the_work(imported: Session, home: str, tmp_path: Path) -> None:
    release(imported)
    builders = [multiprocessing.get_context("fork").Process(target=_build, args=(home, 0)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for number in range(5):
        ask(imported, f"question {number} about the harbour")
    for builder in builders:
        builder.join()
        assert builder.exitcode == 0
    index_of(imported).build()
    assert answers(imported) == plain_answers(imported, tmp_path)
