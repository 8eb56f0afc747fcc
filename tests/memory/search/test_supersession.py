"""Statements that a later entry supersedes: pairs, and pairs that only look like it."""

import pytest

from daypack.memory.search.supersession import find_superseded, mark_superseded
from daypack.memory.tools import Memories
from daypack.types.memory import Entry, Hit

PAIRS = [
    ("I live in Paris.", "I moved to Lyon last spring."),
    ("I live in Paris.", "I'm now living in Lyon."),
    ("I'm based in Oslo.", "By the way, I have just moved to Bergen!"),
    ("I work at Initech.", "I started working at Globex in May."),
    ("Tessa lives in Turin.", "Tessa moved to Milan."),
    ("The staging port is 5432.", "The staging port is 5433 now."),
    ("The staging port is 5432.", "staging port: 5433"),
    ("port = 5432", "port = 5433"),
    ("The server listens on 8080.", "The server listens on 9090 now."),
    ("Our deadline is 3 June.", "The team is fine. Our deadline moved to 10 June."),
    ("Our deadline is 3 June.", "Our deadline has been postponed to 10 June."),
    ("The launch is on 2025-08-03.", "The launch was moved from 2025-08-03 to 2025-08-17."),
    ("The standup is at 9:30.", "We moved the standup to 10:15."),
    ("The standup is on Monday.", "The standup is on Tuesday now."),
    ("The budget is $500.", "The budget was raised to $800."),
    ("The retry limit is 3.", "I set the retry limit to 7."),
    ("The timeout is 30 seconds.", "The timeout is 60 seconds."),
    ("My favourite colour is blue.", "My favourite colour is green."),
    ("My favourite film is Alien.", "My favourite film is Heat now."),
    ("My email is sam@old.example.", "My email is sam@new.example."),
    ("My phone number is 5551234.", "Update: my phone number is 5559876."),
    ("The config file is at /etc/app.toml.", "The config file moved to /etc/app/main.toml."),
    ("The current version is 1.4.2.", "The current version is 1.5.0."),
    ("The build is failing.", "The build is passing."),
    ("The ticket is open.", "The ticket is closed now."),
    ("The nightly job is disabled.", "The nightly job is enabled now."),
    ("Our manager is Ingrid.", "Our manager is Tessa."),
    ("We use MySQL.", "We switched from MySQL to PostgreSQL."),
    ("I use Vim for everything.", "I no longer use Vim."),
    ("We run Jenkins for our builds.", "We use Buildkite instead of Jenkins."),
    ("The staging port is 5432, and the host is blue.", "The staging port is 5433 now, because 5432 was taken."),
    ("I live in Paris.", "I moved to Lyon, so send the parcel there."),
    ("The project owner is Ingrid.", "Correction: the project owner is Tessa."),
]
OTHERS = [
    ("I live in Paris.", "I work in Lyon."),
    ("I live in Paris.", "Would it help if I moved to Lyon?"),
    ("I live in Paris.", "I want to move to Lyon."),
    ("I live in Paris.", "I might move to Lyon."),
    ("I live in Paris.", "Tessa moved to Lyon."),
    ("I live in Paris.", "We moved to Kubernetes."),
    ("I live in Paris.", "I still live in Paris."),
    ("Tessa lives in Turin.", "Tessa works at Initech."),
    ("I went to Paris.", "I went to Lyon."),
    ("I work at Initech.", "I live in Lyon."),
    ("The staging port is 5432.", "The production port is 5433."),
    ("The staging port is 5432.", "The staging host is 5433."),
    ("The staging port is 5432.", "The staging port is 5432."),
    ("The staging port is 5432.", "Is the staging port 5433?"),
    ("The staging port is 5432.", "If the staging port is 5433, the test fails."),
    ("The staging port is 5432.", "The staging port is blocked."),
    ("The staging port is 5432.", "The staging port is not 5433."),
    ("The standup is at 9:30.", "The standup is on Monday."),
    ("The standup on Monday is at 9:30.", "The standup on Friday is at 10:15."),
    ("The standup is short.", "The standup is long."),
    ("The timeout is 30 seconds.", "The timeout is 2 retries."),
    ("My sister is Anna.", "My sister is Berta."),
    ("My friend is in Rome.", "My friend is in Oslo."),
    ("My favourite colour is Blue.", "My favourite band is Blur."),
    ("The build is failing.", "The build is slow."),
    ("The ticket is open.", "The shop is closed."),
    ("The ticket is open.", "The ticket should be closed."),
    ("We use MySQL.", "We use Redis."),
    ("We use MySQL.", "We switched from Jenkins to Buildkite."),
    ("We chose MySQL, not PostgreSQL.", "We switched from MySQL to PostgreSQL."),
    ("Does Tessa use Vim?", "I no longer use Vim."),
    ("I painted the fence.", "I painted the fence green."),
    ("Caroline bought a red bicycle.", "Caroline bought a blue bicycle."),
    ("The trip was great.", "The trip is on Monday."),
    ("One option is 5432.", "Another option is 5433."),
    ("I had 3 cups of coffee.", "I had 4 cups of coffee."),
    ("We met at 9:30.", "We met at 10:15."),
    ("Tim is 30.", "John is 31."),
    ("Our manager is Ingrid.", "Our managers are Ingrid and Tessa."),
    ("I live in Paris.", "I was in Lyon, but I live in Paris."),
    ("The first book is Dune.", "The second book is Emma."),
    ("The party is on Friday and the caterer is booked for the whole evening.", "The rehearsal is on Monday."),
]


