"""Statements with the same terms in other places say something else."""

import pytest

from daypack.text.statements.wording import wording_of

SWAPPED = [
    ("Use pnpm, not npm.", "Use npm, not pnpm."),
    ("The backup runs before the deploy.", "The deploy runs before the backup."),
    ("Copy the tables from prod to staging.", "Copy the tables from staging to prod."),
    ("Prefer Postgres over SQLite.", "Prefer SQLite over Postgres."),
    ("Alice approves what Bob wrote.", "Bob approves what Alice wrote."),
    ("Commit before running the tests.", "Run the tests before committing."),
    ("Invoices are signed by the owner.", "The owner is signed by invoices."),
    ("Use tabs for indentation and spaces for alignment.", "Use spaces for indentation and tabs for alignment."),
    ("The client calls the server.", "The server calls the client."),
    ("Anna reports to Ben.", "Ben reports to Anna."),
    ("Move mails from the inbox to the archive.", "Move mails from the archive to the inbox."),
]
SAME = [
    ("Label each sample with date and initials.", "Samples are labelled with initials and the date."),
    ("Before committing, always run tests.", "Run the tests before every commit."),
    ("A draft is read by a second editor.", "A second editor reads every draft."),
    ("The publisher sees a build every second Friday.", "Every second Friday the publisher sees a build."),
    ("Clean the lens with alcohol, never with water.", "The lens is cleaned with alcohol and never with water."),
    ("Cite the source of every number.", "Every number needs a citation of its source."),
    ("Copy the tables from prod to staging.", "Copy all tables from prod to the staging server."),
    ("Anna reports to Ben.", "Anna always reports to Ben."),
]


@pytest.mark.parametrize(("one", "other"), SWAPPED)
def test_terms_that_change_places_make_another_statement(one: str, other: str) -> None:
    assert wording_of(one).differs(wording_of(other)) == "order"
    assert wording_of(other).differs(wording_of(one)) == "order"


@pytest.mark.parametrize(("one", "other"), SAME)
def test_lists_passives_and_fronted_clauses_have_no_order(one: str, other: str) -> None:
    assert wording_of(one).differs(wording_of(other)) == ""
    assert wording_of(other).differs(wording_of(one)) == ""
