"""`daypack tiers`: the model's own memory as a person reads it, and what is not shown, and why."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from turn.scenes import MARKER, SECRET, close_all, stage
from turn.snapshot_replies import ADA, ask, block, exchange, talking

from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def _closed_sessions() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def talk(home: str) -> Session:
    """A session after five rounds, the last four of them without a snapshot."""
    session = talking(home, "talk")
    exchange(
        session,
        core=[block(type="identity", tags=["user", "name"])],
        working=[
            block("work-001", "Paint\nthe hull.", type="task", decay=0.4, confidence=0.78),
            block("low", "Something dim.", decay=0.9),
        ],
        ephemeral=[block("temp-001", "The tide turns.", type="hint", decay=0.75, confidence=0.55)],
        active_task="Paint the hull.",
    )
    for _ in range(4):
        ask(session)
        session.accept("No.")
    return session


@pytest.mark.requirement("X16")
def test_the_tiers_are_a_table_with_importance_instead_of_decay(command: Command, talk: Session) -> None:
    done = command("tiers", "talk")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "round 5; the protocol is on; blocks: 1 core, 1 working, 0 ephemeral",
        "active task: Paint the hull.",
        "",
        "tier     id        type      age  importance  confidence  content",
        "core     core-001  identity  4    0.90        0.90        The user is Ada. #user #name",
        "working  work-001  task      4    0.60        0.78        Paint\\nthe hull.",
        "",
        "not shown",
        "  importance below the threshold: 1 block",
        "    working low (importance 0.10, confidence 0.90, round 1): Something dim.",
        "  expired: 1 block",
        "    ephemeral temp-001 (importance 0.25, confidence 0.55, round 1): The tide turns.",
        "",
        "rules broken by replies, most frequent first",
        "  4 ×  S0-R1   a reply ends with a <<<CONTEXT>>> section",
        "  1 ×  S0-R13  blocks of low quality are left out",
    ]
    assert "decay" not in done.stdout


@pytest.mark.requirement("X16")
def test_json_has_the_wires_decay_and_the_importance(command: Command, talk: Session) -> None:
    found = json.loads(command("tiers", "talk", "--json").stdout)
    [core] = found["core"]
    assert core == {
        "id": "core-001",
        "type": "identity",
        "decay": 0.1,
        "confidence": 0.9,
        "round": 1,
        "tags": ["user", "name"],
        "content": ADA,
        "importance": 0.9,
        "age": 4,
    }
    assert (found["round"], found["protocol"], found["active_task"]) == (5, True, "Paint the hull.")
    assert found["dropped"] == {"threshold_decay": 1, "expired_by_round": 1}
    omitted = found["omitted"]
    assert [(one["tier"], one["block"]["id"], one["block"]["importance"], one["reason"]) for one in omitted] == [
        ("working", "low", 0.1, "threshold_decay"),
        ("ephemeral", "temp-001", 0.25, "expired_by_round"),
    ]
    assert found["violation_counts"] == {"S0-R13": 1, "S0-R1": 4}


def test_a_few_blocks_that_are_not_shown_are_named_and_all_of_them_when_asked(command: Command, home: str) -> None:
    session = talking(home, "talk")
    exchange(session, core=[block(f"core-{number:02}", f"Pier {number}.") for number in range(24 + 7)])
    few = command("tiers", "talk").stdout.splitlines()
    at = few.index("  the tier is full: 7 blocks")
    assert len(few[at + 1 :]) == 6
    assert few[-1] == "    and 2 more (--all)"
    everything = command("tiers", "talk", "--all").stdout
    assert "more (--all)" not in everything
    assert "    core core-30 (importance 0.90, confidence 0.90, round 1): Pier 30." in everything.splitlines()


def test_every_reason_is_told_in_words(command: Command, home: str) -> None:
    session = talking(home, "talk")
    exchange(session, core=[block(), block("b", ADA.upper()), block("c", "Dim.", confidence=0.3), "a story", {"id": 5}])
    told = command("tiers", "talk").stdout
    for words in ("confidence below the threshold: 1 block", "duplicate: 1 block", "invalid block: 2 blocks"):
        assert f"  {words}\n" in told


def test_a_session_without_the_protocol_is_told_how_to_turn_it_on(command: Command, home: str) -> None:
    stage(home, "talk")
    done = command("tiers", "talk")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "round 0; the protocol is off; blocks: 0 core, 0 working, 0 ephemeral",
            "  → turn it on with `daypack switch talk protocol on`",
        ],
    )
    assert command("switch", "talk", "protocol", "on").stdout.startswith("protocol is on: ")
    assert command("tiers", "talk").stdout == "round 0; the protocol is on; blocks: 0 core, 0 working, 0 ephemeral\n"


def test_a_block_cannot_draw_on_the_terminal(command: Command, home: str) -> None:
    session = talking(home, "talk")
    bad = "a\x1b[31m\nb\u202e"
    blocks = [block(bad, bad, type=bad, tags=[bad]), block(bad + "2", "Dim.", decay=0.9)]
    exchange(session, core=blocks, active_task=bad)
    for args in ((), ("--all",), ("--json",)):
        done = command("tiers", "talk", *args)
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
    lines = command("tiers", "talk").stdout.splitlines()
    assert lines[1] == "active task: a[31m b"
    assert [line for line in lines if line.startswith("b")] == []


@pytest.mark.parametrize("args", [(), ("--all",)])
def test_a_huge_block_does_not_flood_the_terminal(command: Command, home: str, args: tuple[str, ...]) -> None:
    session = talking(home, "talk")
    long = "word " * 20_000
    exchange(
        session, core=[block("dim", long, decay=0.9), block(long, "Named at length."), block("c", long, type=long)]
    )
    lines = command("tiers", "talk", *args).stdout.splitlines()
    assert max(map(len, lines)) < 2000


def test_of_many_broken_rules_those_broken_most_often_are_named(command: Command, home: str) -> None:
    session = talking(home, "talk")
    ask(session)
    session.accept("No.")
    exchange(session, core=[{"id": "a"}, {"id": "b"}])
    shown = command("tiers", "talk").stdout.splitlines()
    at = shown.index("rules broken by replies, most frequent first")
    assert shown[at + 1] == "  2 ×  S0-R10    a block has id, type, decay, confidence, round, tags and content"
    assert shown[at + 2] == "  2 ×  S0-R10.2  a block has a type"
    assert shown[-1].endswith(" others (--all)")
    whole = command("tiers", "talk", "--all").stdout.splitlines()
    assert whole[-1] == "  1 ×  S0-R1     a reply ends with a <<<CONTEXT>>> section"
    assert len(whole) > len(shown)


@pytest.mark.parametrize("args", [(), ("--all",), ("--json",)])
def test_secrets_in_blocks_are_not_printed(command: Command, home: str, args: tuple[str, ...]) -> None:
    session = talking(home, "talk")
    blocks: list[Any] = [
        block(content=f"The token is {SECRET}."),
        block("typed", "The bay is deep.", type=SECRET, tags=[SECRET]),
        block("across", "x" * 495 + " " + SECRET),
        block(f"x {SECRET}", "Sail."),
        block("dim", SECRET, decay=0.9),
        SECRET,
    ]
    exchange(session, core=blocks, active_task=f"Use {SECRET}", capabilities=[{"name": "memory", "scope": SECRET}])
    done = command("tiers", "talk", *args)
    assert (done.returncode, SECRET[:12] in done.stdout) == (0, False)
    assert MARKER in done.stdout


def test_json_tells_what_was_wrong_with_the_newest_reply(command: Command, talk: Session) -> None:
    assert json.loads(command("tiers", "talk", "--json").stdout)["violations"] == [
        {"rule": "S0-R1", "problem": "the reply has no context section", "where": "", "level": "must"}
    ]


def test_a_session_that_is_not_there_is_told(command: Command) -> None:
    done = command("tiers", "nowhere")
    assert (done.returncode, "no such session" in done.stderr) == (1, True)


def test_a_bad_setting_is_told_with_what_there_is(command: Command, talk: Session) -> None:
    with open(talk.history.layout.home.config, "w", encoding="utf-8") as file:
        file.write("[tiers.core]\nmax_decay = 7\n")
    done = command("tiers", "talk")
    assert (done.returncode, done.stdout) == (2, "")
    assert "max_decay" in done.stderr
    assert "max_decay, min_confidence, max_items, max_rounds" in done.stderr


@pytest.mark.requirement("G1")
def test_parse_budget_file_the_users_config_count(command: Command, talk: Session) -> None:
    with open(talk.history.layout.home.config, "w", encoding="utf-8") as file:
        file.write("[tiers.core]\nmax_decay = 0.05\n\n[tiers.ephemeral]\nmax_rounds = 9\n")
    found = json.loads(command("tiers", "talk", "--json").stdout)
    assert [len(found[tier]) for tier in ("core", "working", "ephemeral")] == [0, 1, 1]
