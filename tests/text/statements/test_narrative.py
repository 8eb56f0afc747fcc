"""What belongs to a session is told from what lasts."""

import pytest

from daypack.text.statements.narrative import find_session_entries, session_reason
from daypack.text.statements.passages import Document


@pytest.mark.parametrize(
    "line",
    [
        "- We deploy with Helm.",
        "- I prefer dark mode.",
        "- The user wants metric units.",
        "- The lease ends on 2027-01-31.",
        "- Version 3 of 2024-05-01 broke the API.",
        "- May deploy on weekdays only.",
        "- We need two approvals.",
        "- We decided to use Postgres.",
        "- Tests run with `make test`.",
        "- Started as a bakery in 1990.",
        "- Sessions expire after 30 minutes.",
    ],
)
def test_a_fact_is_no_history(line: str) -> None:
    assert session_reason(line) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("- 2026-02-14: fixed the build", "dated"),
        ("- [2026-02-14 10:22] user asked", "dated"),
        ("- **14 March**: migrated the orders", "dated"),
        ("Feb 3 — moved the server", "dated"),
        ("- I read the log in parts.", "narrative"),
        ("- We then discussed the loyalty cards.", "narrative"),
        ("The user asked for the list.", "narrative"),
        ("Let me think about it.", "narrative"),
        ("- Fixed the stock script.", "narrative"),
        ("- [ ] Send the list", "state"),
        ("- TODO: order belts", "state"),
        ("Currently printing the jaws.", "state"),
        ("- The jaws are printing right now.", "state"),
        ("<think>Hmm</think>", "thinking"),
    ],
)
def test_what_a_session_did_is_history(line: str, reason: str) -> None:
    assert session_reason(line) == reason


def test_a_heading_takes_what_is_under_it_and_no_more() -> None:
    text = "# M\n- Fact one.\n## Session 4\nSome words.\n### Detail\n- More words.\n## Facts\n- Fact two.\n"
    assert [(entry.first, entry.last, entry.reason) for entry in find_session_entries(Document("MEMORY.md", text))] == [
        (3, 6, "headed")
    ]


@pytest.mark.parametrize(
    "title",
    ["2026-02-14", "Session history", "Compaction Summary (2026-02-16T11:39:46Z)", "Today", "Recent work", "TODO"],
)
def test_headings_of_sessions_are_known(title: str) -> None:
    assert len(find_session_entries(Document("MEMORY.md", f"# M\n\n## {title}\n\nWords.\n"))) == 1


@pytest.mark.parametrize("title", ["Session storage", "Preferences", "Notes on logging", "Progressive web app"])
def test_headings_of_facts_are_none(title: str) -> None:
    assert find_session_entries(Document("MEMORY.md", f"# M\n\n## {title}\n\n- Words.\n")) == ()


def test_thinking_goes_from_tag_to_tag_also_when_it_is_not_closed() -> None:
    closed = "- a fact\n<thinking>\nhm\n\nhm\n</thinking>\n- another\n"
    assert [(entry.first, entry.last) for entry in find_session_entries(Document("M", closed))] == [(2, 6)]
    unclosed = "- a fact\n<think>\nhm\nhm\n\n- another\n"
    assert [(entry.first, entry.last) for entry in find_session_entries(Document("M", unclosed))] == [(2, 4)]
