"""Conformance: the verdict of every rule on a document."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from daypack.turn.conformance.document import read_document
from daypack.turn.conformance.objects import strings
from daypack.turn.conformance.rules.rulebook import RULES, Rule
from daypack.turn.conformance.subject import Finding, Subject, number
from daypack.turn.conformance.vocabulary import unknown_terms

Outcome = Literal["passed", "failed", "not_applicable"]


class Failure(Struct, frozen=True):
    """A place where a rule is broken."""

    path: str
    problem: str


class Verdict(Struct, frozen=True):
    """What one rule says of a document."""

    rule: str
    outcome: Outcome
    checked: int  # how many things it looked at
    failures: tuple[Failure, ...] = ()


class Report(Struct, frozen=True):
    """The verdicts on one document, in the order of the rules."""

    context_id: str
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...] = ()

    @property
    def conforms(self) -> bool:
        """True if no rule is broken."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the rules that are broken."""
        return tuple(verdict.rule for verdict in self.verdicts if verdict.outcome == "failed")

    def count(self, outcome: Outcome) -> int:
        """Return how many rules have that outcome."""
        return sum(verdict.outcome == outcome for verdict in self.verdicts)


def conform(data: bytes | str, place: str = "envelope") -> Report:
    """Check an envelope document of any runtime; raise BadInput if it cannot be read."""
    return judge(Subject(read_document(data, place)))


def judge(subject: Subject) -> Report:
    """Return the verdict of every rule about a document."""
    return Report(
        context_id=str(subject.document["context_id"]),
        verdicts=tuple(_verdict(rule, subject) for rule in RULES),
        warnings=tuple(_warnings(subject)),
    )


def _verdict(rule: Rule, subject: Subject) -> Verdict:
    findings: list[Finding] = list(rule.check(subject))
    failures = tuple(Failure(finding.path, finding.problem) for finding in findings if finding.problem)
    outcome: Outcome = "failed" if failures else "passed" if findings else "not_applicable"
    return Verdict(rule.id, outcome, len(findings), failures)


def _warnings(subject: Subject) -> Iterator[str]:
    yield from unknown_terms(subject)
    yield from subject.verification.unverified
    for budget in subject.records("budgets"):
        used, most = number(budget.value, "actual_ms"), number(budget.value, "max_ms")
        if used is not None and most is not None and used > most:
            yield f"{budget}: took {used:,} ms, the limit is {most:,}"
    listed = frozenset(strings(subject.document, "item_refs"))
    if subject.items and (elsewhere := sorted(listed - subject.items.keys())):
        yield f"{len(elsewhere)} referenced items are not in the document: {', '.join(elsewhere[:5])}"
