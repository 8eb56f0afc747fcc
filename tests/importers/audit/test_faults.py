"""Contradictions, stale dates and dangling pronouns: texts with the fault, and texts that only look like it."""

from datetime import date

import pytest

from daypack.importers.audit.contradictions import find_contradictions
from daypack.importers.audit.pronouns import find_dangling
from daypack.importers.audit.stale_dates import find_stale
from daypack.importers.stores.records import Owner, StoredMemory

TODAY = date(2026, 11, 18)


def remember(*texts: str, dated: bool = True, subject: str = "") -> list[StoredMemory]:
    return [
        StoredMemory(
            id=str(number),
            text=text,
            subject=subject,
            owner=Owner(user="ada"),
            created_at=f"2026-0{number + 1}-10T00:00:00Z" if dated else "",
        )
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Lives in Berlin", "Lives in Hamburg"),
        ("User lives in Berlin", "User moved to Lyon"),
        ("Works at Siemens", "Works at Bosch"),
        ("Likes coffee", "Does not like coffee"),
        ("The deadline is 2026-12-01", "The deadline is 2026-12-15"),
        ("Ada's favourite colour is blue", "Ada's favourite colour is green"),
        ("The database port is 5432", "The database port is 6432"),
        ("User is single", "User is married"),
        ("The API supports streaming", "The API does not support streaming"),
        ("Name is Ada", "Name is Eva"),
        ("User uses MySQL", "User switched from MySQL to Postgres"),
    ],
)
def test_the_older_of_two_memories_that_cannot_both_be_true_is_found(older: str, newer: str) -> None:
    [finding] = find_contradictions(remember(older, newer))
    assert (finding.at, finding.other) == (0, 1)
    assert finding.problem.startswith("a newer memory says")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Likes tea", "Likes coffee"),
        ("Has a dog named Rex", "Has a cat named Tom"),
        ("Visited Paris", "Visited Rome"),
        ("Ada lives in Berlin", "Ben lives in Hamburg"),
        ("The staging port is 5432", "The production port is 5433"),
        ("Ran 5 km on Monday", "Ran 7 km on Tuesday"),
        ("Did not go to the gym", "Went to the gym"),
        ("Likes coffee in the morning", "Does not like coffee in the evening"),
        ("Speaks German", "Speaks French"),
        ("The meeting with Ben is on Monday", "The meeting with Eve is on Tuesday"),
        ("User plays chess", "User plays chess with Ben"),
        ("User owns a bike", "User owns a car"),
        ("### Step 1: Indexing\n\nIndex the table.", "### Step 1: Gunicorn\n\nSet the workers."),
        ("Draft PR created: https://example.org/pull/185", "Draft PR created: https://example.org/pull/189"),
    ],
)
def test_memories_that_can_both_be_true_do_not_contradict(first: str, second: str) -> None:
    assert find_contradictions(remember(first, second)) == []


def test_a_store_without_dates_does_not_say_which_memory_is_newer() -> None:
    [finding] = find_contradictions(remember("Likes coffee", "Does not like coffee", dated=False))
    assert "does not say which is newer" in finding.problem


@pytest.mark.parametrize(
    "text",
    [
        "Will call the bank tomorrow",
        "Ada is flying to Rome next week",
        "The report is due on 2026-03-01",
        "User plans to move in two weeks",
        "The exam is scheduled for March 3, 2026",
        "Needs to renew the passport by next Friday",
        "Deadline for the paper: 15 April 2026",
        "The licence expires on 2026-06-30",
        "明天要去看医生",
        "The team is going to launch in three days",
        "The parts will arrive in a week",
        "The review is scheduled on May 6, 2026 and will be recorded",
    ],
)
def test_a_plan_whose_day_has_passed_is_stale(text: str) -> None:
    assert find_stale(remember(text), TODAY)
    assert not find_stale(remember(text), date(2026, 1, 10))


@pytest.mark.parametrize(
    "text",
    [
        "Ada was born on 3 March 1990",
        "Usually goes running the next day",
        "The report was due on 2026-03-01",
        "Visited Rome last week",
        "Plans to retire in 2050",
        "The licence expires on 2031-06-30",
        "Said she would call tomorrow",
        "Works in two week sprints",
        "The trip will end in a week from 3 March 2031",
        "Python 3.14 was released on 2025-10-07",
        "Finished the marathon in 4 hours",
        "Never leaves work for tomorrow",
        "Believes tomorrow is another day",
        "There are 365 days in a year, assuming it is no leap year",
        "Landing five interviews in a week is a good start",
        "I replaced two weak sources with articles found on May 6, 2026, and hope that this will strengthen the essay",
        "I updated my headline on July 5, 2026, and it will help me to stand out",
    ],
)
def test_what_happened_or_is_still_to_come_is_not_stale(text: str) -> None:
    assert find_stale(remember(text), TODAY) == []


def test_tomorrow_without_a_date_is_reported() -> None:
    [finding] = find_stale(remember("Will call the bank tomorrow", dated=False), TODAY)
    assert "without a date" in finding.problem


@pytest.mark.parametrize(
    "text",
    [
        "He moved to Lyon",
        "She works at the hospital",
        "They decided to use Postgres",
        "It broke after the upgrade",
        "This was fixed in the last release",
        "His sister lives in Rome",
        "It runs on port 8080",
        "That caused the outage",
        "Their office is in Berlin",
    ],
)
def test_a_pronoun_for_something_that_is_not_named_dangles(text: str) -> None:
    assert find_dangling(remember(text))
    assert not find_dangling(remember(text, subject="Ben"))


@pytest.mark.parametrize(
    "text",
    [
        "It is important to rest",
        "This project uses Ruff",
        "Ada said she is tired",
        "It is raining a lot in Bergen",
        "His name is Ben",
        "That restaurant is closed on Mondays",
        "Theo works at the harbour",
        "It takes two days to ship",
        "Er wohnt in Berlin",
        "Heather likes tea",
        "It is best to deploy on Monday",
        "Itamar runs the shop",
        "It sounds like you had a wonderful time at the lagoon",
        "It looks like the stash had merge conflicts",
        "It makes sense that the probability is 3/4",
    ],
)
def test_a_pronoun_that_is_explained_or_stands_for_nothing_does_not_dangle(text: str) -> None:
    assert find_dangling(remember(text)) == []
