"""The rule book: the fold of the events about standing rules.

{"type":"rules.found","data":{"first":1,"through":188,"rules":[{"id":"rule-5","text":"…","source":"messages:5","position":5}]}}
{"type":"rule.added","data":{"rule":{"id":"rule-a1","text":"…","source":"added","position":40},"superseded":{"rule-5":"rule-a1"}}}
{"type":"rule.dropped","data":{"id":"rule-5"}}
{"type":"rule.pinned","data":{"id":"rule-5","on":true}}

Events hold what was found, so no recognition runs again. A rule can be dropped or pinned before it is recorded.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from daypack.types.records import Rule

FOUND = "rules.found"
ADDED = "rule.added"
DROPPED = "rule.dropped"
PINNED = "rule.pinned"
BY_HAND = "added"  # the source of a rule that no message gave


class RuleBook(Struct, omit_defaults=True):
    """All rules so far, and what became of them."""

    since: int = 1  # the messages that were examined without a gap
    through: int = 0
    rules: dict[str, Rule] = {}
    superseded: dict[str, str] = {}  # id -> id of the later rule
    dropped: list[str] = []
    pinned: list[str] = []


class Finding(Struct, omit_defaults=True):
    """The data of a `rules.found` event."""

    first: int
    through: int
    rules: list[Rule] = []
    superseded: dict[str, str] = {}


class _Added(Struct):
    rule: Rule
    superseded: dict[str, str] = {}


def fold_found(book: RuleBook, data: Mapping[str, Any]) -> None:
    """Take the rules of a range of messages; a second process that examined the same range adds nothing."""
    take_finding(book, convert(data, Finding))


def take_finding(book: RuleBook, finding: Finding) -> None:
    """Take a finding after the messages that were examined, or right before them."""
    if book.through < finding.first <= finding.through:
        book.since = book.since if finding.first == book.through + 1 else finding.first
        book.through = finding.through
    elif finding.through == book.since - 1 and finding.first <= finding.through:
        book.since = finding.first
    else:
        return
    for rule in finding.rules:
        book.rules.setdefault(rule.id, rule)
    book.superseded |= finding.superseded


def fold_added(book: RuleBook, data: Mapping[str, Any]) -> None:
    """Take a rule that was added by hand."""
    added = convert(data, _Added)
    book.rules.setdefault(added.rule.id, added.rule)
    book.superseded |= added.superseded


def fold_dropped(book: RuleBook, data: Mapping[str, Any]) -> None:
    """Remember that a rule was dropped."""
    book.dropped.append(convert(data["id"], str))


def fold_pinned(book: RuleBook, data: Mapping[str, Any]) -> None:
    """Pin a rule, or unpin it."""
    rule = convert(data["id"], str)
    book.pinned = [known for known in book.pinned if known != rule]
    if convert(data["on"], bool):
        book.pinned.append(rule)


def in_force(book: RuleBook) -> list[Rule]:
    """Return the rules that are neither dropped nor superseded, in the order they were given."""
    return sorted(
        (
            replace(rule, pinned=True) if rule.id in book.pinned else rule
            for rule in book.rules.values()
            if rule.id not in book.dropped and not _is_superseded(book, rule.id)
        ),
        key=given_at,
    )


def given_at(rule: Rule) -> tuple[int, bool]:
    """Return when a rule was given: in a message, or after it if it was added by hand."""
    return rule.position, rule.source == BY_HAND


def _is_superseded(book: RuleBook, rule: str) -> bool:
    """Return True if a later rule replaced this one; a dropped rule replaces none."""
    later = book.superseded.get(rule)
    return later is not None and rule not in book.pinned and later not in book.dropped
