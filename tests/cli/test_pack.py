"""`daypack pack` and the other commands that look: they change nothing."""

import json
import subprocess
from collections.abc import Callable

import pytest

import daypack
from daypack.session import Session

Command = Callable[..., subprocess.CompletedProcess[str]]
# Indexes, which are rebuilt from the logs wherever they are missing or behind.
INDEXES = ("context/offsets/", "context/search")

LOOKS = [
    ("pack", "talk"),
    ("pack", "talk", "--json"),
    ("pack", "talk", "--budget", "3000"),
    ("pack", "talk", "--budget", "200000"),
    ("pack", "talk", "--refresh"),
    ("pack", "talk", "--dialect", "anthropic"),
    ("pack", "talk", "--target", "user"),
    ("pack", "talk", "--model", "gpt-4"),
    ("explain", "talk"),
    ("explain", "talk", "--json"),
    ("explain", "talk", "messages:1"),
    ("diff", "talk", "latest", "latest"),
    ("log", "talk"),
    ("log", "talk", "--events"),
    ("replay", "talk"),
    ("replay", "talk", "--all"),
    ("export", "talk"),
    ("export", "talk", "--scope", "handoff"),
    ("search", "talk", "walrus harbour"),
    ("recall", "talk", "msg-3"),
    ("session", "list"),
    ("session", "show", "talk"),
    ("budget", "talk"),
    ("pin", "talk"),
    ("switch", "talk"),
    ("child", "talk"),
    ("child", "talk", "crawler"),
    ("compact", "talk", "--dry-run"),
    ("compactions", "talk"),
    ("tiers", "talk"),
    ("doctor", "talk"),
    ("rebuild", "talk", "--verify"),
    ("gc", "talk"),
    ("lint", "--session", "talk"),
]


def fill(session: Session, count: int) -> None:
    for number in range(count):
        call = {"id": f"call-{number}", "name": "read", "arguments": json.dumps({"path": f"walrus-{number}.txt"})}
        session.append_many(
            [
                {"role": "user", "content": f"Where does walrus {number} live?"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": f"harbour {number} " * 200, "tool_call_id": f"call-{number}"},
                {"role": "assistant", "content": f"Walrus {number} lives in harbour {number}. " * 20},
            ]
        )


@pytest.fixture
def talk(command: Command, home: str) -> Session:
    """A session with turns, a compaction, pins, a child, a question and edits by hand that no turn has recorded."""
    command("session", "new", "talk", "--model", "gpt-4o")
    session = daypack.open_session("talk", home=home, durability="os")
    session.pin("rules", "Be brief.")
    session.put_child("crawler", handoff="Count the walruses.", result="There are 60.")
    session.add_question("Which branch?")
    for _ in range(8):
        fill(session, 4)
        session.append("user", "And now?")
        session.prepare(budget=9000)
        session.accept("A reply.")
    assert session.compactions
    fill(session, 20)  # more than the window holds: the next turn begins an epoch and compacts
    session.append("user", "Where does walrus 3 live?")
    (session.path / "context" / "pinned" / "mine.md").write_text("Edited by hand.", encoding="utf-8")
    session.close()
    return daypack.open_session("talk", home=home, durability="os")


def files(session: Session) -> dict[str, bytes]:
    """All files of the session."""
    return {
        path.relative_to(session.path).as_posix(): path.read_bytes()
        for path in session.path.rglob("*")
        if path.is_file()
    }


@pytest.mark.requirement("X43")
def test_looking_changes_nothing(command: Command, talk: Session) -> None:
    before = files(talk)
    for look in LOOKS:
        done = command(*look)
        assert done.returncode == 0, (look, done.stderr)
        after = files(talk)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        assert {name for name in changed if not name.startswith(INDEXES)} == set(), look
    events = len(talk.events())
    assert command("prepare", "talk").returncode == 0
    assert len(talk.events()) > events


@pytest.mark.requirement("X43")
def test_a_budget_edited_by_hand_is_shown_and_not_recorded(command: Command, talk: Session) -> None:
    (talk.path / "context" / "budget").write_text("5000", encoding="utf-8")
    before = files(talk)
    assert " of 5,000 tokens" in command("pack", "talk").stdout
    assert files(talk)["events.jsonl"] == before["events.jsonl"]


def test_without_a_budget_the_session_s_own_holds(command: Command, talk: Session) -> None:
    def shown(*options: str) -> int:
        return json.loads(command("pack", "talk", "--json", *options).stdout)["budget_tokens"]

    assert shown() == 9000  # of the newest turn
    assert shown("--budget", "20000") == 20000
    assert shown() == 9000  # what was looked at is no turn
    assert command("budget", "talk").stdout.endswith("(of the last turn)\n")
    talk.set_budget(12000)
    assert shown() == 12000
    command("session", "new", "fresh")
    command("append", "fresh", "Hello?")
    assert json.loads(command("pack", "fresh", "--json").stdout)["budget_tokens"] == 128_000


def test_a_number_of_the_window_can_be_tried_without_setting_it(command: Command, talk: Session) -> None:
    def stable(*options: str) -> int:
        return json.loads(command("pack", "talk", "--refresh", "--json", *options).stdout)["stable_tokens"]

    assert stable("--window", "epoch_share=0.2") < stable("--window", "epoch_share=0.7")
    assert stable() == stable()
    wrong = command("pack", "talk", "--window", "epoch_share=2")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "window.epoch_share is '2' [argument]" in wrong.stderr
    assert "'much' has no number [--window]" in command("pack", "talk", "--window", "much").stderr


def test_a_pack_is_what_the_next_turn_sends(command: Command, talk: Session) -> None:
    talk.set_budget(0)
    shown = command("pack", "talk", "--dialect", "openai")
    assert "messages do not fit" not in shown.stderr
    assert talk.events()[-1].type != "context.turn"
    sent = command("prepare", "talk", "--dialect", "openai").stdout
    assert _without_time(sent) == _without_time(shown.stdout)


def test_a_pack_that_drops_messages_says_that_prepare_may_compact(command: Command, talk: Session) -> None:
    done = command("pack", "talk")
    assert "messages do not fit: `daypack prepare talk` may compact them first" in done.stderr
    assert "recorded  nothing; `daypack prepare talk` records the turn" in done.stdout


def _without_time(text: str) -> str:
    return text.split("Current time", maxsplit=1)[0]
