"""Sessions that already happened: taken in by `daypack setup`, each once, in any number of runs."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from agents_home import RECORDED, add_opencode_session
from user_home import UserHome

import daypack
from daypack.errors import BadInput, StorageFailed
from daypack.importers.all_places.new_files import Done, NewFiles
from daypack.importers.all_places.scan import Found
from daypack.session import Session

MINUTE = 60_000_000_000


@pytest.fixture
def claude(user: UserHome) -> UserHome:
    """A home with Claude Code, and a repository to work in."""
    user.install("claude")
    (user.work / ".git").mkdir()
    (user.work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (user.work / ".git" / "objects").mkdir()
    (user.work / ".git" / "refs").mkdir()
    return user


def row(number: int, role: str, text: str, cwd: Path | str, session: str) -> dict[str, object]:
    return {
        "type": role,
        "uuid": f"{session}-{number}",
        "parentUuid": f"{session}-{number - 1}" if number > 1 else None,
        "sessionId": session,
        "timestamp": f"2026-11-0{number}T10:00:00.000Z",
        "cwd": str(cwd),
        "version": "2.1.325",
        "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
    }


def write_session(user: UserHome, session: str, *texts: str, cwd: Path | str = "", minute: int = 0) -> Path:
    """Write a transcript of Claude Code; its messages are of the user and of the assistant in turn."""
    roles = ("user", "assistant") * len(texts)
    rows = [
        row(number, role, text, cwd or user.work, session)
        for number, (role, text) in enumerate(zip(roles, texts, strict=False), 1)
    ]
    path = user.write(f".claude/projects/-work/{session}.jsonl", "".join(json.dumps(each) + "\n" for each in rows))
    os.utime(path, ns=(minute * MINUTE, minute * MINUTE))
    return path


def open_imported(user: UserHome, session: str) -> Session:
    return daypack.open_session(session, agent="claude-code", home=str(user.folder / ".daypack"), create=False)


def sessions(user: UserHome) -> list[str]:
    folder = user.folder / ".daypack" / "home" / str(os.getuid()) / "agent" / "claude-code" / "session"
    return sorted(os.listdir(folder)) if folder.exists() else []


def set_up(user: UserHome, *arguments: str) -> str:
    done = user.daypack("setup", "--yes", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports(out: str) -> bool:
    return any(line.startswith("import") for line in out.splitlines())


RULE = "From now on always run the linter before you commit anything."


def test_sessions_are_imported_and_captured_into_the_memory_of_their_project(claude: UserHome) -> None:
    write_session(claude, "a", "Why does the retry policy fail?", "The retry policy ignores HTTP 503 answers.")
    write_session(claude, "b", RULE, "I will run the linter before each commit.", minute=1)
    out = set_up(claude)
    assert "import 2 sessions" in out
    assert "imported 2 sessions: 4 new messages" in out
    assert sessions(claude) == ["a", "b"]
    with open_imported(claude, "a") as session:
        assert [message.role for message in session.messages()] == ["user", "assistant"]
    found = claude.daypack("memory", "search", "retry policy HTTP 503").stdout
    assert "503" in found
    assert "memory of work: " in out


def test_a_second_run_imports_only_what_is_new(claude: UserHome) -> None:
    write_session(claude, "a", "First question about the parser?", "First answer about the parser.")
    set_up(claude)
    before = claude.tree(own=True)
    assert not imports(set_up(claude))
    assert claude.tree(own=True) == before
    write_session(claude, "a", "First question about the parser?", "First answer about the parser.", "More?", minute=2)
    assert "imported 1 session: 1 new message" in set_up(claude)


def test_an_interrupted_import_continues(claude: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_session(claude, f"s{number}", f"Question {number} about the parser?", "An answer.", minute=number)
    take_in = NewFiles._take_in  # pyright: ignore[reportPrivateUsage]
    calls: list[str] = []

    def interrupt(self: NewFiles, found: Found, deleted: frozenset[str]) -> Done:
        calls.append(found.file.path)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return take_in(self, found, deleted)

    monkeypatch.setattr(NewFiles, "_take_in", interrupt)
    done = claude.daypack("setup", "--yes")
    assert done.returncode == 130
    assert "stopped after 2 of 5 files; `daypack setup` continues" in done.stderr
    assert sessions(claude) == ["s0", "s1"]
    calls += [""] * 10
    assert "imported 3 sessions: 6 new messages" in set_up(claude)
    assert sessions(claude) == ["s0", "s1", "s2", "s3", "s4"]


def test_a_session_that_the_user_deleted_does_not_come_back(claude: UserHome) -> None:
    write_session(claude, "a", "A question about a secret?", "An answer.")
    set_up(claude)
    folder = claude.folder / ".daypack" / "home" / str(os.getuid()) / "agent" / "claude-code" / "session" / "a"
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    set_up(claude)
    assert sessions(claude) == []


def test_a_transcript_that_cannot_be_read_is_named_and_the_others_are_imported(claude: UserHome) -> None:
    write_session(claude, "a", "A question about the parser?", "An answer.")
    claude.write(".claude/projects/-work/broken.jsonl", "not a transcript\n")
    done = claude.daypack("setup", "--yes")
    assert done.returncode == 0
    assert "imported 1 session" in done.stdout
    assert "not imported: ~/.claude/projects/-work/broken.jsonl: unknown format" in done.stderr
    assert not imports(set_up(claude))


def test_nothing_is_imported_where_that_is_not_wanted(claude: UserHome) -> None:
    write_session(claude, "a", "A question?", "An answer.")
    assert not imports(set_up(claude, "--no-import"))
    assert sessions(claude) == []


def test_only_the_sessions_of_this_project_are_imported_where_that_is_wanted(claude: UserHome) -> None:
    other = claude.folder.parent / "other"
    other.mkdir()
    (claude.work / "sub").mkdir()
    write_session(claude, "a", "A question?", "An answer.", cwd=claude.work / "sub")
    write_session(claude, "b", "A question?", "An answer.", cwd=other)
    assert "imported 1 session" in set_up(claude, "--project-only")
    assert sessions(claude) == ["a"]
    assert "imported 1 session" in set_up(claude)
    assert sessions(claude) == ["a", "b"]


def test_a_session_in_a_folder_that_is_gone_is_imported_without_a_memory(claude: UserHome) -> None:
    write_session(claude, "a", "A question about the parser?", "An answer.", cwd="/nowhere/at/all")
    done = claude.daypack("setup", "--yes")
    assert "imported 1 session: 2 new messages, 0 entries in memories" in done.stdout
    assert "1 session in no memory, because the folder is gone; `daypack find` finds what" in done.stderr
    with open_imported(claude, "a") as session:
        assert "memory" not in session.meta


def test_a_dry_run_counts_and_imports_nothing(claude: UserHome) -> None:
    write_session(claude, "a", "A question?", "An answer.")
    before = claude.tree(own=True)
    assert "import 1 session" in claude.daypack("setup", "--dry-run").stdout
    assert claude.tree(own=True) == before


def test_sessions_are_taken_in_as_they_happened(claude: UserHome) -> None:
    write_session(claude, "new", "Which database do we use?", "We use PostgreSQL now.", minute=9)
    write_session(claude, "old", "Which database do we use?", "We use MySQL for the time being.", minute=1)
    set_up(claude)
    entries = claude.daypack("memory", "show").stdout
    assert entries.index("PostgreSQL") < entries.index("MySQL")  # the newest first


def test_an_agent_whose_settings_cannot_be_changed_is_left_out(claude: UserHome) -> None:
    write_session(claude, "a", "A question?", "An answer.")
    claude.write(".claude/settings.json", "{")
    done = claude.daypack("setup", "--yes")
    assert done.returncode == 1
    assert sessions(claude) == []


def test_the_words_of_a_sub_agent_are_not_captured(claude: UserHome) -> None:
    write_session(claude, "a", "Which file has the parser?", "The parser is in parse.py.")
    rows = [
        {**row(number, role, text, claude.work, "a"), "isSidechain": True, "agentId": "x1", "uuid": f"x{number}"}
        for number, (role, text) in enumerate((("user", "Look for the lexer."), ("assistant", "It is in lex.py.")), 1)
    ]
    claude.write(".claude/projects/-work/agent-x1.jsonl", "".join(json.dumps(each) + "\n" for each in rows))
    assert "imported 2 sessions: 4 new messages" in set_up(claude)
    shown = claude.daypack("memory", "show").stdout
    assert "parse.py" in shown
    assert "lex.py" not in shown


def test_a_project_with_broken_settings_is_captured_when_they_are_mended(claude: UserHome) -> None:
    write_session(claude, "a", "Which file has the parser?", "The parser is in parse.py.")
    (claude.work / ".daypack.toml").write_text("memory = ")
    done = claude.daypack("setup", "--yes", "--agent", "claude")
    assert done.returncode in (0, 2)
    (claude.work / ".daypack.toml").unlink()
    assert "imported 1 session" in set_up(claude)
    assert "parse.py" in claude.daypack("memory", "show").stdout


def test_what_was_taken_in_is_kept_by_a_removal(claude: UserHome) -> None:
    write_session(claude, "a", "A question about the parser?", "An answer.")
    set_up(claude)
    claude.remove()
    assert sessions(claude) == ["a"]
    assert not imports(set_up(claude))


def test_an_error_that_may_pass_is_tried_again(claude: UserHome, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(claude, "a", "A question about the parser?", "An answer.")
    for error, again in ((StorageFailed("disk full"), True), (KeyError("uuid"), True), (BadInput("unknown"), False)):

        def fail(*_: object, error: Exception = error) -> list[object]:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("daypack.importers.import_file.take_in", fail)
            done = claude.daypack("setup", "--yes")
        assert done.returncode == 0
        assert "not imported: ~/.claude/projects/-work/a.jsonl" in done.stderr
        assert ("import 1 session" in claude.daypack("setup", "--dry-run").stdout) == again
    monkeypatch.setattr(daypack, "__version__", "9.9.9")  # which may know the format
    assert "import 1 session" in claude.daypack("setup", "--dry-run").stdout


def test_the_plan_counts_the_sessions_of_a_database(user: UserHome) -> None:
    user.install("opencode")
    database = user.folder / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript((RECORDED / "opencode.sql").read_text(encoding="utf-8"))
    for number in range(2):
        add_opencode_session(database, f"ses_{number}", "A question?", cwd=str(user.work))
    assert "import 3 sessions" in user.daypack("setup", "--dry-run").stdout
    assert "import 2 sessions" in user.daypack("setup", "--dry-run", "--project-only").stdout
    assert "imported 2 sessions" in set_up(user, "--project-only")
    assert "imported 3 sessions" in set_up(user)
    assert not imports(set_up(user))
