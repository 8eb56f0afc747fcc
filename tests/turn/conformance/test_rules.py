"""The rules: a good document keeps each of them, and a broken one breaks the one it should."""

import json
from collections import Counter

import pytest
from turn.conformance.broken import BROKEN, Broken
from turn.conformance.documents import good, seal

from daypack.turn.conformance.report import Report, conform
from daypack.turn.conformance.rules.rulebook import RULES


def report(document: object) -> Report:
    return conform(json.dumps(document))


def test_every_rule_applies_to_the_good_document_and_none_is_broken() -> None:
    found = report(good())
    assert {verdict.rule: verdict.outcome for verdict in found.verdicts} == {rule.id: "passed" for rule in RULES}
    assert found.warnings == ()
    assert found.conforms


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_document_breaks_exactly_the_rule_it_should(broken: Broken) -> None:
    found = report(broken.document())
    [verdict] = [verdict for verdict in found.verdicts if verdict.outcome == "failed"]
    assert verdict.rule == broken.rule
    assert verdict.failures
    for failure in verdict.failures:
        assert failure.path.startswith("$")
        assert failure.problem


def test_every_rule_is_broken_by_one_of_at_least_forty_documents() -> None:
    assert {broken.rule for broken in BROKEN} == {rule.id for rule in RULES}
    assert len(BROKEN) >= 40
    assert max(Counter(broken.name for broken in BROKEN).values()) == 1


def test_the_ids_of_rules_are_groups_and_words() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.id.count(".") == 1 and rule.sentence.endswith(".") for rule in RULES)


def judged(time: str) -> tuple[str, ...]:
    document = good()
    document["missing_contexts"][0]["created_at"] = time
    return report(seal(document)).failed


@pytest.mark.parametrize(
    "time",
    [
        "2027-01-01t00:00:00z",
        "2027-01-01 00:00:00.123456789+05:30",
        "2026-12-31T23:59:60Z",
        "2027-01-01T00:00:00.1-00:00",
    ],
)
def test_every_form_of_a_time_that_rfc_3339_has_is_accepted(time: str) -> None:
    assert judged(time) == ()


@pytest.mark.parametrize(
    "time",
    [
        "2027-W01-1T12:00:00Z",
        "20270101T120000+0000",
        "2027-01-01T12:00+00:00",
        "2027-01-01T12:00:00,5Z",
        "2027-01-01T12:00:00+00",
        "2027-01-01T12:00:00+0530",
        "2027-01-01T12:00:00+00:00:30",
        "2027-01-01x12:00:00Z",
        "2027-01-01T00:00:00.Z",
        "2027-02-30T00:00:00Z",
        "2027-01-01T00:00:00Z\n",
        "٢٠٢٧-01-01T12:00:00Z",
    ],
)
def test_forms_of_iso_8601_that_rfc_3339_lacks_are_no_times(time: str) -> None:
    assert judged(time) == ("schema.time",)
