"""Names of files in texts, and the files they mean."""

import pytest

from daypack.hooks.file_decisions.naming import covers, former_names, names_in, relative_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("See `src/app.py:12`, prompt.py and tests/test_a.py::test_b.", ["src/app.py", "prompt.py", "tests/test_a.py"]),
        ("Never edit generated/ or *.lock.", ["generated/", "*.lock"]),
        ("Version 3.11 of e.g. this and `settings`", []),
        ("在 shop/retry.py 中不要重试。", ["shop/retry.py"]),
    ],
)
def test_a_text_names_files_folders_and_patterns(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_a_path_is_relative_to_the_top_of_the_working_tree() -> None:
    assert relative_path("b.py", "/src/a", "/src") == "a/b.py"
    assert relative_path("/src/a/../b.py", "/", "/src") == "b.py"
    assert relative_path("/srcs/b.py", "/", "/src") is None
    assert relative_path("../b.py", "/src", "/src") is None


def test_a_name_covers_a_path_only_at_the_borders_of_its_parts() -> None:
    assert covers("retry.py", "shop/retry.py")
    assert not covers("try.py", "shop/retry.py")
    assert covers("generated/", "src/generated/a.py")
    assert not covers("generated/", "src/notgenerated/a.py")


def test_former_names_end_where_they_turn_in_a_circle() -> None:
    assert former_names("a", (("b", "a"), ("a", "b"), ("b", "a"))) == ["a", "b"]
