"""Arguments of the nine tools that a Python caller may give in several forms."""

from datetime import UTC, datetime
from typing import Any

import pytest

from daypack.errors import BadInput
from daypack.memory.requests import REQUESTS, AddEntry, Metadata, read_about, read_number, read_where
from daypack.types.memory import About, Where


def test_about_is_a_value_or_a_mapping() -> None:
    about = About(session="s", role="user", author="Zoë", at="2025", tags=("a", "b"), source="messages:1")
    assert read_about(about) == about
    given = {"session": "s", "role": "user", "author": "Zoë", "at": "2025", "tags": ["a", "b"]}
    assert read_about(given | {"source": "messages:1"}) == about
    assert read_about({"role": None, "tags": None}) == read_about(None) == About()


def test_numbers_and_times_in_about_become_text() -> None:
    moment = datetime(2025, 8, 17, tzinfo=UTC)
    assert read_about({"session": 7, "at": moment}) == About(session="7", at="2025-08-17T00:00:00+00:00")


@pytest.mark.parametrize(
    ("about", "problem"),
    [
        ({"speaker": "x"}, "about has no speaker"),
        ({"role": 1.5}, "about: Expected `str"),
        ({"tags": "plan"}, "about: Expected"),
        ({"tags": [1]}, "about: Expected `str"),
        ([("role", "user")], "about must be an object, not list"),
        (About(role=True), "about: Expected `str"),  # type: ignore[arg-type]
    ],
)
def test_about_of_a_wrong_type_is_refused(about: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_about(about)


def test_where_is_a_value_or_a_mapping() -> None:
    where = Where(since="2025-08-17", tags=("a",), role="user")
    assert read_where(where) == read_where({"since": "2025-08-17", "tags": ["a"], "role": "user"}) == where
    assert read_where(None) == read_where({}) == Where()
    for bad in ({"at": "2025"}, "role=user"):
        with pytest.raises(BadInput, match="where"):
            read_where(bad)


@pytest.mark.parametrize(("value", "number"), [(1, 1), (51, 51), ("7", 7), (" 12 ", 12), ("050", 50)])
def test_a_number_may_be_given_as_text(value: object, number: int) -> None:
    assert read_number(value, "limit", "list_entries") == number


@pytest.mark.parametrize("value", ["", "x", "1.0", 1.0, True, None, "٣", "-1", [1], "9" * 5000])
def test_other_values_are_refused_as_numbers(value: object) -> None:
    with pytest.raises(BadInput, match="limit is") as caught:
        read_number(value, "limit", "list_entries")
    assert len(str(caught.value)) < 200


def test_flat_arguments_take_precedence_over_metadata() -> None:
    metadata = Metadata(author="Ben", role="user", date="2025")
    request = AddEntry(memory_id="m", raw_entry="r", author="Ada", metadata=metadata)
    assert request.about == About(author="Ada", role="user", at="2025")


def test_every_request_names_its_tool_and_its_result() -> None:
    assert len({request.tool for request in REQUESTS}) == len(REQUESTS) == 9
    assert all(request.result.__struct_fields__ for request in REQUESTS)
