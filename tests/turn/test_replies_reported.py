"""What an agent learns of a reply: what was wrong with the newest one; a bad setting before it pays for one."""

from pathlib import Path
from typing import Any

import pytest
from turn.scenes import MARKER, SECRET, logs, stage
from turn.snapshot_replies import ADA, BOAT, ask, block, exchange, kept_of, reply_to, taken_in, talking

from daypack.errors import BadConfig
from daypack.protocol import SEPARATOR, Reply, Splitter, parse
from daypack.session import Session

WORDS = "  Done ✅\n\n请看 — the *boat*\tis red. \n"


def configure(session: Session, text: str) -> None:
    Path(session.history.layout.home.config).write_text(text, encoding="utf-8")


# Settings


@pytest.mark.parametrize("text", ["[tiers.core]\nmax_decay = 7\n", "[tiers]\ncore = 5\n", "[tiers.other]\n"])
def test_a_bad_setting_is_told_before_a_reply_is_paid_for(home: str, text: str) -> None:
    session = stage(home)
    session.append("user", "Hello.")
    configure(session, text)
    before = logs(session)
    for dry_run in (True, False):
        with pytest.raises(BadConfig, match="max_decay, min_confidence, max_items, max_rounds"):
            stage(home).prepare(protocol=True, dry_run=dry_run)
    assert logs(session) == before
    assert session.prepare(protocol=False).event_id


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_bad_setting_does_not_make_a_reply_look_lost(home: str, elsewhere: bool) -> None:
    session = talking(home)
    reply = reply_to(ask(session), core=[block(), block("dim", BOAT, decay=0.9)])
    configure(session, "[tiers.core]\nmax_decay = 7\n")
    taker = stage(home) if elsewhere else session
    assert taker.accept(reply).text == "Yes."
    assert len(taken_in(taker)) == 1
    with pytest.raises(BadConfig):
        ask(stage(home))
    configure(session, "")
    again = stage(home)
    assert [one.content for one in again.tiers.core] == [ADA]
    assert again.tiers.dropped == {"threshold_decay": 1}


# What was wrong


@pytest.mark.requirement("S0-R6")
@pytest.mark.parametrize(
    "noise", ["\n---\n", " JSON: ", "\n> ", "=", "\n**Context**\n", "\nHere is the context:\n", "json"]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_snapshot_after_noise_is_not_shown_and_the_noise_is_reported(home: str, noise: str, streamed: bool) -> None:
    session = talking(home)
    reply = reply_to(ask(session), core=[block()]).replace(SEPARATOR, SEPARATOR + noise) + "\n---"
    if streamed:
        shown = "".join(session.stream([reply[at : at + 3] for at in range(0, len(reply), 3)]))
        assert shown == "Yes."
    else:
        assert session.accept(reply).text == "Yes."
    assert session.tail(1)[0].text == "Yes."
    assert [one.content for one in session.tiers.core] == [ADA]
    assert "S0-R6" in session.tiers.violation_counts


def test_the_tiers_tell_what_was_wrong_with_the_newest_reply(home: str) -> None:
    session = talking(home)
    assert session.tiers.violations == ()
    ask(session)
    session.accept("Just words.")
    [told] = session.tiers.violations
    assert told == {"rule": "S0-R1", "problem": "the reply has no context section", "where": "", "level": "must"}
    assert stage(home).tiers.violations == (told,)
    exchange(session, core=[block(), 5])
    assert [(one["rule"], one["where"]) for one in session.tiers.violations] == [("S0-R10", "memory.core[1]")]
    exchange(session, core=[block()])
    assert session.tiers.violations == ()
    assert session.tiers.violation_counts == {"S0-R1": 1, "S0-R10": 1}


def test_a_block_to_go_is_deleted_whatever_else_it_lacks_and_that_is_told(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("a"), block("b", BOAT), block("c", "The bay is deep.")])
    gone: list[Any] = [{"id": "a", "decay": 1}, {"id": "b", "confidence": 0}, {"id": "c", "decay": 0.99}]
    exchange(session, core=gone)
    seen = session.tiers
    assert [one.id for one in seen.core] == ["c"]
    assert seen.dropped == {"invalid_block": 1}
    told = {(one["where"], one["rule"]) for one in seen.violations}
    assert {("memory.core[0].content", "S0-R10.7"), ("memory.core[1].decay", "S0-R10.3")} <= told
    assert {where for where, rule in told if rule == "S0-R10"} == {"memory.core[2]"}


