"""`daypack compactions`: each that stands, with tokens, coverage and losses, and those that were taken back."""

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest
from turn.compacting import step

import daypack
from daypack.cli.compactions import loss_line
from daypack.session import Session
from daypack.types.compaction import Compaction

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def talk(command: Command, home: str) -> Iterator[Session]:
    """A session that was compacted twice."""
    command("session", "new", "talk", "--model", "gpt-4o")
    with daypack.open_session("talk", home=home, durability="os") as session:
        for number in range(24):
            step(session, number)
            if number in (11, 23):
                session.append("user", "What is left to do?")
                assert session.compact(keep_tokens=1000).changed
        yield session


def lines_of(one: Compaction, losses: str) -> list[str]:
    start, _, stop = one.source.removeprefix("messages:").partition("-")
    count = int(stop) - int(start) + 1
    when = one.at[:19].replace("T", " ")
    return [
        f"{one.id}  {when}  {one.source}: {count} messages without a model; requested",
        f"  {one.before_tokens:,} tokens compacted so far into a CONTEXT.md of {one.after_tokens:,}; {losses}",
    ]


def summed(one: Compaction) -> str:
    kept, covered = (one.coverage.get(f"sentences_{name}", 0) for name in ("kept", "covered"))
    lost = sum(loss.sentences for loss in one.losses)
    said = f"{one.coverage['bullets']} lines; {one.coverage['sentences']} sentences"
    return f"{said}: {kept} kept, {covered} covered, {lost} lost"


def test_each_is_told_with_tokens_coverage_and_losses(command: Command, talk: Session) -> None:
    first, second = talk.compactions
    assert second.before_tokens > first.before_tokens
    lost = len(second.losses)
    assert lost > 1
    done = command("compactions", "talk")
    assert (done.returncode, done.stderr) == (0, "")
    told, last = (summed(one) for one in (first, second))
    assert done.stdout.splitlines() == [*lines_of(first, told), *lines_of(second, last)]
    assert lost


def test_losses_are_named_when_asked_for(command: Command, talk: Session) -> None:
    _, second = talk.compactions
    shown = command("compactions", "talk", "--losses").stdout
    for loss in second.losses:
        line = loss_line(loss)
        assert f"\n  {line}\n" in shown
    assert len(shown.splitlines()) == 4 + sum(len(one.losses) for one in talk.compactions)


def test_json_tells_records_and_counts_what_is_bulky(command: Command, talk: Session) -> None:
    told = json.loads(command("compactions", "talk", "--json").stdout)
    assert told["undone"] == []
    for one, made in zip(told["compactions"], talk.compactions, strict=True):
        assert (one["id"], one["source"], one["through"]) == (made.id, made.source, made.through)
        assert (one["before_tokens"], one["after_tokens"]) == (made.before_tokens, made.after_tokens)
        assert one["coverage"] == made.coverage
        assert [fact["id"] for fact in one["records"]["decisions"]] == [fact.id for fact in made.records.decisions]
        assert (one["refs"], one["swapped"]) == (len(made.refs), len(made.swapped))
        assert "output" not in one


def test_one_that_was_taken_back_is_named_last(command: Command, talk: Session) -> None:
    first, second = talk.compactions
    talk.undo()
    assert command("compactions", "talk").stdout.splitlines()[2:] == [f"undone: {second.id}"]
    talk.undo()
    assert command("compactions", "talk").stdout.splitlines() == [
        "no active compactions",
        f"undone: {second.id}, {first.id}",
    ]
    told = json.loads(command("compactions", "talk", "--json").stdout)
    assert told == {"compactions": [], "undone": [second.id, first.id]}


def test_a_session_without_any_says_so(command: Command) -> None:
    command("append", "small", "hello")
    assert command("compactions", "small").stdout == "no active compactions\n"
    assert json.loads(command("compactions", "small", "--json").stdout) == {"compactions": [], "undone": []}


def test_a_session_that_is_not_there_is_told(command: Command) -> None:
    done = command("compactions", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such session" in done.stderr


def test_an_event_of_another_writer_cannot_reach_the_terminal(command: Command, talk: Session) -> None:
    event = next(one for one in talk.events() if one.id == talk.compactions[-1].id)
    data = {
        **event.data,
        "trigger": "\x1b[31mred",
        "model": "evil\x07",
        "losses": [{"what": "a\x1b[2Jb", "reason": "\x9bwhy", "detail": "\u202eback"}],
        "coverage": {"messages": 5, "read": 3, "losses": 1},
    }
    talk.append_event(event.type, data)
    shown = command("compactions", "talk", "--losses").stdout
    assert not set("\x1b\x07\x9b\u202e") & set(shown)
    *_, told, tokens, loss = shown.splitlines()
    assert told.endswith(": 5 messages (3 with evil\\x07); \\x1b[31mred")
    assert tokens.endswith("; 0 lines kept, 1 lost")
    assert loss == "  \\x9bwhy: a\\x1b[2Jb (\\u202eback)"
