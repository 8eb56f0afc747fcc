"""What hooks know of a session from one event to the next."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from daypack.history.home import find_home
from daypack.history.layout import Home
from daypack.hooks.call import HookCall, Injection
from daypack.hooks.state import Request, SessionState
from daypack.types.digest import digest_text


def call(event: str, source: str = "") -> HookCall:
    return HookCall(host="claude", event=event, session="s-1", cwd="/", source=source)


@pytest.fixture
def state(home: str) -> SessionState:
    return SessionState(find_home(home), "claude-code", "s-1")


def inject(state: SessionState, *items: str) -> None:
    state.record(call("UserPromptSubmit"), Injection(f"about {' and '.join(items)}", items))


def test_the_items_of_the_window_are_known(state: SessionState) -> None:
    assert state.injected() == frozenset()
    inject(state, "messages:1", "entry:a")
    inject(state, "messages:2")
    assert state.injected() == {"messages:1", "entry:a", "messages:2"}


@pytest.mark.parametrize(
    "begins", [("SessionStart", "startup"), ("SessionStart", "clear"), ("SessionStart", "compact"), ("PreCompact", "")]
)
def test_a_new_window_has_only_what_was_injected_into_it(state: SessionState, begins: tuple[str, str]) -> None:
    inject(state, "messages:1")
    state.begin(call(*begins))
    assert state.injected() == frozenset()
    inject(state, "messages:2")
    assert state.injected() == {"messages:2"}


def test_a_compaction_begins_one_window(state: SessionState) -> None:
    inject(state, "messages:1")
    state.begin(call("PreCompact"))
    state.begin(call("SessionStart", "resume"))
    inject(state, "compaction:1")  # Codex, which says both after a resume
    state.begin(call("SessionStart", "compact"))
    assert state.injected() == {"compaction:1"}
    state.begin(call("SessionStart", "compact"))
    assert state.injected() == frozenset()
    inject(state, "compaction:2")
    state.begin(call("PreCompact"))
    state.begin(call("SessionStart", "compact"))
    assert state.injected() == frozenset()


def test_a_resumed_session_has_its_old_window(state: SessionState) -> None:
    inject(state, "messages:1")
    state.begin(call("SessionStart", "resume"))
    assert state.injected() == {"messages:1"}


def test_nothing_is_written_for_a_session_without_injections(state: SessionState) -> None:
    state.begin(call("SessionStart", "startup"))
    state.begin(call("UserPromptSubmit"))
    assert not os.path.exists(state.folder)


def test_injections_are_recorded_by_the_digests_of_their_blocks(state: SessionState) -> None:
    state.record(call("SessionStart"), Injection('<note id="1f3a9c02" name="a">\nPort 80\n</note 1f3a9c02>'))
    (record,) = state.unrecorded()
    assert digest_text("Port 80") in record.digests
    assert "text" not in record.event_data()


def test_recorded_injections_stay_known_in_their_window_and_are_forgotten_after_it(state: SessionState) -> None:
    inject(state, "messages:1")
    state.mark_recorded(state.unrecorded())
    assert (state.unrecorded(), state.injected()) == ([], {"messages:1"})
    state.begin(call("SessionStart", "compact"))
    inject(state, "compaction:1")
    inject(state, "messages:2")
    state.mark_recorded(state.unrecorded()[:1])
    assert [record.items for record in state.unrecorded()] == [("messages:2",)]
    assert "messages:1" not in Path(state.folder, "injected.jsonl").read_text()


def write(home: str, number: int) -> None:
    state = SessionState(Home(home, str(os.getuid())), "claude-code", "s-1")
    for part in range(20):
        inject(state, f"messages:{number}-{part}")
        state.request(Request("Stop", f"/{number}-{part}"))
        if part % 5 == 0:
            state.mark_recorded(state.unrecorded()[:1])


def test_several_processes_lose_no_record(home: str, state: SessionState) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as processes:
        list(processes.map(write, [home] * 4, range(4)))
    assert len(state.injected()) == 80
    assert len({request.cwd for request in state.take_requests()}) == 80
    assert state.take_requests() == []


def test_a_line_of_a_killed_process_costs_no_other(state: SessionState) -> None:
    inject(state, "messages:1")
    with Path(state.folder, "injected.jsonl").open("a") as file:
        file.write('{"id":"half')
    inject(state, "messages:2")
    assert state.injected() == {"messages:1", "messages:2"}


def test_the_files_of_sessions_that_were_not_used_for_long_are_removed(home: str, state: SessionState) -> None:
    inject(state, "messages:1")
    other = SessionState(find_home(home), "claude-code", "s-2")
    inject(other, "messages:1")
    old = 1_600_000_000
    os.utime(Path(other.folder, "injected.jsonl"), (old, old))
    state.remove_old()
    assert (os.path.exists(state.folder), os.path.exists(other.folder)) == (True, False)


def test_any_session_id_is_a_folder_of_its_own(home: str) -> None:
    states = [SessionState(find_home(home), "claude-code", name) for name in ("../../etc", "a" * 400, "a" * 401, ".")]
    folders = {os.path.realpath(state.folder) for state in states}
    assert len(folders) == 4
    assert all(folder.startswith(os.path.realpath(home)) for folder in folders)
