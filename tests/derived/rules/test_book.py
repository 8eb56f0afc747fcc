"""The rule book is a fold: events that overlap, repeat or come early change nothing twice."""

from daypack.derived.rules.book import RuleBook, fold_added, fold_dropped, fold_found, fold_pinned, in_force


def found(first: int, through: int, *rules: tuple[int, str]) -> dict[str, object]:
    listed = [{"id": f"rule-{seq}", "text": text, "source": f"messages:{seq}", "position": seq} for seq, text in rules]
    return {"first": first, "through": through, "rules": listed}


def texts(book: RuleBook) -> list[str]:
    return [rule.text for rule in in_force(book)]


def test_a_range_that_overlaps_what_was_examined_is_ignored() -> None:
    book = RuleBook()
    fold_found(book, found(1, 10, (3, "a")))
    fold_found(book, found(1, 12, (3, "b"), (11, "c")))
    fold_found(book, found(11, 20, (12, "d")))
    assert texts(book) == ["a", "d"]
    assert (book.since, book.through) == (1, 20)


def test_after_a_long_import_the_newest_part_comes_first_and_the_rest_before_it() -> None:
    book = RuleBook()
    fold_found(book, found(91, 100, (95, "c")))
    assert (book.since, book.through) == (91, 100)
    fold_found(book, found(41, 90, (50, "b")))
    fold_found(book, found(41, 90, (50, "again")))
    fold_found(book, found(101, 110, (105, "d")))
    fold_found(book, found(1, 40, (3, "a")))
    assert texts(book) == ["a", "b", "c", "d"]
    assert (book.since, book.through) == (1, 110)


def test_a_rule_can_be_dropped_and_pinned_before_it_is_recorded() -> None:
    book = RuleBook()
    fold_dropped(book, {"id": "rule-3"})
    fold_pinned(book, {"id": "rule-5", "on": True})
    fold_found(book, found(1, 10, (3, "a"), (5, "b")))
    assert [(rule.text, rule.pinned) for rule in in_force(book)] == [("b", True)]
    fold_pinned(book, {"id": "rule-5", "on": False})
    assert [(rule.text, rule.pinned) for rule in in_force(book)] == [("b", False)]


def test_a_rule_added_by_hand_comes_after_the_message_it_followed() -> None:
    book = RuleBook()
    added = {"id": "rule-a1", "text": "by hand", "source": "added", "position": 3}
    fold_added(book, {"rule": added, "superseded": {"rule-2": "rule-a1"}})
    fold_found(book, found(1, 10, (2, "old"), (3, "a"), (5, "b")))
    assert texts(book) == ["a", "by hand", "b"]
    fold_pinned(book, {"id": "rule-2", "on": True})
    assert texts(book) == ["old", "a", "by hand", "b"]
    fold_pinned(book, {"id": "rule-2", "on": False})
    fold_dropped(book, {"id": "rule-a1"})
    assert texts(book) == ["old", "a", "b"]
