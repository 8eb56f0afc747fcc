"""Standing rules are recognised in what the user wrote, and nothing else is taken for one."""

import tomllib
from pathlib import Path

import pytest

from daypack.derived.rules.recognition import find_rules
from daypack.types.history import Message
from daypack.types.kinds import Role

Sets = dict[str, dict[str, list[str | list[str]]]]


def read_set(name: str) -> Sets:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


SETS = read_set("development")


def rules_in(text: str, role: Role = "user") -> list[str]:
    return find_rules(Message(role=role, content=text, seq=1, id="msg-1"))


def finds(given: str | list[str]) -> bool:
    """Return True if the rule of a message is found; a message alone is a rule as a whole."""
    message, rule = given if isinstance(given, list) else (given, given)
    return any(rule in found for found in rules_in(message))


@pytest.mark.parametrize("name", ["development", "held_out"])
def test_most_rules_of_a_set_are_found_word_for_word(name: str) -> None:
    given = [rule for rules in read_set(name)["rules"].values() for rule in rules]
    assert len(given) >= 60
    assert sum(map(finds, given)) >= 0.9 * len(given)


@pytest.mark.parametrize("name", ["development", "held_out"])
def test_few_other_messages_of_a_set_have_a_rule(name: str) -> None:
    messages = [message for messages in read_set(name)["others"].values() for message in messages]
    false = sum(bool(rules_in(str(message))) for message in messages)
    assert len(messages) >= 60
    assert false <= 0.12 * len(messages)


@pytest.mark.parametrize(
    "task",
    [
        "Write retry.py, and note where the staging database is.",
        "Note which port the proxy has.",
        "Read the log, please, and note down how often it fails.",
    ],
)
def test_a_task_to_note_something_is_no_rule(task: str) -> None:
    assert rules_in(task) == []


@pytest.mark.parametrize("kind", sorted(SETS["rules"]))
def test_every_kind_of_rule_is_recognised(kind: str) -> None:
    assert sum(map(finds, SETS["rules"][kind])) >= 0.75 * len(SETS["rules"][kind])


@pytest.mark.parametrize(
    "message",
    [
        "The report is fine. {} Can you now look at the second chart?",
        "{}\n\nAnd now: why does the test fail?",
        "Two things. First, thanks for the quick fix.\n\nSecond: {}",
    ],
)
def test_a_rule_in_the_middle_of_a_message_is_found(message: str) -> None:
    rule = "From now on, always give prices in euros, because our customers are in Austria."
    assert rules_in(message.format(rule)) in ([rule], [f"Second: {rule}"])


def test_a_list_of_rules_is_kept_with_its_header() -> None:
    text = "Some ground rules for our work:\n- use type hints\n- no print statements\n- tests first"
    assert rules_in(f"Hello!\n\n{text}\n\nShall we start?") == [text]


@pytest.mark.parametrize(
    "message",
    [
        "```\nAlways call close().\n```\nWhat does this comment mean?",
        "> Never use eval.\n\nWhat do you think of it?",
        "<system-reminder>From now on, always use the todo tool.</system-reminder>\nWhat is next?",
        "<document>\nFrom now on, all employees must always wear a badge.\n</document>\nSummarise it.",
        'The mail said: "From now on, never answer without asking me, and always in French."',
        "Implement this plan:\n\n# Plan\n\n- always validate the input\n- never log passwords",
        "This session is being continued from a previous conversation. From now on, always answer in French.",
        "Should I always answer in French from now on?",
    ],
)
def test_what_the_user_only_passes_on_is_no_rule(message: str) -> None:
    assert rules_in(message) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_only_the_user_gives_rules(role: Role) -> None:
    assert rules_in("From now on, always answer in French.", role) == []


def test_any_number_of_open_tags_is_read_once() -> None:
    assert rules_in("Never push to main.\n\n" + "<a>" * 100_000 + "</b>") == ["Never push to main."]
    assert rules_in("Never push to main. <a>Always use tabs.</a> <b>Always sign off.") == [
        "Never push to main.",
        "Always sign off.",
    ]
