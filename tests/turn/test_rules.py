"""Standing rules survive: they are shown in the prefix once their messages left the window."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turn.scenes import MARKER, SECRET, logs, sent, stage

from daypack.errors import BadInput, SourceMissing
from daypack.session import Session
from daypack.turn.turn import Turn
from daypack.upkeep.rebuild import rebuild

RULE = "From now on, always answer in Welsh, because my readers are in Cardiff."
OTHER = "Never use the word delve."
FILLER = "The tide was high at noon and the boats lay in the harbour. "


def fill(session: Session, messages: int, *, words: int = 6) -> None:
    for _ in range(messages // 2):
        session.append("user", "What about the next boat? " + FILLER * words)
        session.append("assistant", "It is ready. " + FILLER * words)


def shown(turn: Turn) -> str:
    return next((item.text for item in turn.parts.epoch.prefix if item.id == "rules"), "")


def long_session(home: str, *, before: int = 0, name: str = "work") -> Session:
    """190 messages, with a rule after `before` of them."""
    session = stage(home, name)
    fill(session, before)
    session.append("user", RULE)
    session.append("assistant", "Iawn.")
    fill(session, 188 - before)
    session.append("user", "And now?")
    return session


@pytest.mark.parametrize("budget", [8_000, 16_000, 32_000])
@pytest.mark.parametrize("before", [0, 90, 180])
def test_a_rule_is_in_the_pack_wherever_it_was_given(home: str, budget: int, before: int) -> None:
    session = long_session(home, before=before)
    turn = session.prepare(budget=budget)
    assert RULE in sent(turn)
    session.replay(session.turns.newest())


def test_rules_are_shown_in_the_order_given_and_not_while_they_are_in_the_tail(home: str) -> None:
    session = stage(home)
    session.append("user", RULE)
    session.append("assistant", "Iawn.")
    assert not shown(session.prepare(budget=8_000))
    session.append("user", OTHER)
    fill(session, 120)
    session.append("user", "Call me Captain.")
    assert shown(session.prepare(budget=8_000)) == f"- {RULE}\n- {OTHER}"
    assert [rule.source for rule in session.rules()] == ["messages:1", "messages:3", "messages:124"]


def test_a_later_rule_supersedes_and_a_pinned_one_stays(home: str) -> None:
    session = long_session(home)
    session.append("user", "Please answer in German.")
    fill(session, 60)
    session.append("user", "And now?")
    assert shown(session.prepare(budget=8_000)) == "- Please answer in German."
    session.pin_rule("rule-192")
    session.append("user", "Please answer in French.")
    fill(session, 60)
    session.append("user", "And now?")
    session.refresh()
    assert shown(session.prepare(budget=8_000)) == "- Please answer in German.\n- Please answer in French."


def test_a_rule_that_is_added_or_dropped_counts_at_once(home: str) -> None:
    session = long_session(home)
    assert shown(session.prepare(budget=8_000)) == f"- {RULE}"
    added = session.add_rule("Use tabs, not spaces.")
    turn = session.prepare(budget=8_000)
    assert not turn.new_epoch
    assert "Use tabs, not spaces." in sent(turn)
    session.drop_rule("rule-1")
    assert [rule.id for rule in session.rules()] == [added.id]
    session.refresh()
    assert shown(session.prepare(budget=8_000)) == "- Use tabs, not spaces."
    fill(session, 60)
    session.append("user", "And now?")
    assert RULE not in shown(session.prepare(budget=8_000))
    session.drop_rule(added.id)
    session.refresh()
    assert not shown(session.prepare(budget=8_000))


def test_a_rule_can_be_added_to_a_short_session(home: str) -> None:
    session = stage(home)
    session.append("user", "Hello.")
    session.add_rule(OTHER)
    assert shown(session.prepare(budget=8_000)) == f"- {OTHER}"


def test_a_rule_that_was_dropped_supersedes_nothing(home: str) -> None:
    session = stage(home)
    session.append("user", "Answer in Spanish.")
    session.add_rule("Answer in German.")
    session.drop_rule("rule-a1")
    assert [rule.text for rule in session.rules()] == ["Answer in Spanish."]


def test_unknown_and_empty_rules_are_refused(home: str) -> None:
    session = stage(home)
    session.append("user", OTHER)
    with pytest.raises(SourceMissing, match="no rule rule-9 is in force"):
        session.drop_rule("rule-9")
    with pytest.raises(BadInput, match="the rule is empty"):
        session.add_rule("  ")


@pytest.mark.requirement("G9")
def test_rules_beyond_the_cap_are_recorded_as_omitted_and_pinned_ones_stay(home: str) -> None:
    session = stage(home)
    for number in range(120):
        session.append("user", f"Always label crate {number} with the colour of ship {number * 7}.")
        session.append("assistant", "Noted.")
    fill(session, 40)
    session.append("user", "And now?")
    session.pin_rule("rule-1")
    turn = session.prepare(budget=8_000)
    text = shown(turn)
    assert text.startswith("- Always label crate 0 with")
    assert "crate 119 " in text
    assert "crate 2 " not in text
    omission = next(omission for omission in turn.record.omitted if omission.item == "rules:older")
    assert omission.reason == "budget_limit"
    assert omission.high_impact
    assert turn.record.used.tokens <= turn.record.limits.room.tokens


@pytest.mark.requirement("X43")
def test_looking_records_nothing_and_shows_the_same(home: str) -> None:
    session = long_session(home)
    before = logs(session)
    session.rules()
    looked = shown(session.prepare(budget=8_000, dry_run=True))
    assert logs(session) == before
    assert shown(session.prepare(budget=8_000)) == looked == f"- {RULE}"


def test_a_secret_in_a_rule_is_redacted(home: str) -> None:
    session = stage(home)
    session.append("user", f"Always use the token {SECRET} for pushes.")
    fill(session, 100)
    session.append("user", "And now?")
    session.add_rule(f"Never print {SECRET}.")
    turn = session.prepare(budget=8_000)
    assert MARKER in shown(turn)
    assert SECRET not in sent(turn) + repr(session.rules())
    assert SECRET.encode() not in logs(session)[1]


@pytest.mark.requirement("T1")
def test_rules_are_the_same_after_a_rebuild_and_every_turn_replays(home: str) -> None:
    session = long_session(home)
    session.add_rule(OTHER)
    session.prepare(budget=8_000)
    rules, events = session.rules(), [event.id for event in session.events() if event.type == "context.turn"]
    for file in session.path.joinpath("context").glob("*.json"):
        file.unlink()
    again = stage(home)
    rebuild(again.history, again.turns)
    assert again.rules() == rules
    for event in events:
        again.replay(event)


def test_a_second_process_that_examined_the_same_messages_adds_nothing(home: str) -> None:
    first = long_session(home)
    second = stage(home)
    first.prepare(budget=8_000)
    finding = next(event for event in first.events() if event.type == "rules.found")
    second.append_event(finding.type, finding.data)
    assert [rule.text for rule in second.rules()] == [RULE]
    assert [rule.text for rule in first.rules()] == [RULE]


def test_only_new_messages_are_examined(home: str) -> None:
    session = long_session(home)
    session.prepare(budget=8_000)
    fill(session, 60)
    session.append("user", "And now?")
    session.prepare(budget=8_000)
    ranges = [(event.data["first"], event.data["through"]) for event in session.events() if event.type == "rules.found"]
    assert ranges[0][0] == 1
    assert [first for first, _ in ranges[1:]] == [through + 1 for _, through in ranges[:-1]]


def test_after_a_long_import_older_messages_are_examined_after_the_turn(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daypack.turn.survey.rules.MAX_INLINE_RULE_BYTES", 20_000)
    session = long_session(home)
    started: list[str] = []
    session.turns.compactions.start = started.append
    turn = session.prepare(budget=8_000)
    assert not shown(turn)
    [unread] = [omission for omission in turn.record.omitted if omission.item.startswith("rules:messages:1-")]
    assert unread.note == "not examined for standing rules yet"
    assert started == ["none"]
    session.turns.compactions.compact_unread()
    assert RULE in sent(session.prepare(budget=8_000))
    assert [rule.text for rule in session.rules()] == [RULE]
    session.refresh()
    turn = session.prepare(budget=8_000)
    assert shown(turn) == f"- {RULE}"
    assert not [omission for omission in turn.record.omitted if omission.item.startswith("rules:")]


def test_a_plain_session_does_not_import_the_recognition(home: str) -> None:
    code = (
        "import sys, daypack\n"
        f"session = daypack.open_session('s', home={home!r}, durability='os')\n"
        "session.append('user', 'Always be brief.')\n"
        "session.prepare(budget=8000)\n"
        "assert not [name for name in sys.modules if name.startswith('daypack.derived.rules.re')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


RULES = [
    "Always cite your sources.",
    "Never use sudo.",
    "Call me Captain.",
    "From now on, give all times in UTC.",
    "Keep your answers under 100 words.",
    "No emojis, please.",
]


@settings(max_examples=12, deadline=None)
@given(steps=st.lists(st.sampled_from([*range(len(RULES)), "fill", "drop", "pin", "prepare"]), min_size=4, max_size=14))
def test_a_rule_once_shown_disappears_only_by_a_drop_a_later_rule_or_the_cap(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | str]
) -> None:
    session = stage(str(tmp_path_factory.mktemp("home")))
    session.append("user", "Hello.")
    dropped: set[str] = set()
    seen: set[str] = set()
    for step in [*steps, "fill", "prepare"]:
        if isinstance(step, int):
            session.append("user", RULES[step])
            dropped.discard(RULES[step])
        elif step == "fill":
            fill(session, 40)
            session.append("user", "And now?")
        elif step == "prepare":
            turn = session.prepare(budget=8_000)
            text = sent(turn)
            assert all(rule in text for rule in seen - dropped)
            seen |= {rule for rule in RULES if f"- {rule}" in shown(turn)}
        elif rules := session.rules():
            if step == "pin":
                session.pin_rule(rules[0].id)
            else:
                dropped.add(session.drop_rule(rules[0].id).text)
    for event in session.events():
        if event.type == "context.turn":
            session.replay(event.id)
