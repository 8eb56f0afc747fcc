"""Results are grouped: a few of each session, the same line once, short names of sessions."""

import daypack
from daypack.history.home import find_home
from daypack.upkeep.find import find
from daypack.upkeep.find.groups import ShortNames


def test_the_same_line_is_shown_once_and_the_other_sessions_with_it_are_counted(home: str) -> None:
    for name in ("first", "second", "third"):
        with daypack.open_session(name, home=home, durability="os") as session:
            for _ in range(3):
                session.append("user", "The lighthouse lamp was replaced by a brighter one.")
    found = find(find_home(home), "lighthouse lamp")
    assert [(hit.more, hit.same) for hit in found.hits] == [(2, 2)]


def test_a_name_is_shortened_as_far_as_commands_still_find_it() -> None:
    names = ShortNames(
        [
            ("codex", "258c7280-ae70-4798"),
            ("codex", "258c7280-ae70-4798--child"),
            ("codex", "69847031-200c-4c30"),
            ("codex", "69847031-200d-4c30"),
            ("codex", "deploy"),
            ("qwen", "69847031-200c-4c30"),
        ]
    )
    assert names("codex", "258c7280-ae70-4798") == "258c7280"
    assert names("codex", "258c7280-ae70-4798--child") == "258c7280-ae70-4798--child"
    assert names("codex", "69847031-200c-4c30") == "69847031-200c"
    assert names("codex", "deploy") == "deploy"
    assert names("qwen", "69847031-200c-4c30") == "69847031"
