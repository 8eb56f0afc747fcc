"""Sessions that stay open for many requests: one that was deleted is missing, and looking creates nothing."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serve.page.views.looking import look
from serve.page.views.sessions import HERE, working
from turn.scenes import close_all, stage

from daypack.errors import SessionMissing
from daypack.serve.page.views.opened import OpenedHome
from daypack.turn.evidence.calls.fold import CallFold

VIEWS = ("session", "call", "request", "fit", "messages", "compactions", "children", "tiers")


def make(home: str) -> Path:
    """Make a session, close it, and return its folder."""
    session, _ = working(home)
    folder = Path(session.layout.folder)
    close_all()
    return folder


@pytest.mark.parametrize("view", VIEWS)
def test_a_deleted_session_is_missing_and_its_folder_is_not_made_again(page: OpenedHome, home: str, view: str) -> None:
    folder = make(home)
    arguments = {"event": "latest", "budget": 4000, "start": 1, "count": 10}
    look(page, "session", **HERE)
    look(page, view, **HERE, **arguments)
    shutil.rmtree(folder)
    with pytest.raises(SessionMissing):
        look(page, view, **HERE, **arguments)
    assert not folder.exists()


def test_a_new_session_of_the_same_name_is_shown(page: OpenedHome, home: str) -> None:
    folder = make(home)
    assert look(page, "session", **HERE)["total"] > 0
    for number in range(3):  # a file system may give the same number to the next folder
        shutil.rmtree(folder)
        stage(home).append("user", f"hello {number}")
        shown = look(page, "messages", **HERE, start=1, count=10)
        assert [message["text"] for message in shown["messages"]] == [f"hello {number}"]
        assert look(page, "session", **HERE)["total"] == 0


def test_a_request_that_still_uses_a_deleted_session_writes_nothing(
    page: OpenedHome, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(home)

    def forget(*_: object) -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return True

    with page.session("default", "work") as session:
        session.turns.inputs.ledger.read()
        monkeypatch.setattr(CallFold, "_update", forget)  # it is deleted while the calls are read
        CallFold(session.history).read()
        session.turns.inputs.ledger.save(always=True)
        monkeypatch.setattr(session.history.events, "records", lambda: ())
        assert session.pins == {}
        with ThreadPoolExecutor(1) as thread, pytest.raises(SessionMissing):
            thread.submit(look, page, "session", **HERE).result()
        assert session.name == "work"
    assert not folder.exists()


def test_closing_a_page_closes_its_folders(home: str) -> None:
    make(home)
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    page = OpenedHome(home, None, None)
    look(page, "session", **HERE)
    page.close()
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)
