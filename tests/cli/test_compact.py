"""`daypack compact`: what leaves the window, what it becomes, and what is refused before anything is done."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_endpoint import Reply, Seen
from turn.compacting import check_files, document_of, model, step, tree

import daypack
from daypack.derived.template import problems
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]
HOSTILE = "We decided to keep \x1b]0;title\x07 the \x9b31m lamp \u202e in src/evil_1.py because it is cheap."


@pytest.fixture
def talk(command: Command, home: str) -> Iterator[Session]:
    """A session of a dozen tasks with bulky results, for a model whose tokens are counted exactly."""
    command("session", "new", "talk", "--model", "gpt-4o")
    with daypack.open_session("talk", home=home, durability="os") as session:
        for number in range(12):
            step(session, number)
        session.append("user", "What is left to do?")
        yield session


def test_what_left_the_window_is_told_with_what_it_became(command: Command, talk: Session) -> None:
    done = command("compact", "talk", "--keep", "2000")
    (made,) = talk.compactions
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"compacted {made.source}: {made.through} messages without a model"
    assert lines[1] == f"{made.before_tokens:,} tokens compacted so far into a CONTEXT.md of {made.after_tokens:,}"
    assert lines[2:5] == [
        f"the window starts at message {made.through + 1}",
        f"recorded as {made.id}; `daypack undo talk` reverts it",
        "",
    ]
    document = document_of(talk)
    assert done.stdout.startswith("\n".join([*lines[:5], document.rstrip()]))
    assert problems(document) == []
    assert "src/orchard_2.py" in document
    check_files(talk)


def test_a_dry_run_says_the_same_and_writes_nothing(command: Command, talk: Session) -> None:
    command("compact", "talk", "--dry-run")  # whatever a reader brings up to date is up to date
    before = tree(talk)
    planned = command("compact", "talk", "--keep", "2000", "--dry-run")
    assert tree(talk) == before
    assert planned.returncode == 0
    lines = planned.stdout.splitlines()
    assert "would compact " in lines[0]
    assert " tokens compacted so far into a CONTEXT.md of " in lines[1]
    assert lines[2].startswith("the window would start at message ")
    assert lines[3] == "nothing recorded (dry run)"
    done = command("compact", "talk", "--keep", "2000")
    assert done.stdout.splitlines()[4:] == lines[4:]


def test_json_tells_everything_of_the_compaction(command: Command, talk: Session) -> None:
    planned = json.loads(command("compact", "talk", "--keep", "2000", "--dry-run", "--json").stdout)
    done = json.loads(command("compact", "talk", "--keep", "2000", "--json").stdout)
    (made,) = talk.compactions
    assert (planned["id"], done["id"]) == (None, made.id)
    assert {**planned, "id": made.id} == done
    assert (done["changed"], done["source"], done["kept_from"]) == (True, made.source, made.through + 1)
    assert (done["model"], done["trigger"], done["problem"]) == ("none", "manual", "")
    assert (done["before_tokens"], done["after_tokens"]) == (made.before_tokens, made.after_tokens)
    assert done["coverage"]["messages"] == done["coverage"]["read"] == made.through
    assert done["document"] == document_of(talk)


NOTHING = "no message would leave the window; keep fewer tokens (--keep, keep_tokens)"


def test_nothing_to_compact_is_told_and_no_failure(command: Command, talk: Session) -> None:
    command("append", "small", "hello")
    done = command("compact", "small")
    assert (done.returncode, done.stdout) == (0, f"nothing to compact: {NOTHING}\n")
    told = json.loads(command("compact", "small", "--json").stdout)
    assert (told["changed"], told["id"], told["problem"]) == (False, None, NOTHING)
    command("compact", "talk", "--keep", "2000")
    again = command("compact", "talk", "--keep", "2000")
    assert (again.returncode, again.stdout) == (0, f"nothing to compact: {NOTHING}\n")
    assert len(talk.compactions) == 1


@pytest.mark.requirement("X12")
def test_context_md_is_exported_when_it_is_asked_for(command: Command, talk: Session, tmp_path: Path) -> None:
    done = command("compact", "talk", "--keep", "2000", "--export", "CONTEXT.md")
    exported = tmp_path / "workspace" / "CONTEXT.md"
    assert (done.returncode, done.stderr) == (0, "copied CONTEXT.md to CONTEXT.md\n")
    assert exported.read_text() == document_of(talk)
    command("compact", "talk", "--keep", "1000", "--export", "CONTEXT.md")
    assert exported.read_text() == document_of(talk)
    exported.unlink()
    again = command("compact", "talk", "--keep", "1000", "--export", "CONTEXT.md")
    assert again.stdout.startswith("nothing to compact")
    assert exported.read_text() == document_of(talk)
    assert command("compact", "talk", "--keep", "500").returncode == 0
    assert [path.name for path in exported.parent.iterdir()] == ["CONTEXT.md"]


def test_a_file_of_somebody_else_is_not_overwritten(command: Command, talk: Session, tmp_path: Path) -> None:
    own = tmp_path / "workspace" / "CONTEXT.md"
    own.write_text("My own notes.\n")
    done = command("compact", "talk", "--keep", "2000", "--export", "CONTEXT.md")
    assert done.returncode == 2
    assert done.stderr.startswith("daypack: the file is not a CONTEXT.md and would be overwritten [")
    assert own.read_text() == "My own notes.\n"
    assert talk.compactions == ()


def test_there_is_nothing_to_export_before_the_first_compaction(command: Command, tmp_path: Path) -> None:
    command("append", "small", "hello")
    done = command("compact", "small", "--export", "CONTEXT.md")
    assert done.returncode == 2
    assert done.stdout.startswith("nothing to compact")
    assert done.stderr == ("daypack: no CONTEXT.md yet [CONTEXT.md]\n  → the first compaction writes it\n")
    assert not (tmp_path / "workspace" / "CONTEXT.md").exists()


def test_a_refused_request_makes_room_at_once(command: Command, talk: Session) -> None:
    done = command("compact", "talk", "--on-overflow")
    assert done.returncode == 0
    (made,) = talk.compactions
    assert (made.trigger, made.model) == ("provider_context_editing", "none")
    assert done.stdout.splitlines()[3] == f"recorded as {made.id}; `daypack undo talk` reverts it"


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("talk", "--on-overflow", "--dry-run"), 2, "--on-overflow cannot be combined"),
        (("talk", "--on-overflow", "--model", "none"), 2, "--on-overflow cannot be combined"),
        (("talk", "--on-overflow", "--keep", "0"), 2, "--on-overflow cannot be combined"),
        (("talk", "--dry-run", "--export", "x.md"), 2, "--export cannot be combined with --dry-run"),
        (("talk", "--export", "none/x.md"), 2, "no such folder"),
        (("talk", "--keep", "-5"), 2, "must be a number of tokens such as 8000 or 8k, got '-5'"),
        (("talk", "--keep", "many"), 2, "must be a number of tokens such as 8000 or 8k, got 'many'"),
        (("talk", "--model", "best"), 2, "'best' is not a model choice [model]"),
        (("talk", "--model", "llama:/none/model.gguf"), 1, "the model file does not exist"),
        (("none",), 1, "no such session"),
        (("../talk",), 2, "has a path separator"),
    ],
)
def test_wrong_use_is_told_and_changes_nothing(
    command: Command, talk: Session, args: tuple[str, ...], code: int, text: str
) -> None:
    done = command("compact", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert talk.compactions == ()


def test_a_model_that_does_not_answer_is_a_loss_and_no_failure(command: Command, talk: Session) -> None:
    done = command("compact", "talk", "--keep", "2000", "--model", "openai:http://127.0.0.1:9/v1#none")
    assert done.returncode == 0
    (made,) = talk.compactions
    assert "messages with openai:http://127.0.0.1:9/v1#none" in done.stdout
    assert "not in CONTEXT.md (still in the history):\n  not read: messages:" in done.stdout
    assert [one.reason for one in made.losses if one.detail and "the model failed" in one.detail] == ["unread"]
    check_files(talk)


def test_what_a_model_invents_is_told_as_a_loss(command: Command, talk: Session) -> None:
    words = "# Context\n\n## Task\nFix the violin of part 3.\n\n## Decisions\n\n## Facts\n- The port is 4711.\n"
    words += "\n## Pending\n\n## Errors\n"

    def answer(_: Seen) -> Reply:
        choice = {"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
        return Reply({"choices": [choice], "usage": {}})

    with model(answer) as (choice, _):
        done = command("compact", "talk", "--keep", "2000", "--model", choice)
    assert done.returncode == 0
    assert f"messages with {choice}\n" in done.stdout
    assert "  not supported by the history: The port is 4711." in done.stdout
    assert "4711" not in document_of(talk)


def test_control_characters_in_what_was_said_are_visible(command: Command, home: str) -> None:
    with daypack.open_session("evil", home=home, durability="os") as session:
        session.append("user", "Fix the lamp of part 1, please, it should burn 4 hours.")
        session.append("assistant", HOSTILE)
        for number in range(12):
            step(session, number)
        session.append("user", "What is left to do?")
        done = command("compact", "evil", "--keep", "1000", "--dry-run")
        told = command("compact", "evil", "--keep", "1000", "--json")
        assert "src/evil_1.py" in done.stdout
        for text in (done.stdout, told.stdout):
            assert not set("\x1b\x07\x9b\u202e") & set(text)
        assert "src/evil_1.py" in told.stdout


def test_a_wrong_model_is_refused_although_nothing_has_to_leave(command: Command) -> None:
    command("append", "short", "Hello.")
    done = command("compact", "short", "--model", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "daypack: 'nonsense' is not a model choice [model]\n"
        "  → it must be none, openai:URL#NAME, llama:PATH or llama:NAME\n"
    )
