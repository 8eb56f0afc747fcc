"""Times are compared as milliseconds and shown as RFC 3339."""

import pytest

from daypack.memory.times import format_time, now_ms, parse_end_time, parse_time

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01.123Z", 1_123),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2025-08-17T10:11:12.345678Z", 1_755_425_472_345),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_an_iso_time_is_a_moment(text: str, moment: int) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize(
    "text", ["", None, "last Tuesday", "2025", "2025-13-01", "17 Aug 2025", "\0", "2025-08-17T25:00"]
)
def test_anything_else_is_none(text: str | None) -> None:
    assert parse_time(text) is None


def test_a_date_ends_with_its_day_and_a_time_with_itself() -> None:
    assert parse_end_time("1970-01-01") == parse_end_time("19700101") == DAY - 1
    assert parse_end_time("1970-01-01T00:00:01Z") == 1_000
    assert parse_end_time("some day") is None


@pytest.mark.parametrize("moment", [0, 1, 999, 1_000, 1_755_425_472_345, DAY - 1])
def test_what_is_shown_reads_back(moment: int) -> None:
    assert parse_time(format_time(moment)) == moment
    assert format_time(moment).endswith("Z")


def test_now_is_after_this_was_written() -> None:
    assert now_ms() > 1_755_425_472_345


def test_every_moment_can_be_shown_and_read_back() -> None:
    assert format_time(parse_time("0999-01-01") or 0) == "0999-01-01T00:00:00.000Z"
    for text in ("9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00+10:00"):
        shown = format_time(parse_time(text) or 0)
        assert parse_time(shown) is not None
        assert shown[:4] == text[:4]
