"""A Markdown text is split into sections, items and sentences, with line numbers and line ends."""

import pytest

from daypack.text.statements.passages import Document

TEXT = (
    "# T\n\n## One\n\nA sentence. Another one.\n\n- first\n  goes on\n- second\n\n"
    "**Titled**\n- third\n\n```\ncode\n```\n"
)


def test_items_sections_and_fences_have_their_lines() -> None:
    document = Document("T.md", TEXT)
    assert [tuple(item.lines) for item in document.items] == [(5, 5), (7, 8), (9, 9), (12, 12)]
    assert [(section.title, *section.lines) for section in document.sections] == [("One", 3, 16), ("Titled", 11, 12)]
    assert [statement.text for statement in document.statements][:2] == ["A sentence.", "Another one."]
    assert [(tuple(fence.lines), fence.body) for fence in document.fences] == [((14, 16), ("code",))]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), f"\ufeff{TEXT}", "a", "", "a\r\nb\n"])
def test_the_rows_join_to_the_same_text(text: str) -> None:
    document = Document("T.md", text)
    assert document.joined(document.rows) == text


def test_line_ends_and_the_byte_order_mark_change_no_part() -> None:
    other = Document("T.md", "\ufeff" + TEXT.replace("\n", "\r\n"))
    assert [item.text for item in other.items] == [item.text for item in Document("T.md", TEXT).items]


def test_a_title_may_be_the_last_line_without_a_line_end() -> None:
    assert [(section.title, *section.lines) for section in Document("T.md", "One.\n\n**Notes**").sections] == [
        ("Notes", 3, 3)
    ]
