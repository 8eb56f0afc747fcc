"""The standing rules of a session: found in messages, added, dropped, pinned; and the item of the prefix with them."""

from copy import deepcopy

from msgspec import to_builtins
from msgspec.structs import replace

from daypack.derived.rules.book import ADDED, BY_HAND, DROPPED, FOUND, PINNED, Finding, RuleBook, in_force
from daypack.errors import BadInput, SourceMissing
from daypack.history.draft import draft_event
from daypack.history.session import History
from daypack.text.redact.redact import redact
from daypack.turn.items import RULES, Item, Omission, TokenMeter, message_range
from daypack.turn.ledger import Ledger
from daypack.turn.pack.fence import measurer
from daypack.turn.policy import MAX_INLINE_RULE_BYTES, MAX_RULE_TOKENS, RULE_SHARE
from daypack.turn.surface import Epoch, Request, Surface
from daypack.types.records import Rule

_TITLE = "standing rules of the user, in the order given; a later rule wins over an earlier one on the same matter"
_ORDER, _PRIORITY = 45, 0.985


class StandingRules:
    """The rules of one session. What was found is recorded when an epoch begins; looking records nothing."""

    def __init__(self, history: History, ledger: Ledger, *, redacting: bool) -> None:
        self._history = history
        self._ledger = ledger
        self.redacting = redacting
        self._examined: RuleBook | None = None  # the recorded book and what was found after it
        self._recorded: RuleBook | None = None  # the book that it was made from
        self._found: Finding | None = None
        self._erased = 0  # the newest erasure before it was found

    def examine(self, through: int, *, recording: bool) -> RuleBook:
        """Return the book with the rules of the messages up to `through`; `recording` appends what is new.

        After a long import only the newest part is examined: `examine_rest` examines the others.
        """
        ledger = self._ledger.read()
        recorded, known = ledger.rules, (ledger.rules, ledger.erased)
        if recorded.through >= through:
            return recorded
        if self._examined is None or (self._recorded, self._erased) != known or self._examined.through != through:
            from daypack.derived.rules.examination import examine  # noqa: PLC0415 — only when messages leave the window

            self._recorded, self._examined, self._erased = deepcopy(recorded), deepcopy(recorded), ledger.erased
            messages = (recorded.through + 1, through)
            self._found = examine(
                self._history, self._examined, messages, MAX_INLINE_RULE_BYTES, redacting=self.redacting
            )
        if not recording or self._found is None:
            return self._examined
        if not self._record(self._found, self._erased):
            return self.examine(through, recording=True)
        return self._ledger.read().rules

    def examine_rest(self) -> None:
        """Examine the messages that turns left unread, newest first, and record what is found."""
        from daypack.derived.rules.examination import examine  # noqa: PLC0415

        while (recorded := (ledger := self._ledger.read()).rules).since > 1:
            erased = ledger.erased
            book, messages = deepcopy(recorded), (1, recorded.since - 1)
            found = examine(self._history, book, messages, MAX_INLINE_RULE_BYTES, redacting=self.redacting)
            self._record(found, erased)

    def _record(self, found: Finding, erased: int) -> bool:
        """Record what was found; not if something was erased since then: it may hold that."""

        def append() -> bool:
            if self._ledger.read().erased != erased:
                return False
            self._history.append_event(draft_event(FOUND, to_builtins(found)))
            return True

        return self._history.locked(append)

    @property
    def unread(self) -> int:
        """The last message that a turn left unread; 0 if there is none."""
        return self._ledger.read().rules.since - 1

    def read(self) -> tuple[Rule, ...]:
        """Return the rules in force, also those of messages that are still in the window."""
        book = self.examine(self._history.messages.reader.newest().seq, recording=False)
        return tuple(map(self._shown, in_force(book)))

    def add(self, text: str) -> Rule:
        """Add a rule; it counts from the next turn on."""
        from daypack.derived.rules.supersession import superseded_by  # noqa: PLC0415 — few rules are added by hand

        text = redact(text.strip()).text if self.redacting else text.strip()
        if not text:
            raise BadInput("the rule is empty", operation="add rule", place="text", hint="pass the rule as a text")

        def append() -> Rule:
            newest = self._history.messages.reader.newest().seq
            book = self.examine(newest, recording=False)
            number = 1 + sum(rule.source == BY_HAND for rule in book.rules.values())
            rule = Rule(id=f"rule-a{number}", text=text, source=BY_HAND, position=newest)
            superseded = dict.fromkeys(superseded_by(rule, in_force(book)), rule.id)
            self._history.append_event(draft_event(ADDED, {"rule": to_builtins(rule), "superseded": superseded}))
            return rule

        return self._shown(self._history.locked(append))

    def drop(self, rule_id: str) -> Rule:
        """Drop a rule; recognition does not bring it back."""
        rule = self._find(rule_id, "drop rule")
        self._history.append_event(draft_event(DROPPED, {"id": rule_id}))
        return rule

    def pin(self, rule_id: str, *, on: bool = True) -> Rule:
        """Pin a rule: it is never superseded and never cut by the cap. `on` false unpins it."""
        rule = self._find(rule_id, "pin rule")
        self._history.append_event(draft_event(PINNED, {"id": rule_id, "on": on}))
        return rule

    def _find(self, rule_id: str, operation: str) -> Rule:
        rules = self.read()
        for rule in rules:
            if rule.id == rule_id:
                return rule
        known = ", ".join(rule.id for rule in rules)
        raise SourceMissing(
            f"no rule {rule_id} is in force",
            operation=operation,
            place=self._history.layout.name,
            hint=f"there are {known}" if known else "there are no rules",
        )

    def _shown(self, rule: Rule) -> Rule:
        return (
            Rule(rule.id, redact(rule.text).text, rule.source, rule.position, rule.pinned) if self.redacting else rule
        )


