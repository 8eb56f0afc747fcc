"""The title of a session."""

import daypack
from daypack.derived.title import MAX_CHARS, title_of
from daypack.session import Session


def open_empty(home: str) -> Session:
    return daypack.open_session("talk", home=home, durability="os")


def test_a_title_is_the_first_user_message_as_one_line(home: str) -> None:
    with open_empty(home) as session:
        assert title_of(session.history) == ""
        session.append("system", "Be kind.")
        session.append("assistant", "Hello, what can I do?")
        assert title_of(session.history) == ""
        session.append("user", "Mend the belt.\n\n  It slips.")
        session.append("user", "Never mind.")
        assert title_of(session.history) == "Mend the belt. It slips."


def test_text_that_a_harness_wrote_in_the_users_name_is_no_title(home: str) -> None:
    with open_empty(home) as session:
        session.append("user", "<system-reminder>\nThe hook failed.\n</system-reminder>")
        assert title_of(session.history) == "<system-reminder> The hook failed. </system-reminder>"
        session.append("user", "Why did the hook fail?")
        assert title_of(session.history) == "Why did the hook fail?"


def test_a_long_message_is_cut_and_foreign_lines_are_read(home: str) -> None:
    with open_empty(home) as session:
        with (session.path / "messages.jsonl").open("a") as log:
            log.write('{"role":"assistant","content":"Hi"}\n{"role":"user","content":"' + "word " * 500 + '"}\n')
        title = title_of(session.history)
        assert title.startswith("word word")
        assert len(title) == MAX_CHARS


def test_a_title_shows_no_secret(home: str) -> None:
    with open_empty(home) as session:
        session.append("user", "Deploy with sk-proj-Zx81kQpLm93vTbNc47RwYh20 and\nreport.")
        title = title_of(session.history)
        assert "sk-proj" not in title
        assert title.startswith("Deploy with [")
        assert title.endswith(" and report.")
