"""A closed session says so, whatever is done with it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.errors import SessionClosed
from daypack.session import Session

USES: dict[str, Callable[[Session], Any]] = {
    "append": lambda session: session.append("user", "x"),
    "append a result": lambda session: session.append("tool", "x", tool_call_id="c"),
    "append_many": lambda session: session.append_many([{"role": "user", "content": "x"}]),
    "append_event": lambda session: session.append_event("note"),
    "pin": lambda session: session.pin("goal", "x"),
    "unpin": lambda session: session.unpin("goal"),
    "rules": lambda session: session.rules(),
    "add_rule": lambda session: session.add_rule("Always test."),
    "drop_rule": lambda session: session.drop_rule("x"),
    "pin_rule": lambda session: session.pin_rule("x"),
    "set_state": lambda session: session.set_state("done"),
    "set_budget": lambda session: session.set_budget(8000),
    "switch": lambda session: session.switch("voice", on=True),
    "put_child": lambda session: session.put_child("scout", handoff="x"),
    "children": lambda session: session.children,
    "add_question": lambda session: session.add_question("Why?"),
    "resolve_question": lambda session: session.resolve_question("x"),
    "prepare": lambda session: session.prepare(),
    "refresh": lambda session: session.refresh(),
    "accept": lambda session: session.accept("Yes."),
    "stream": lambda session: session.stream(iter(())),
    "replay": lambda session: session.replay("ev-1"),
    "tiers": lambda session: session.tiers,
    "compact": lambda session: session.compact(),
    "compact_on_overflow": lambda session: session.compact_on_overflow(),
    "compactions": lambda session: session.compactions,
    "undo": lambda session: session.undo(),
    "search_history": lambda session: session.search_history("x"),
    "recall": lambda session: session.recall("msg-1"),
    "call": lambda session: session.call("recall", {"id": "msg-1"}),
    "memory": lambda session: session.memory,
    "bind_memory": lambda session: session.bind_memory("x"),
    "unbind_memory": lambda session: session.unbind_memory(),
    "capture": lambda session: session.capture(),
    "tail": lambda session: session.tail(1),
    "messages": lambda session: session.messages(),
    "events": lambda session: session.events(),
    "newest_within": lambda session: session.newest_within(10),
    "pins": lambda session: session.pins,
    "state": lambda session: session.state,
    "meta": lambda session: session.meta,
    "damage": lambda session: session.damage,
    "with": lambda session: session.__enter__(),
}
STILL = ("path", "layout", "name", "agent", "close", "tools")


def files(folder: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("use", USES)
def test_a_closed_session_refuses_every_use(home: str, use: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "Where is the boat?")
    session.prepare()
    session.close()
    before = files(home)
    with pytest.raises(SessionClosed) as caught:
        USES[use](session)
    assert str(caught.value) == (
        "use session: default/work: the session is closed "
        "(hint: open it again with daypack.open_session(…), or do this before close() or the end of `with`)"
    )
    assert files(home) == before


def test_the_list_of_uses_is_complete() -> None:
    named = {name.split(" ")[0] for name in USES} | {*STILL, "history", "turns", "lookup", "bound"}
    assert {name for name in dir(Session) if not name.startswith("_")} <= named


def test_closing_twice_is_fine(home: str) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append("user", "Where is the boat?")
        session.close()
    session.close()
    assert (session.name, session.agent, session.path.name) == ("work", "default", "work")
    assert session.tools()


def test_a_session_is_closed_even_if_closing_its_memory_fails(home: str) -> None:
    session = daypack.open_session("work", home=home)
    memory = daypack.open_memory(home=home).create_memory("Launch").memory_id
    session.bind_memory(memory)

    def fail(*, in_turn: bool = False, writing: bool = True) -> None:
        raise OSError("no")

    session.bound.close = fail
    with pytest.raises(OSError, match="no"):
        session.close()
    with pytest.raises(SessionClosed):
        session.append("user", "x")


def test_another_session_object_of_the_same_name_stays_open(home: str) -> None:
    first, second = (daypack.open_session("work", home=home) for _ in range(2))
    first.close()
    assert second.append("user", "x").seq == 1


def test_closing_in_a_forked_process_does_not_close_it_here(home: str) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "x")
    if (child := os.fork()) == 0:
        session.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert session.append("user", "y").seq == 2