def epoch_rules(book: RuleBook, request: Request, epoch: Epoch | None, meter: TokenMeter) -> list[Item | Omission]:
    """Return the rules that an epoch shows, without those dropped and with those added since it began."""
    shown = next((item for item in epoch.prefix if item.id == RULES), None) if epoch else None
    before = shown.metadata["before"] if shown else epoch.start if epoch else 0
    return rule_items(book, before, request.limits.room_beside(request.tools).tokens, meter)


def with_rules(rules: StandingRules, surface: Surface, start: int, meter: TokenMeter, *, recording: bool) -> Surface:
    """Return the surface of a new epoch with the rules given before its tail; the same surface if it has them."""
    shown = next((item for item in surface.prefix if item.id == RULES), None)
    before = max(start, shown.metadata["before"] if shown else 0)
    book = rules.examine(surface.last, recording=recording)
    found = rule_items(book, before, surface.limits.room_beside(surface.tools).tokens, meter)
    measure = measurer(meter, redacting=rules.redacting)
    items = [measure(thing) for thing in found if isinstance(thing, Item)]
    others = [omission for omission in surface.omitted if not omission.item.startswith(f"{RULES}:")]
    omitted = (*others, *(thing for thing in found if isinstance(thing, Omission)))
    if [item.digest for item in items] == ([shown.digest] if shown else []) and omitted == surface.omitted:
        return surface
    prefix = (*(item for item in surface.prefix if item.id != RULES), *items)
    return replace(surface, prefix=prefix, omitted=omitted)


def rule_items(book: RuleBook, before: int, room_tokens: int, meter: TokenMeter) -> list[Item | Omission]:
    """Return the item with the rules given before a message or added by hand, and a record of those beyond the cap."""
    found: list[Item | Omission] = []
    if book.since > 1 and before > 1:
        note = "not examined for standing rules yet"
        found.append(Omission(item=f"{RULES}:{message_range(1, book.since - 1)}", reason="custom", note=note))
    rules = [rule for rule in in_force(book) if rule.position < before or rule.source == BY_HAND]
    if not rules:
        return found
    kept, cut = _within_cap(rules, min(MAX_RULE_TOKENS, int(room_tokens * RULE_SHARE)), meter)
    found.append(
        Item(
            id=RULES,
            kind="system",
            context_kind="policy_note",
            source="rules",
            text="\n".join(f"- {rule.text}" for rule in kept),
            title=_TITLE,
            authority="user",
            placement="prefix",
            order=_ORDER,
            priority=_PRIORITY,
            metadata={"before": before, "ids": [rule.id for rule in kept]},
        )
    )
    if cut:
        note = f"{len(cut)} older rules beyond the cap: {cut[0].id} to {cut[-1].id}; pin those that must stay"
        tokens = sum(meter.tokens(rule.text) for rule in cut)
        found.append(Omission(item=f"{RULES}:older", reason="budget_limit", tokens=tokens, note=note, high_impact=True))
    return found


def _within_cap(rules: list[Rule], most: int, meter: TokenMeter) -> tuple[list[Rule], list[Rule]]:
    """Return the rules that fit, the newest first chosen, and the others; a pinned rule is never cut."""
    costs = {rule.id: meter.tokens(f"- {rule.text}\n") for rule in rules}
    left = most - sum(costs[rule.id] for rule in rules if rule.pinned)
    kept: set[str] = {rule.id for rule in rules if rule.pinned}
    for rule in reversed(rules):
        if rule.id in kept:
            continue
        left -= costs[rule.id]
        if left < 0:
            break
        kept.add(rule.id)
    return [rule for rule in rules if rule.id in kept], [rule for rule in rules if rule.id not in kept]
