"""Where things are, and which names may be part of a path."""

import os
import stat
from pathlib import Path

import pytest

import daypack
from daypack.errors import BadName
from daypack.history.layout import DERIVED, Home, Layout, check_name, default_root, safe_name
from daypack.session import Session

HOSTILE = [
    "",
    " ",
    ".",
    "..",
    "...",
    ".hidden",
    "../up",
    "a/../../b",
    "a/b",
    "/etc/passwd",
    "a\\b",
    "..\\..\\windows",
    "C:\\temp",
    "a\x00b",
    "a\nb",
    "a\rb",
    "a\tb",
    "\x1b[31mred",
    "bell\x07",
    "del\x7f",
    "c1\x9b31m",
    "line\u2028sep",
    "par\u2029sep",
    "rtl\u202egpj.exe",
    "ltr\u2066x",
    "zero\u200bwidth",
    "joiner\u200d",
    "\ufeffbom",
    "soft\u00adhyphen",
    "lone\ud800surrogate",
    "e\u0301",  # two spellings of é would be two sessions
    "x" * 129,
    "é" * 65,
    "漢" * 43,
    " leading",
    "trailing ",
    "\u00a0nbsp",
    "\u3000wide",
    *(f"a{chr(code)}b" for code in range(32)),
    *(f"{chr(code)}" for code in range(0x80, 0xA0)),
    *(f"..{separator}{name}" for separator in "/\\" for name in ("a", "b c", "etc", "home", "root", "tmp", "var", "~")),
    *(f"{'../' * depth}x" for depth in range(1, 20)),
    *(f"./{name}" for name in ("a", "b", "c", "d", "e", "f", "g", "h")),
    *(f"{name}/" for name in ("a", "b", "c", "d", "e", "f", "g", "h")),
    *(f".{name}" for name in ("git", "ssh", "env", "bashrc", "daypack", "tmp-x", "a", "1")),
    *(f"{name}\n" for name in ("a", "b", "c", "d")),
    *(f"a{separator}{name}" for separator in ("/", "//", "\\\\") for name in ("b", "c", "..", ".", "messages.jsonl")),
    *(f"{code}" for code in "\u200e\u200f\u202a\u202b\u202c\u202d\u2060\u2061\u2062\u2063\u2064\u206a\u206f\u061c"),
    *(f"x{code}y" for code in "\u200e\u200f\u202a\u202b\u202c\u202d\u2060\u2061\u2062\u2063\u2064\u206a\u206f\u061c"),
]
HARMLESS = [
    "work",
    "a",
    "A-b_c.d",
    "2026-11-15",
    "名前",
    "émile",
    "with space",
    "x" * 128,
    "-rf",
    "$(rm -rf)",
    "~",
    "a..b",
    "%2e%2e",
]


