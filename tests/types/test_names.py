"""Mistyped and shortened names."""

from daypack.types.names import did_you_mean, nearest, starting_with


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


def test_a_prefix_finds_the_names_that_begin_so_and_an_exact_name_only_itself() -> None:
    assert starting_with("de", ["demo", "debug", "talk"]) == ["demo", "debug"]
    assert starting_with("demo", ["demo", "demo-2"]) == ["demo"]
    assert starting_with("abc", ["abcdef"], min_chars=4) == []
    assert starting_with("abc", ["abc", "abcdef"], min_chars=4) == ["abc"]
