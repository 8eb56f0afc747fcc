"""One grammar for references."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.errors import BadSource
from daypack.types.source import (
    EventRef,
    Messages,
    Source,
    SwapRef,
    Tail,
    ToolRef,
    UserLatest,
    parse_source,
)

numbers = st.integers(1, 10**17)
names = st.from_regex(r"[\x21-\x7e][\x20-\x7e]{0,60}", fullmatch=True)
sources = st.one_of(
    st.tuples(numbers, numbers).map(lambda pair: Messages(min(pair), max(pair))),
    numbers.map(Tail),
    names.map(EventRef),
    names.map(SwapRef),
    names.map(ToolRef),
    st.just(UserLatest()),
)


@pytest.mark.requirement("X25")
@given(sources)
def test_a_reference_is_read_back_as_it_was_written(source: Source) -> None:
    assert parse_source(str(source)) == source


@pytest.mark.requirement("X25")
@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("messages:12-18", Messages(12, 18)),
        ("messages:12", Messages(12, 12)),
        ("1-120", Messages(1, 120)),
        ("tail:40", Tail(40)),
        ("messages:tail:40", Tail(40)),
        ("events:ev-991", EventRef("ev-991")),
        ("swap:old-design", SwapRef("old-design")),
        ("tool:test-output-1", ToolRef("test-output-1")),
        ("user:latest", UserLatest()),
    ],
)
def test_every_spelling_in_use_is_read(text: str, source: Source) -> None:
    assert parse_source(text) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "messages:",
        "messages:0",
        "messages:5-3",
        "messages:1-",
        "messages:-1",
        "file:x",
        "events:",
        "tail:0",
        "messages:1\n",
    ],
)
def test_anything_else_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(BadSource) as refused:
        parse_source(text)
    assert "messages:12-18" in refused.value.hint
