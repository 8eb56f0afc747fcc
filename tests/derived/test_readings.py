"""Readings: of statements about something that changes only the newest holds."""

import pytest

from daypack.derived.readings import contradicts, is_status, superseded


@pytest.mark.parametrize(
    "text",
    [
        "All 410 tests pass.",
        "76 tests, 0 failures.",
        "Lint and tests pass.",
        "The build is broken.",
        "2 failed, 14 passed.",
        "CI is green again.",
    ],
)
def test_an_outcome_that_is_measured_anew_is_a_status(text: str) -> None:
    assert is_status(text)


@pytest.mark.parametrize(
    "text",
    [
        "Phase 1 gets tests in tests/parser.",
        "The 11 tests cover empty and renamed files.",
        "All unit tests must pass before a merge.",
        "If the tests fail, ask me.",
        "Do the tests pass?",
        "Make sure that the tests pass.",
        "Tests live in tests/unit.",
    ],
)
def test_a_sentence_about_tests_is_not_yet_a_status(text: str) -> None:
    assert not is_status(text)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("All 18 resource tests pass.", "The full suite passed, 87 tests and 0 failures."),
        ("The staging port is 8443.", "Actually, the staging port is 9443."),
        ("The login page is broken.", "The login page works."),
        ("Retries are enabled.", "Retries are now disabled."),
        ("Windows is supported.", "Windows is not supported."),
        ("We deploy to staging on port 8443.", "Staging moved to port 9443, by the way."),
        ("Our CI uses Node 18.", "We use Node 20 on CI now."),
        ("Removed the redundant status table.", "Done, restored the status table and pushed."),
        ("Keep 14 snapshots.", "The script now keeps 30 snapshots."),
    ],
)
def test_the_newer_of_two_readings_makes_the_older_one_history(older: str, newer: str) -> None:
    assert contradicts(newer, older)
    assert superseded([(1, older), (5, newer)]) == {0: 1}
    assert superseded([(1, older), (5, older)]) == {}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("All 12 parser tests pass.", "All 9 lexer tests pass."),
        ("The port of lab29 is 8443.", "The port of lab30 is 9443."),
        ("The login page is broken.", "The logout page works."),
        ("Use tabs in the Makefile.", "Use spaces in Python files."),
        ("lab29 listens on port 8443.", "lab30 now listens on port 9443."),
        ("Phase 1 covers the parser.", "Phase 2 now covers the parser."),
        ("The cluster runs Node 18.", "The pipeline is on Node 20 now."),
    ],
)
def test_readings_of_different_matters_stand_side_by_side(older: str, newer: str) -> None:
    assert not contradicts(newer, older)
    assert superseded([(1, older), (5, newer)]) == {}


def test_who_gives_two_values_in_one_message_means_two_things() -> None:
    both = [(2, "The server listens on port 8081."), (2, "The server listens on port 8082.")]
    assert superseded([*both, (4, "The server listens on port 8081.")]) == {}
