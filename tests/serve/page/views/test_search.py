"""The search over all sessions on the page: the same hits as `daypack find`."""

import pytest
from msgspec.structs import asdict
from serve.page.views.looking import OTHER, look
from turn.scenes import MARKER, SECRET, logs, stage

from daypack.errors import AccessDenied, BadInput
from daypack.history.home import find_home
from daypack.serve.page.views.opened import OpenedHome
from daypack.upkeep.find import find


def test_hits_are_those_of_find_and_redacted(page: OpenedHome, home: str) -> None:
    session = stage(home)
    session.append("user", f"The harbour lamp has the token {SECRET}.")
    session.append("assistant", "The orchard is closed.")
    before = logs(session)
    answer = look(page, "find", q="harbour lamp")
    (hit,) = answer["hits"]
    (expected,) = find(find_home(home), "harbour lamp").hits
    assert {name: hit[name] for name in ("agent", "session", "seq", "line", "marks")} == {
        "agent": "default",
        "session": "work",
        "seq": 1,
        "line": f"The harbour lamp has the token {MARKER}.",
        "marks": [list(mark) for mark in expected.marks],
    }
    assert set(asdict(expected)) <= set(hit)
    assert (answer["sessions"], answer["messages"], answer["complete"], answer["weak"]) == (1, 2, True, False)
    assert look(page, "find", q="harbour zebra")["absent"] == ["zebra"]
    assert logs(session) == before


def test_the_search_is_narrowed_to_an_agent(page: OpenedHome, home: str) -> None:
    for agent in ("one", "two"):
        stage(home, agent=agent).append("user", "The harbour lamp burns.")
    assert {hit["agent"] for hit in look(page, "find", q="harbour", agent="two")["hits"]} == {"two"}
    with pytest.raises(BadInput):
        look(page, "find", q="harbour", agent="three")


def test_only_the_owner_searches_and_only_with_words(page: OpenedHome, home: str) -> None:
    stage(home).append("user", "The harbour lamp burns.")
    with pytest.raises(AccessDenied):
        look(page, "find", OTHER, q="harbour")
    with pytest.raises(BadInput):
        look(page, "find")
