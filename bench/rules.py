"""Standing rules in conversations of 190 messages: first, in the middle and near the end, packed at small budgets."""

import os
import tomllib
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import orjson

from bench import data
from bench.corpora import read_corpora
from bench.histories import Histories
from bench.measure import say
from bench.table import Row, Section

MESSAGES = 190
BUDGETS = (8_000, 16_000, 32_000)
SETS = {"development": 5, "held_out": 1}  # of which every n-th rule is used
_POSITIONS = (0, 94, 179)  # of the rules, in messages
_LEAST_RECALL, _MOST_FALSE = 0.95, 1.0
_OWN_RULE = "Always "  # how BEAM's own instructions begin
_TITLE = "Standing rules (shares, not times)"
_NOTES = (
    f"conversations of {MESSAGES} messages from LoCoMo and BEAM, three rules each: first, in the middle, near the end;",
    "recall: rules of tests/derived/rules/*.toml that the request has word for word; held_out was written after the",
    "recognition and measured once before it was used; false: other sentences listed as rules, per 100 messages",
)


def measure(histories: Histories) -> Section:
    """Pack every conversation at every budget."""
    folder = data.find("locomo")
    if folder is None:
        return Section(_TITLE, (Row("dialogues", ours="skipped"),), (data.ABSENT,))
    rows: list[Row] = []
    for name, step in SETS.items():
        rules = _read_rules(name)[::step]
        say(f"{len(rules)} standing rules of the set {name}")
        groups = [rules[at : at + len(_POSITIONS)] for at in range(0, len(rules), len(_POSITIONS))]
        talks = list(zip(groups, _fillers(os.path.dirname(folder)), strict=False))
        for budget in BUDGETS:
            kept = false = 0
            for number, (group, filler) in enumerate(talks):
                found, wrong = _pack(histories, f"{name}-{budget}-{number}", group, filler, budget)
                kept, false = kept + found, false + wrong
            rows += _rows(f"{name}, {budget // 1000}k", kept / len(rules), 100 * false / (len(talks) * MESSAGES))
    return Section(_TITLE, tuple(rows), _NOTES)


def _rows(name: str, recall: float, false: float) -> tuple[Row, Row]:
    most = f"≤ {_MOST_FALSE:g} per 100"
    return (
        Row(f"{name}: recall", ours=f"{recall:.3f}", target=f"≥ {_LEAST_RECALL}", met=recall >= _LEAST_RECALL),
        Row(f"{name}: false rules", ours=f"{false:.2f} per 100", target=most, met=false <= _MOST_FALSE),
    )


def _pack(histories: Histories, name: str, rules: list[list[str]], filler: list[Any], budget: int) -> tuple[int, int]:
    """Return how many rules the pack of a conversation has, and how many sentences are wrongly listed as rules."""
    messages = list(filler)
    for (text, _), position in zip(rules, _POSITIONS, strict=False):
        messages[position] = {"role": "user", "content": text}
    messages[-1] = {"role": "user", "content": "And what is next?"}
    with histories.open(name, durability="os", workspace="") as session:
        session.append_many(messages)
        sent = orjson.loads(orjson.dumps(session.prepare(budget=budget).messages("openai")))
        listed = session.rules()
    words = "\n".join(str(message.get("content")) for message in sent)
    kept = sum(rule in words for _, rule in rules)
    return kept, sum(not any(rule.text in text for text, _ in rules) for rule in listed)


def _read_rules(name: str) -> list[list[str]]:
    """Return messages with the rule in them."""
    with open(os.path.join("tests", "derived", "rules", f"{name}.toml"), "rb") as file:
        kinds = tomllib.load(file)["rules"].values()
    return [rule if isinstance(rule, list) else [rule, rule] for rules in kinds for rule in rules]


def _fillers(folder: str) -> Iterator[list[Any]]:
    """Yield stretches of dialogues, again from the first when all were used."""
    stretches: list[list[Any]] = []
    for talk in read_corpora(folder):
        first = talk.entries[0].author
        said = [
            {"role": "user" if entry.author in (first, "user") else "assistant", "content": entry.text}
            for entry in talk.entries
            if not entry.text.startswith(_OWN_RULE)
        ]
        stretches += [said[at : at + MESSAGES] for at in range(0, len(said) - MESSAGES, MESSAGES)]
    return islice(cycle(stretches), 10_000)
