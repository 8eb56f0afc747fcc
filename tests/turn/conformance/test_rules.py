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


def test_a_version_and_a_field_that_are_unknown_are_warnings() -> None:
    document = good()
    document["schema_version"], document["surfaces"][0]["schema_version"] = "9.9", "8"
    document["selections"][0]["omitted_items"] = document["selections"][0].pop("omitted_item_refs")
    document["budgets"][0]["euros"] = document["missing_contexts"][0]["schema_versions"] = 5
    found = report(seal(document))
    assert found.warnings == (
        "schema_version '9.9' is unknown: $.schema_version",
        "schema_version '8' is unknown: $.surfaces[0].schema_version",
        "field 'omitted_items' of a context_selection is unknown, did you mean omitted_item_refs? $.selections[0]",
    )


def test_problems_name_objects_as_the_specification_does() -> None:
    document = good()
    del document["surfaces"][0]["scope"], document["selections"][0]["omitted_item_refs"][0]["reason"]
    [verdict] = [verdict for verdict in report(seal(document)).verdicts if verdict.rule == "schema.required"]
    assert [failure.problem for failure in verdict.failures] == [
        "context_surface requires scope",
        "omission requires reason",
    ]


def test_data_of_events_that_repeats_nothing_is_free() -> None:
    document = good()
    document["events"][0]["data"] = {"items": ["plain"], "count": 99}
    document["events"][5]["data"] = {"tokens": None}
    document["events"][8]["data"] = {"hash": "sha256:0"}  # the assembly states none
    assert report(seal(document)).failed == ()
