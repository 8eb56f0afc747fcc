"""Small files of a cache, and blobs that wait for an append."""

from pathlib import Path

import psycopg
import pytest
from history.postgres.workers import Workers

LONG = "A long text that is stored as a blob. " * 200


def test_a_text_that_was_erased_meanwhile_is_not_stored_again(workers: Workers, database_url: str) -> None:
    one = workers.open("a")
    one.append("user", "hello")
    one.history.capture(LONG.encode())  # waits for the next append
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE daypack.sessions SET generation = generation + 1")  # as an erasure does
    one.append("user", "about something else")
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM daypack.session_blobs").fetchone() == (0,)
    one.pin("plan", LONG)
    assert workers.open("b").pins == {"plan.md": LONG}


@pytest.mark.parametrize("content", [b"", b"{", b"\0" * 50, b"[]", b"{}"])
def test_small_files_that_are_damaged_are_fetched_again(workers: Workers, content: bytes) -> None:
    one = workers.open("a")
    one.append("user", "hello")
    one.set_state("done")
    meta = one.meta
    one.close()
    for path in (one.layout.meta, one.layout.state):
        Path(path).write_bytes(content)
    again = workers.open("a")
    assert {**again.meta, "counters": None} == {**meta, "counters": None}
    assert again.state == "done"
