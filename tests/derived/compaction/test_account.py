"""Every sentence of what left the window is kept, covered by a record, or counted in a loss with its reason."""

import json
import random
from collections.abc import Sequence

import pytest
from derived.compaction.test_compaction import run
from hypothesis import given, settings
from hypothesis import strategies as st
from turn.scenes import close_all, stage

from daypack.derived.compaction import compaction as module
from daypack.derived.compaction.account import Account
from daypack.derived.records import COMPACTED, Folded, fold, store
from daypack.errors import NothingToCompact
from daypack.history.draft import draft_event
from daypack.session import Session
from daypack.text.sentences import sentences
from daypack.types.compaction import Compaction
from daypack.types.history import Message

SAYINGS = (
    "We decided to use `a_b.py`, not c.py.",
    "Phase 1 gets tests in tests/parser.",
    "Use SQLite for the index.",
    "Use PostgreSQL instead of SQLite.",
    "The root cause is the timeout of 30s in src/export.py.",
    "The staging port is 8443.",
    "Actually, the staging port is 9443.",
    "All 12 tests pass.",
    "3 of 14 tests failed.",
    "TODO: write the migration for invoices.",
    "The migration for invoices is written.",
    "Please make the export in src/export.py faster.",
    "Did you push?",
    "Let me look at it.",
    "Thanks!",
    "## Next steps\n- Deploy to staging\n- Tell the billing team",
    "```\nThe cause is in a fence.\n```",
    "| a | table |",
    "<system-reminder>Never do this. It is a reminder.</system-reminder>",
    "2026-01-01 10:00 ERROR a line of a log",
    "> quoted because of it",
    "我们决定使用它。还没写。",
    "Never commit to main. The port is 8081. I live in Turin with my two daughters.",
)


def grow(session: Session, seed: int, length: int) -> None:
    """Append a made-up conversation with tools."""
    draw = random.Random(seed)
    session.append("user", "Please keep the service running and write down what you find out about it. " * 2)
    for number in range(length):
        words = " ".join(draw.choice(SAYINGS) for _ in range(draw.randrange(1, 5)))
        if draw.random() < 0.4:
            session.append("user", words)
        elif draw.random() < 0.5:
            session.append("assistant", words)
        else:
            path = f"src/f{number % 7}.py"
            edit = json.dumps({"file_path": path, "old_string": "a_b", "new_string": draw.choice(["x", "a_b"])})
            name = draw.choice(["Edit", "Read"])
            arguments = edit if name == "Edit" else json.dumps({"file_path": path})
            session.append("assistant", words, tool_calls=[{"id": f"c{number}", "name": name, "arguments": arguments}])
            session.append("tool", f"line 1. It is one.\n\nline 2\n{words}", tool_call_id=f"c{number}")


def check(made: Compaction, messages: Sequence[Message]) -> None:
    said = sum(len(sentences(message.text)) for message in messages if message.role != "tool")
    lines = sum(bool(line.strip()) for one in messages if one.role == "tool" for line in one.text.split("\n"))
    coverage = made.coverage
    lost = sum(loss.sentences for loss in made.losses)
    assert coverage.get("sentences", 0) == said
    assert said == coverage.get("sentences_kept", 0) + coverage.get("sentences_covered", 0) + lost
    assert coverage.get("output_lines", 0) == lines
    for loss in made.losses:
        if loss.sentences:
            assert loss.detail is not None
            first, _, last = loss.detail.removeprefix("messages:").partition("-")
            assert messages[0].seq <= int(first) <= int(last or first) <= messages[-1].seq


