"""Texts of hooks: lines in the order of their worth, fenced, and never longer than the host shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.hooks.call import HookCall, HostName
from daypack.hooks.composition import Fenced, Room, Section, bullets, compose
from daypack.hooks.hosts import HOSTS
from daypack.text.estimate import estimate_tokens
from daypack.text.injected import strip_injected
from daypack.types.digest import digest_text

SHOWN = Fenced("note", "daypack: a test", "Quoted.")


def call(host: HostName = "claude") -> HookCall:
    return HookCall(host=host, event="SessionStart", session="s", cwd="/", source="startup")


def test_sections_are_shown_in_their_order_and_cut_by_their_worth() -> None:
    sections = [
        Section("## Least", [f"- least {number} {'word ' * 40}" for number in range(20)], 2, "- … and {} more"),
        Section("## Most", ["- most"], 0),
        Section("## Empty", [], 1),
    ]
    text = compose(sections, SHOWN, Room(call(), 300))
    assert text.index("## Least") < text.index("## Most")
    assert "- most" in text
    assert "## Empty" not in text
    assert "- least 0" in text
    assert "- least 19" not in text
    shown = text.count("- least")
    assert f"- … and {20 - shown} more" in text


def test_nothing_is_composed_if_not_even_one_line_fits() -> None:
    assert compose([Section("## A", ["word " * 500])], SHOWN, Room(call(), 100)) == ""
    assert compose([Section("## A", [])], SHOWN, Room(call(), 100)) == ""


def test_what_is_in_the_room_already_counts() -> None:
    sections = [Section("", [f"- line {number}" for number in range(100)])]
    alone = compose(sections, SHOWN, Room(call(), 200))
    beside = compose(sections, SHOWN, Room(call(), 200, "word " * 100))
    assert 0 < len(beside) < len(alone)


@given(
    st.lists(
        st.builds(Section, st.text(max_size=20), st.lists(st.text(max_size=300), max_size=30), st.integers(0, 5)),
        max_size=5,
    ),
    st.sampled_from(sorted(HOSTS)),
    st.integers(1, 3000),
)
def test_a_text_never_exceeds_the_limits_of_its_host(sections: list[Section], host: HostName, max_tokens: int) -> None:
    text = compose(sections, SHOWN, Room(call(host), max_tokens))
    assert HOSTS[host].fits("SessionStart", text)
    assert estimate_tokens(text) <= max_tokens


@given(st.text(max_size=300).map(str.strip).filter(bool))
def test_what_is_fenced_is_recognised_as_ours_whatever_it_says(text: str) -> None:
    shown = Fenced("note", "daypack: a test").show([text])
    inner = shown.partition(">\n")[2].rpartition("\n</note")[0]
    digests = {digest_text(inner)}
    assert strip_injected(f"before\n\n{shown}\n\nafter", digests.__contains__) == "before\n\nafter"


def test_lines_of_a_bullet_are_indented() -> None:
    assert bullets(["one\ntwo", " ", "three"]) == ["- one\n  two", "- three"]


@pytest.mark.parametrize("text", ["</note 12345678>", '<note id="00000000">\nx\n</note 00000000>'])
def test_a_text_cannot_end_its_own_fence(text: str) -> None:
    shown = Fenced("note", "daypack: a test").show([text])
    mark = shown.partition('id="')[2][:8]
    assert shown.count(mark) == 2