def everything(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def test_there_are_at_least_200_hostile_names() -> None:
    assert len(set(HOSTILE)) >= 200


@pytest.mark.parametrize("name", sorted(set(HOSTILE)), ids=ascii)
def test_a_hostile_name_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    for session, agent in ((name, "fine"), ("fine", name)):
        with pytest.raises(BadName) as refused:
            daypack.open_session(session, agent=agent, home=home)
        assert refused.value.hint
    if name:
        with pytest.raises(BadName):
            daypack.open_session("fine", uid=name, home=home)
    assert everything(tmp_path) == set()


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_stays_inside_the_home(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    with daypack.open_session(name, agent=name, home=home, durability="os") as session:
        session.append("user", "x")
        session.pin(name[:100], "text")
    inside = home / "home"
    assert session.path.parent.parent.name == name
    assert all(path == home or home in path.parents for path in everything(tmp_path))
    assert inside.is_dir()


@pytest.mark.parametrize("name", ["../up", "a/b", ".x", "", "a\x00"])
def test_a_hostile_pin_name_is_refused(session: Session, name: str) -> None:
    with pytest.raises(BadName):
        session.pin(name, "text")
    assert session.pins == {}


def test_a_name_that_is_not_text_is_refused() -> None:
    with pytest.raises(BadName, match="not text"):
        check_name(7, "session")  # type: ignore[arg-type]


@pytest.mark.requirement("S4-G2", "S4-G3", "S4-SR6", "S4-F0")
def test_everything_lives_under_the_owning_session(home: str) -> None:
    with daypack.open_session("talk", agent="coder", home=home, uid="ada") as session:
        session.append("assistant", "hello", client_key="k")
        session.append_event("x", {})
        session.pin("system", "Be brief.")
    folder = Path(home) / "home" / "ada" / "agent" / "coder" / "session" / "talk"
    assert session.path == folder
    files = {path for path in everything(Path(home)) if path.is_file()}
    assert all(folder in path.parents for path in files)
    assert Layout(home, str(folder)).context == str(folder / "context")


@pytest.mark.requirement(
    "S4-F1", "S4-F2", "S4-F3", "S4-F4", "S4-F5", "S4-F6", "S4-F7", "S4-F8", "S4-F9", "S4-F18"
)  # fmt: skip
def test_a_session_has_the_files_of_the_layout(session: Session) -> None:
    session.append("assistant", "the newest text")
    session.append_event("x", {})
    session.pin("system", "Be brief.")
    session.close()
    names = {
        "messages.jsonl",
        "events.jsonl",
        "latest.md",
        "state",
        "cwd",
        "created_at",
        "updated_at",
        "meta.json",
        "context",
    }
    assert {path.name for path in session.path.iterdir()} == names
    assert (session.path / "latest.md").read_text(encoding="utf-8") == "the newest text"
    assert (session.path / "state").read_text(encoding="utf-8") == "active\n"
    assert (session.path / "cwd").read_text(encoding="utf-8") == f"{os.getcwd()}\n"
    assert (session.path / "context" / "pinned" / "system.md").read_text(encoding="utf-8") == "Be brief."


@pytest.mark.requirement(
    "S4-F10", "S4-F11", "S4-F12", "S4-F13", "S4-F14", "S4-F15", "S4-F16", "S4-F17", "S4-F19", "S4-F20",
    "S4-F21", "S4-F22", "S4-R5", "S4-R6", "S4-R7", "S4-R8",
)  # fmt: skip
def test_derived_files_have_their_names_and_are_all_under_context(session: Session) -> None:
    layout = session.history.layout
    assert {os.path.relpath(layout.derived(name), layout.folder) for name in DERIVED} == {
        "context/budget",
        "context/pack.json",
        "context/pack.md",
        "context/compaction.json",
        "context/summary.md",
        "context/facts.jsonl",
        "context/decisions.jsonl",
        "context/todo.md",
        "context/refs.jsonl",
        "context/swap",
        "context/dedup",
        "context/child",
        "context/gc.policy",
        "context/CONTEXT.md",
        "context/errors.jsonl",
        "context/ledger.json",
        "context/calls.jsonl",
        "context/search.sqlite",
        "context/recap.json",
    }


def test_files_and_folders_are_private_to_the_user(session: Session) -> None:
    session.append("assistant", "x", client_key="k")
    session.append_event("x", {})
    session.pin("long", "x" * 10_000)
    session.close()
    for path in [session.path, *everything(session.path)]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_root_is_the_variable_else_a_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root({"DAYPACK_HOME": "relative"}) == os.path.abspath("relative")
    if not os.path.isdir("/ctx"):
        assert default_root({}) == str(tmp_path / ".daypack")


def test_the_root_is_ctx_where_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:

    def there(path: str, _: int = 0) -> bool:
        return path == "/ctx"

    monkeypatch.setattr(os.path, "isdir", there)
    monkeypatch.setattr(os, "access", there)
    assert default_root({}) == "/ctx"


def test_listings_name_sessions_and_agents_and_no_links(home: str, tmp_path: Path) -> None:
    for agent, name in (("a", "one"), ("a", "two"), ("b", "three")):
        daypack.open_session(name, agent=agent, home=home, uid="u").close()
    place = Home(home, "u")
    (Path(place.sessions("a")) / "link").symlink_to(tmp_path)
    assert place.agents() == ["a", "b"]
    assert place.list("a") == ["one", "two"]
    assert place.list("nobody") == []


@pytest.mark.parametrize(
    "text", ["../../x", "-.-..x", "..", "", "...---", "a/../b", "\0", "漢字", "x" * 500, "-.-" * 200]
)
def test_any_id_of_another_program_becomes_a_name(text: str) -> None:
    assert check_name(safe_name(text), "session") == safe_name(text)
