"""Every rule that a violation can name has a sentence."""

import re
from pathlib import Path

import pytest

import daypack.protocol
from daypack.errors import BadReply
from daypack.protocol import parse
from daypack.protocol.rule_texts import RULES, describe_rules
from daypack.protocol.rules import _NUMBERS  # pyright: ignore[reportPrivateUsage] — ids that are put together


def test_every_rule_that_the_protocol_reports_has_a_sentence() -> None:
    folder = Path(daypack.protocol.__file__).parent
    named = {
        rule
        for path in folder.glob("*.py")
        if path.name != "rule_texts.py"
        for rule in re.findall(r'"(S0-[A-Z]\d+(?:\.\d+)?)"', path.read_text(encoding="utf-8"))
    }
    assert named | set(_NUMBERS.values()) == set(RULES)


def test_a_refused_reply_names_rules_with_their_sentences() -> None:
    with pytest.raises(BadReply, match=r"it breaks S0-R1 \(a reply ends with a <<<CONTEXT>>> section\): the reply has"):
        parse("Hello.", strict=True)


def test_an_unknown_rule_is_only_named() -> None:
    assert describe_rules(["S0-X9", "S0-X9"]) == "S0-X9"
