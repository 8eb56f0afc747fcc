"""Names that differ only in case or normalisation: refused when made, and not opened on file systems that mix them."""

import os
import shutil
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import daypack
from daypack.errors import BadName
from daypack.history.layout import Home
from daypack.upkeep.archive import Guard, archive, restore

NFD = unicodedata.normalize("NFD", "café")
CALLS = (
    "open",
    "stat",
    "lstat",
    "mkdir",
    "rmdir",
    "listdir",
    "scandir",
    "unlink",
    "access",
    "readlink",
    "replace",
    "link",
)


def fold(name: str) -> str:
    return unicodedata.normalize("NFD", name).casefold()


@pytest.fixture
def mixing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system as that of macOS: an entry is found by every spelling of its name, and keeps its first one."""
    real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in CALLS}

    def resolve(path: Any) -> Any:
        text = str(path)
        if isinstance(path, int) or not text.startswith(f"{tmp_path}/"):
            return path
        here = str(tmp_path)
        for part in text[len(here) + 1 :].split("/"):
            entries: list[str] = []
            with suppress(OSError):
                entries = real["listdir"](here)
            found = part if part in entries else next((name for name in entries if fold(name) == fold(part)), part)
            here = f"{here}/{found}"
        return here

    def wrap(function: Callable[..., Any], paths: int) -> Callable[..., Any]:
        return lambda *args, **kwargs: function(*map(resolve, args[:paths]), *args[paths:], **kwargs)

    for name, function in real.items():
        monkeypatch.setattr(os, name, wrap(function, 2 if name in ("replace", "link") else 1))


def make(home: str, name: str, agent: str = "default") -> None:
    with daypack.open_session(name, agent=agent, home=home, durability="os") as session:
        session.append("user", f"this is {name}")


@pytest.mark.parametrize(
    ("first", "second"),
    [("demo", "Demo"), ("Release-2", "release-2"), ("Straße", "STRASSE"), ("ÄRGER", "ärger"), ("οδος", "ΟΔΟΣ")],
)
def test_a_session_that_differs_only_in_case_is_not_created(home: str, first: str, second: str) -> None:
    make(home, first)
    with pytest.raises(BadName) as refused:
        make(home, second)
    assert refused.value.place == "session"
    assert f"differs from the existing {first!r} only in case" in refused.value.problem
    assert refused.value.hint == f"use {first!r}, or choose another name"
    assert Home(home, str(os.getuid())).list("default") == [first]
    make(home, f"{second}-2")
    make(home, second, agent="other")
    make(home, first)  # is opened as ever


def test_an_agent_that_differs_only_in_case_is_not_created(home: str) -> None:
    make(home, "demo", agent="coder")
    with pytest.raises(BadName, match="agent: 'Coder' differs from the existing 'coder'"):
        make(home, "other", agent="Coder")
    assert Home(home, str(os.getuid())).agents() == ["coder"]


def test_a_name_beside_a_decomposed_one_is_not_created(home: str) -> None:
    make(home, "demo")
    os.mkdir(os.path.join(Home(home, str(os.getuid())).sessions("default"), NFD))
    with pytest.raises(BadName, match="case or normalisation"):
        make(home, "café")
    assert Home(home, str(os.getuid())).list("default") == ["demo"]  # it cannot be opened under a name of ours


def test_two_sessions_of_an_older_home_that_differ_only_in_case_stay_usable(home: str) -> None:
    make(home, "demo")
    sessions = Home(home, str(os.getuid())).sessions("default")
    shutil.copytree(os.path.join(sessions, "demo"), os.path.join(sessions, "Demo"))
    for name in ("demo", "Demo"):
        with daypack.open_session(name, home=home) as session:
            session.append("user", name)
            assert session.tail(1)[0].text == name


@pytest.mark.usefixtures("mixing")
def test_where_case_is_ignored_another_spelling_does_not_open_the_session(home: str) -> None:
    make(home, "demo", agent="coder")
    for name, agent in (("Demo", "coder"), ("demo", "Coder")):
        for create in (True, False):
            with pytest.raises(BadName, match="only in case"):
                daypack.open_session(name, agent=agent, home=home, create=create)
    with daypack.open_session("demo", agent="coder", home=home, create=False) as session:
        assert [message.text for message in session.messages()] == ["this is demo"]
    make(home, "new", agent="coder")


@pytest.mark.usefixtures("mixing")
def test_where_names_are_decomposed_sessions_are_listed_and_opened_by_their_own(home: str) -> None:
    make(home, "café")
    sessions = Home(home, str(os.getuid())).sessions("default")
    os.rename(os.path.join(sessions, "café"), os.path.join(sessions, NFD))  # as HFS+ stores it
    assert os.listdir(sessions) == [NFD]
    assert Home(home, str(os.getuid())).list("default") == ["café"]
    with daypack.open_session("café", home=home, create=False) as session:
        assert session.tail(1)[0].text == "this is café"
    make(home, "café")


def test_a_pin_and_a_child_that_differ_only_in_case_are_refused(home: str) -> None:
    with daypack.open_session("demo", home=home) as session:
        session.pin("rules", "Be brief.")
        with pytest.raises(BadName, match=r"'RULES\.md' differs from the existing 'rules\.md'"):
            session.pin("RULES.md", "Be long.")
        session.pin("rules", "Be very brief.")
        assert session.pins == {"rules.md": "Be very brief."}
        session.put_child("tester", handoff="Test it.")
        with pytest.raises(BadName, match="'Tester'"):
            session.put_child("Tester", handoff="Test it again.")
        session.put_child("tester", result="Done.")


def test_an_archived_session_does_not_come_back_beside_another_spelling(home: str) -> None:
    place = Home(home, str(os.getuid()))
    make(home, "demo")
    archive(place, "default", "demo", Guard(time.time(), force=True))
    make(home, "Demo")
    with pytest.raises(BadName, match="'demo' differs from the existing 'Demo'"):
        restore(place, "default", "demo")
    assert place.list("default") == ["Demo"]