def test_an_id_spelled_otherwise_is_deleted_and_updated_all_the_same(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("core 001"), block("core 002", BOAT)])
    exchange(session, core=[{"id": "core\u200b \n001", "decay": 1}, block("core\t002", "The boat is blue.")])
    assert [(one.id, one.content) for one in session.tiers.core] == [("core 002", "The boat is blue.")]


# A reply that was streamed


def streamed(whole: str, expected: Any = None) -> Reply:
    splitter = Splitter(expected=expected)
    shown = "".join(splitter.read(whole[at : at + 7] for at in range(0, len(whole), 7)))
    assert splitter.reply
    assert shown == splitter.reply.text
    return splitter.reply


@pytest.mark.parametrize("how", [streamed, parse])
@pytest.mark.parametrize("behind", ["", "\nAfter."])
def test_a_reply_that_was_taken_apart_already_is_stored_whole(home: str, how: Any, behind: str) -> None:
    session = talking(home)
    turn = ask(session)
    whole = reply_to(turn, WORDS, core=[block()]) + behind
    reply = how(whole, expected=turn.expected)
    assert reply.whole == whole
    message = session.accept(reply, usage={"input_tokens": 5, "output_tokens": 3})
    kept = kept_of(message)
    assert message.text == WORDS + behind
    assert f"{message.text[: kept['at']]}{kept['text']}{message.text[kept['at'] :]}" == whole
    assert [one.content for one in session.tiers.core] == [ADA]
    assert bool(session.tiers.violation_counts) is bool(behind)
    assert [event.data["input_tokens"] for event in session.events() if event.type == "context.usage"] == [5]


def test_a_streamed_reply_without_a_section_is_stored_and_told(home: str) -> None:
    session = talking(home)
    ask(session)
    assert session.accept(streamed(WORDS)).text == WORDS
    assert session.tiers.violation_counts == {"S0-R1": 1}
    plain = stage(home, "plain")
    ask(plain)
    message = plain.accept(streamed("Yes.<<<CONTEXT>>>{}"))
    assert (message.content, message.meta) == ("Yes.<<<CONTEXT>>>{}", None)


# Secrets


def leaky(session: Session) -> None:
    """A round whose reply holds a secret wherever a model can put one."""
    bad: list[Any] = [
        block(content=f"The token is {SECRET}."),
        block("typed", BOAT, type=SECRET, tags=[SECRET]),
        block("across", "x" * 495 + " " + SECRET),
        block(f"x {SECRET}", "The bay is deep."),
        block("dim", SECRET, decay=0.9),
        SECRET,
        {"id": SECRET, "type": SECRET, "decay": SECRET},
    ]
    others: dict[str, Any] = {SECRET: 1, "capabilities": [{"name": SECRET, "scope": SECRET}]}
    exchange(session, "Yes.", core=bad, working=bad, active_task="x" * 495 + " " + SECRET, **others)


def test_the_tiers_of_a_session_are_redacted_when_redaction_is_on(home: str) -> None:
    session = talking(home)
    leaky(session)
    for seen in (session.tiers, stage(home).tiers):
        assert SECRET[:12] not in repr(seen)
        assert MARKER in repr(seen)
    assert SECRET in repr(stage(home, redaction="off").tiers)


def test_a_secret_behind_much_that_cannot_be_seen_is_taken_out_too(home: str) -> None:
    session = talking(home)
    for pad in ("\u200b" * (8192 - 36), " " * (8192 - 36), "\u200b" * 9000):
        hidden = pad + SECRET
        exchange(session, core=[block(type=hidden, tags=[hidden])], active_task=hidden)
        assert SECRET[:12] not in repr(session.tiers)
