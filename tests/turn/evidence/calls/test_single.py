"""One call of another program by its row: the same as in the list of all calls."""

import pytest
from recorded_requests import ROW_TYPES, import_recording

import daypack
from daypack.turn.evidence.calls.single import read_call
from daypack.turn.evidence.observed.calls import Call, newest_calls


@pytest.mark.parametrize("leave_out", [(), ROW_TYPES], ids=["requests", "replies only"])
def test_a_call_is_read_as_the_list_has_it(home: str, leave_out: tuple[str, ...]) -> None:
    name = import_recording(home, leave_out=leave_out)
    with daypack.open_session(name, home=home, create=False) as session:
        listed = [entry for entry in newest_calls(session.history) if isinstance(entry, Call)][::-1]
        calls = session.turns.calls.read()
        assert [read_call(session.history, calls, at) for at in range(len(calls.rows))] == listed
        assert len(listed) > 5
        assert any(call.cache_break for call in listed)


def test_a_turn_of_daypack_between_two_calls_is_passed_over(home: str) -> None:
    name = import_recording(home)
    with daypack.open_session(name, home=home, create=False) as session:
        session.append("user", "and now?")
        session.prepare()
        calls = session.turns.calls.read()
        assert read_call(session.history, calls, len(calls.rows) - 1) is None
        assert read_call(session.history, calls, len(calls.rows) - 2) == next(
            entry for entry in newest_calls(session.history) if isinstance(entry, Call)
        )