def entry(seq: int, text: str, author: str = "Sam", at: str | None = None) -> Entry:
    when = "2025-08-01T00:00:00.000Z"
    return Entry(
        entry_id=f"e{seq}", memory_id="m", seq=seq, created_at=when, raw_entry=text, summary="s", author=author, at=at
    )


@pytest.mark.requirement("S2-T9")
@pytest.mark.parametrize(("older", "newer"), PAIRS)
def test_a_later_value_of_the_same_matter_supersedes_the_earlier_one(older: str, newer: str) -> None:
    assert find_superseded([entry(1, older), entry(2, newer)]) == {"e1": "e2"}


@pytest.mark.parametrize(("older", "newer"), OTHERS)
def test_what_is_about_another_matter_supersedes_nothing(older: str, newer: str) -> None:
    assert find_superseded([entry(1, older), entry(2, newer)]) == {}


def test_what_another_person_says_of_themselves_supersedes_nothing() -> None:
    assert find_superseded([entry(1, "I live in Paris."), entry(2, "I moved to Lyon.", "Tessa")]) == {}
    assert find_superseded([entry(1, "I live in Paris."), entry(2, "Sam moved to Lyon.", "Tessa")]) == {"e1": "e2"}
    assert find_superseded([entry(1, "My email is a@b.example."), entry(2, "My email is c@d.example.", "Tessa")]) == {}


def test_later_is_what_was_said_later_not_what_was_stored_later() -> None:
    said = [entry(1, "The port is 1.", at="2025-08-02"), entry(2, "The port is 2.", at="2025-08-01")]
    assert find_superseded(said) == {"e2": "e1"}


def test_of_several_values_the_newest_supersedes_all() -> None:
    said = [entry(number, f"The port is {number}.") for number in (1, 2, 3)]
    assert find_superseded(said) == {"e1": "e3", "e2": "e3"}


def test_a_value_that_applies_again_is_not_superseded() -> None:
    said = [entry(number, f"The port is {value}.") for number, value in enumerate((5432, 5433, 5432), 1)]
    assert find_superseded(said) == {"e2": "e3"}


def test_a_long_entry_is_not_superseded_as_a_whole() -> None:
    long = "The port is 1. " + "The office has plants. " * 5
    assert find_superseded([entry(1, long), entry(2, "The port is 2.")]) == {}


def hit(seq: int, text: str, score: float) -> Hit:
    fields = {name: getattr(entry(seq, text), name) for name in Entry.__struct_fields__}
    return Hit(**fields, score=score, score_parts={"lexical": score})


def test_a_superseded_hit_ranks_below_and_scores_still_explain_the_order() -> None:
    hits = [hit(1, "The port is 1.", 3.0), hit(5, "The office is quiet.", 2.0), hit(2, "The port is 2.", 1.0)]
    ranked = mark_superseded(hits)
    assert [one.seq for one in ranked] == [2, 1, 5]
    assert [one.superseded_by for one in ranked] == [None, "e2", None]
    assert [one.score for one in ranked] == [3.0, 3.0, 2.0]
    assert all(sum((one.score_parts or {}).values()) == one.score for one in ranked)
    assert mark_superseded(hits[1:]) == hits[1:]


@pytest.mark.requirement("S2-T9")
def test_a_search_marks_what_is_superseded(memories: Memories, memory_id: str) -> None:
    for text in ("The staging port is 5432.", "Lunch is at noon.", "The staging port is 5433 now."):
        memories.add_entry(memory_id, text)
    newer, older = memories.search_memories(memory_id, "Which port does staging have?", top_k=2).entries
    assert (newer.seq, newer.superseded_by) == (3, None)
    assert (older.seq, older.superseded_by) == (1, newer.entry_id)
    (only,) = memories.search_memories(memory_id, "staging port 5432", top_k=1).entries
    assert only.seq == 3