@pytest.mark.requirement("S1-P2.3", "S1-P2.4", "X34")
@pytest.mark.parametrize("seed", range(12))
def test_the_sentences_of_every_range_add_up(home: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(module, "_SLAB_BYTES", 2000 if seed % 2 else 4 << 20)
    session = stage(home)
    grow(session, seed, 60)
    messages = tuple(session.messages())
    folded, start = Folded(), 1
    for through in (len(messages) // 3, len(messages) // 2, len(messages)):
        made = run(session, folded, None, start=start, through=through)
        check(made, messages[start - 1 : through])
        event = session.history.append_event(draft_event(COMPACTED, store(session.history, made)))
        folded = fold(session.history, [event], folded)
        assert folded.accepted[-1].losses == made.losses
        start = through + 1
    close_all()


def test_a_status_pattern_does_not_drop_decisions(home: str) -> None:
    session = stage(home)
    plan = [f"Phase {n} gets tests in tests/phase{n} instead of the old folder." for n in (1, 2, 3)]
    session.append("user", "Please rewrite the importer. " + " ".join(f"We decided: {line}" for line in plan))
    session.append("assistant", "Understood, and noted for the whole of the work that is before us now. " * 3)
    made = run(session)
    kept = " ".join(one.decision for one in made.records.decisions)
    assert all(f"tests/phase{n}" in kept for n in (1, 2, 3))
    check(made, tuple(session.messages()))
    close_all()


def test_what_was_superseded_or_cut_is_counted(home: str) -> None:
    session = stage(home)
    session.append("user", "Set up the lab, please.")
    session.append("user", "The staging port is 8443.")
    for number in range(30):
        session.append("user", f"The port of the machine lab{number} is {8000 + number}.")
    session.append("user", "Actually, the staging port is 9443.")
    made = run(session)
    counts = {loss.reason: loss.sentences for loss in made.losses if loss.sentences}
    assert counts["superseded"] == 1
    assert counts["over_limit"] + counts.get("displaced", 0) >= 20
    check(made, tuple(session.messages()))
    close_all()


def test_the_losses_of_a_long_range_stay_small(home: str) -> None:
    session = stage(home)
    grow(session, 5, 400)
    made = run(session)
    assert len(made.losses) <= module.MAX_LOSSES
    assert len([loss for loss in made.losses if loss.sentences]) < 20
    close_all()


TEXTS = st.lists(st.sampled_from(SAYINGS) | st.text(max_size=30), max_size=6).map("\n".join)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), max_size=6), st.data())
def test_an_account_adds_up_whatever_is_claimed(lines: list[tuple[str, str]], data: st.DataObject) -> None:
    account = Account()
    known: list[tuple[int, str]] = []
    for seq, (role, text) in enumerate(lines, 1):
        account.enter(Message(seq=seq, role=role, content=text), "not_prose")  # type: ignore[arg-type]
        known += [(seq, one.text) for one in sentences(text)]
    for seq, said in [*known, (1, "never said"), (99, "nowhere")]:
        claim = data.draw(st.sampled_from(["offer", "repeat", "lose", "nothing"]))
        if claim == "lose":
            account.lose(seq, said, data.draw(st.sampled_from(["outdated", "narration", "superseded"])))
        elif claim != "nothing":
            account.offer(seq, said, said, repeats=claim == "repeat")
    kept = [(f"messages:{seq}", said) for seq, said in known if data.draw(st.booleans())]
    done = account.close(kept, {said: "displaced" for _, said in known})
    assert done.sentences == sum(len(sentences(text)) for role, text in lines if role != "tool")
    assert done.sentences == done.kept + done.covered + sum(loss.sentences for loss in done.losses)


def test_a_compaction_of_nothing_but_small_talk_is_refused_or_adds_up(home: str) -> None:
    session = stage(home)
    session.append("user", "Hi.")
    with pytest.raises(NothingToCompact):
        run(session)
    close_all()


def test_a_sentence_that_a_message_has_very_often_is_judged_once_and_counted_every_time() -> None:
    account = Account()
    times = 100_000
    account.enter(Message(role="user", content="The port is 8443. " * times, seq=1, id="msg-1"), "not_prose")
    for _ in range(times):
        account.lose(1, "The port is 8443.", "fragment")
    settled = account.close((), {})
    assert (settled.sentences, [loss.sentences for loss in settled.losses]) == (times, [times])
