"""Examine a range of messages: the standing rules that the user gave in it, and those that they replace."""

from daypack.derived.rules.book import Finding, RuleBook, given_at, in_force, take_finding
from daypack.derived.rules.recognition import find_rules
from daypack.derived.rules.supersession import repeats, superseded_by
from daypack.history.logs.lines import ROLE_SHIFT
from daypack.history.session import History
from daypack.text.redact.redact import redact
from daypack.types.history import Message
from daypack.types.kinds import ROLES
from daypack.types.records import Rule

_BATCH = 512  # slots that are read in one go
_USER_OR_UNKNOWN = (0, ROLES.index("user") + 1)  # the role in the flags of a slot


def examine(history: History, book: RuleBook, messages: tuple[int, int], max_bytes: int, *, redacting: bool) -> Finding:
    """Return the rules of a range of messages, of the newest `max_bytes` of the user; the book takes them."""
    first, through = messages
    seqs, first = _user_seqs(history, first, through, max_bytes)
    finding = Finding(first=first, through=through)
    superseded: dict[str, str] = {}
    for message in history.messages.reader.pick(seqs):
        for rule in _rules_of(message, redacting=redacting) if message.role == "user" else ():
            others = [known for known in (*in_force(book), *finding.rules) if known.id not in superseded]
            if repeats(rule, others):
                continue
            superseded |= dict.fromkeys(superseded_by(rule, others), rule.id)
            # The book may have rules that were given later.
            given = given_at(rule)
            later = [known for known in others if given_at(known) > given and superseded_by(known, [rule])]
            if later:
                superseded[rule.id] = later[0].id
            finding.rules.append(rule)
    finding.superseded = superseded
    take_finding(book, finding)
    return finding


def _rules_of(message: Message, *, redacting: bool) -> list[Rule]:
    rules: list[Rule] = []
    for text in find_rules(message):
        shown = redact(text).text if redacting else text
        name = f"rule-{message.seq}" + (f".{len(rules) + 1}" if rules else "")
        rules.append(Rule(id=name, text=shown, source=f"messages:{message.seq}", position=message.seq))
    return rules


def _user_seqs(history: History, first: int, through: int, max_bytes: int) -> tuple[list[int], int]:
    """Return the newest messages of the user in a range, oldest first, and where they begin; nothing is decoded."""
    reader = history.messages.reader
    start, stop = reader.position(first), reader.position(through + 1)
    seqs: list[int] = []
    while start < stop:
        at = max(start, stop - _BATCH)
        for slot in reversed(reader.slots(at, stop)):
            if slot.flags >> ROLE_SHIFT & 7 in _USER_OR_UNKNOWN:
                max_bytes -= slot.length
                if max_bytes < 0 and seqs:
                    return seqs[::-1], slot.seq + 1
                seqs.append(slot.seq)
        stop = at
    return seqs[::-1], first
