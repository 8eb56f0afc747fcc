"""Examine a range of messages: the standing rules that the user gave in it, and those that they replace."""

from daypack.derived.rules.book import Finding, RuleBook, in_force, take_finding
from daypack.derived.rules.recognition import find_rules
from daypack.derived.rules.supersession import repeats, superseded_by
from daypack.history.lines import ROLE_SHIFT
from daypack.history.session import History
from daypack.text.redact.redact import redact
from daypack.types.history import Message
from daypack.types.kinds import ROLES
from daypack.types.records import Rule

_BATCH = 512
_USER_OR_UNKNOWN = (0, ROLES.index("user") + 1)  # the role in the flags of a slot


def examine(history: History, book: RuleBook, through: int, *, redacting: bool) -> Finding:
    """Return the rules of the messages after those that were examined, up to `through`; the book takes them."""
    finding = Finding(first=book.through + 1, through=through)
    new: dict[str, str] = {}
    for message in _user_messages(history, finding.first, through):
        for rule in _rules_of(message, redacting=redacting):
            current = [*in_force(book), *(known for known in finding.rules if known.id not in new)]
            if repeats(rule, current):
                continue
            new |= dict.fromkeys(superseded_by(rule, current), rule.id)
            finding.rules.append(rule)
    finding.superseded = new
    take_finding(book, finding)
    return finding


def _rules_of(message: Message, *, redacting: bool) -> list[Rule]:
    rules: list[Rule] = []
    for text in find_rules(message):
        shown = redact(text).text if redacting else text
        name = f"rule-{message.seq}" + (f".{len(rules) + 1}" if rules else "")
        rules.append(Rule(id=name, text=shown, source=f"messages:{message.seq}", position=message.seq))
    return rules


def _user_messages(history: History, first: int, through: int) -> list[Message]:
    """Return the messages of the user in a range; others are not decoded."""
    reader = history.messages.reader
    at, stop = reader.position(first), reader.position(through + 1)
    found: list[Message] = []
    while at < stop:
        slots = reader.slots(at, min(at + _BATCH, stop))
        found += reader.pick([slot.seq for slot in slots if slot.flags >> ROLE_SHIFT & 7 in _USER_OR_UNKNOWN])
        at += _BATCH
    return [message for message in found if message.role == "user"]
