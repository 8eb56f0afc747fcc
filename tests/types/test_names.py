"""Mistyped and shortened names."""

import pytest

from daypack.errors import BadInput
from daypack.types.names import complete, did_you_mean, nearest


def test_the_most_similar_names_come_first_and_distant_ones_are_not_suggested() -> None:
    assert nearest("dmeo", ["demon", "demo", "other"]) == ["demo", "demon"]
    assert nearest("--budgt", ["--budget", "--target", "-n"]) == ["--budget"]
    assert nearest("DEMO", ["demo"]) == ["demo"]
    assert nearest("xyz", ["demo", "other"]) == []
    assert nearest("x", []) == []


def test_a_suggestion_is_a_question() -> None:
    assert did_you_mean("lgo", ["log", "append"]) == "did you mean log?"
    assert did_you_mean("talk-3", ["talk-1", "talk-2"]) == "did you mean talk-1 or talk-2?"
    assert did_you_mean("dance", ["log", "append"]) == ""


def test_the_start_of_a_name_is_completed_and_an_exact_name_is_itself() -> None:
    assert complete("de", ["demo", "talk"], what="sessions", min_chars=1) == "demo"
    assert complete("demo", ["demo", "demo-2"], what="sessions") == "demo"
    assert complete("abc", ["abcdef"], what="ids") is None
    assert complete("abcd", ["abcdef"], what="ids") == "abcdef"
    assert complete("abc", ["abc", "abcdef"], what="ids") == "abc"
    assert complete("x", [], what="ids", min_chars=1) is None


def test_a_start_that_several_names_share_is_refused_with_the_names() -> None:
    with pytest.raises(BadInput, match=r"2 sessions begin with 'de'.*use more characters: demo, debug"):
        complete("de", ["demo", "debug", "talk"], what="sessions", min_chars=1)
