"""The index of repeated contents is right after every append, an import and a rebuild, before any turn is prepared."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from derived.repeating import FILE, LOG, SUMMARY, by_hash, furnish, hash_of, run

import daypack
from daypack.derived.children import put_child
from daypack.derived.dedup import fold, read_index
from daypack.importers.import_file import Destination, import_file
from daypack.session import Session
from daypack.upkeep.rebuild import rebuild, verify


def dedup_files(session: Session) -> dict[str, bytes]:
    place = Path(session.layout.derived("dedup"))
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def session(home: str) -> Session:
    return daypack.open_session("work", home=home, durability="os", workspace="")


@pytest.mark.requirement("S4-DD2", "S4-DD4")
def test_the_index_exists_from_the_first_repetition_and_counts_every_further_one(session: Session) -> None:
    run(session, "t1", LOG)
    assert dedup_files(session) == {}
    for number in range(2, 6):
        run(session, f"t{number}", LOG)
        [record] = read_index(session.history)
        assert record.refs == tuple(f"tool:t{other}" for other in range(1, number + 1))
        assert sorted(dedup_files(session)) == [f"blob/{record.hash}", "index.jsonl"]


@pytest.mark.requirement("S4-DD5")
def test_files_pins_and_results_of_children_are_counted_as_they_come(session: Session) -> None:
    furnish(session)
    assert read_index(session.history) == fold(session.history)
    assert set(by_hash(read_index(session.history))) == {hash_of(LOG), hash_of(FILE), hash_of(SUMMARY)}
    put_child(session.history, "other", result=SUMMARY)
    *children, pin = by_hash(read_index(session.history))[hash_of(SUMMARY)]
    assert children == ["child:other", "child:rev"]
    assert pin.startswith("events:ev-")


@pytest.mark.requirement("S4-DD2", "S4-R7", "T1")
def test_a_rebuild_without_any_turn_gives_the_same_bytes(session: Session) -> None:
    furnish(session)
    before = dedup_files(session)
    assert len(before) == 4
    for path in (session.layout.derived("dedup"), session.layout.offsets):
        shutil.rmtree(path)
    rebuild(session.history, session.turns)
    assert dedup_files(session) == before
    run(session, "later", LOG)
    assert dedup_files(session) != before
    assert verify(session.layout.home, "default", "work", session.history.config) == ()


def test_a_rebuild_writes_no_index_where_nothing_occurs_again(session: Session) -> None:
    run(session, "t1", LOG)
    rebuild(session.history, session.turns)
    assert dedup_files(session) == {}
    assert verify(session.layout.home, "default", "work", session.history.config) == ()


def test_what_other_processes_and_threads_append_is_counted_too(session: Session, home: str) -> None:
    run(session, "t1", LOG)
    script = (
        "import daypack, sys\n"
        "with daypack.open_session('work', home=sys.argv[1]) as session:\n"
        "    session.append('assistant', '', tool_calls=[{'id': 'p', 'name': 'x', 'arguments': '{}'}])\n"
        "    session.append('tool', sys.argv[2], tool_call_id='p')\n"
    )
    subprocess.run([sys.executable, "-c", script, home, LOG], check=True)
    assert by_hash(read_index(session.history)) == {hash_of(LOG): ("tool:p", "tool:t1")}

    def work(number: int) -> None:
        for repeat in range(10):
            drafts = [
                {"role": "assistant", "tool_calls": [{"id": f"{number}-{repeat}", "name": "x", "arguments": "{}"}]},
                {"role": "tool", "content": LOG, "tool_call_id": f"{number}-{repeat}"},
            ]
            session.append_many(drafts)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [record] = read_index(session.history)
    assert len(record.refs) == 42
    assert read_index(session.history) == fold(session.history)


@pytest.mark.requirement("S4-DD2")
def test_an_import_leaves_a_right_index_behind(home: str, tmp_path: Path) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Test it."}]
    for number in range(6):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": LOG if number % 2 else FILE})
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"messages": messages}))
    import_file("openai", str(path), Destination(home=home, session="chat"))
    session = daypack.open_session("chat", home=home, create=False)
    assert by_hash(read_index(session.history)) == {
        hash_of(FILE): ("tool:c0", "tool:c2", "tool:c4"),
        hash_of(LOG): ("tool:c1", "tool:c3", "tool:c5"),
    }
    text = "\n".join(message.text for message in session.prepare(budget=32_000).parts.messages)
    assert text.count(LOG) == text.count(FILE) == 1


def test_an_index_that_cannot_be_written_costs_no_message(session: Session, home: str) -> None:
    Path(session.layout.context).mkdir(exist_ok=True)
    Path(session.layout.derived("dedup")).write_text("in the way")
    run(session, "t1", LOG)
    assert run(session, "t2", LOG) == 4
    Path(session.layout.derived("dedup")).unlink()
    run(session, "t3", LOG)
    assert by_hash(read_index(session.history)) == {hash_of(LOG): ("tool:t1", "tool:t2", "tool:t3")}
