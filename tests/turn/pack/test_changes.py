"""Changes during an epoch: instructions at once, the rest later, and nothing twice."""

from typing import Any

import pytest
from msgspec.structs import replace

from daypack.text.tokens import counter_named
from daypack.turn.budget import Limits
from daypack.turn.items import Item, TokenMeter
from daypack.turn.pack.changes import changes
from daypack.turn.pack.fence import measurer, show
from daypack.turn.surface import Addition, Epoch

weigh = measurer(TokenMeter(counter_named("o200k_base")), redacting=True)


def item(name: str, text: str, kind: Any = "system", **fields: Any) -> Item:
    given: dict[str, Any] = {
        "context_kind": "custom",
        "source": f"from/{name}",
        "authority": "system",
        "title": name,
        **fields,
    }
    return weigh(Item(id=name, kind=kind, text=text, placement="prefix", **given))


def epoch(*prefix: Item, skipped: dict[str, str] | None = None) -> Epoch:
    return Epoch(
        event="ev-1",
        reason="first",
        limits=Limits(1000),
        tokenizer="o200k_base",
        start=1,
        head=None,
        prefix=prefix,
        prefix_sha256="",
        skipped=skipped or {},
    )


RULES = item("rules", "Write in German.")
MEMORY = item("memory", "The user hikes.", "memory_document")


def test_what_is_as_it_was_is_neither_told_nor_waited_for() -> None:
    assert changes(epoch(RULES, MEMORY), (), [MEMORY, RULES], weigh) == ((), ())


def test_a_changed_instruction_says_what_it_replaces() -> None:
    (note,), waiting = changes(epoch(RULES), (), [item("rules", "Write in French.")], weigh)
    assert (note.id, note.placement, note.text) == ("rules~changed", "tail", "Write in French.")
    assert note.title == "rules (in place of the text above)"
    assert note.tokens >= counter_named("o200k_base").count(show(note))
    assert note.order < 0
    assert waiting == ()


@pytest.mark.parametrize("kind", ["child_result", "child_refs"])
def test_what_a_child_answers_is_told_at_once(kind: str) -> None:
    (note,), waiting = changes(epoch(RULES), (), [RULES, item("child", "Done.", kind, authority="agent")], weigh)
    assert (note.id, note.title, note.authority) == ("child~changed", "child", "agent")
    assert waiting == ()


def test_an_instruction_without_a_title_is_told_under_its_source() -> None:
    (note,), _ = changes(
        epoch(), (), [item("pin:system.md", "Be kind.", title="", source="context/pinned/system.md")], weigh
    )
    assert note.title == "context/pinned/system.md"
    assert show(note).startswith("<instructions ")


@pytest.mark.parametrize(
    "kind", ["memory_document", "context_doc", "summary", "facts", "decisions", "todo", "errors", "refs", "core_blocks"]
)
def test_documents_and_records_wait(kind: str) -> None:
    before, after, new = item("it", "old", kind), item("it", "new", kind), item("other", "new too", kind)
    notes, waiting = changes(epoch(before), (), [after, new], weigh)
    assert notes == ()
    assert [(one.item, one.reason, one.note) for one in waiting] == [
        ("it~changed", "custom", "changed; waits for the next epoch"),
        ("other", "custom", "new; waits for the next epoch"),
    ]


def test_the_identity_waits() -> None:
    notes, waiting = changes(epoch(item("identity", "a")), (), [item("identity", "b")], weigh)
    assert notes == ()
    assert [one.item for one in waiting] == ["identity~changed"]


def test_an_instruction_that_is_gone_is_withdrawn_and_a_document_that_is_gone_is_not_missed() -> None:
    (note,), waiting = changes(epoch(replace(RULES, authority="user"), MEMORY), (), [], weigh)
    assert note.text == "rules was withdrawn: it no longer applies."
    assert (note.id, note.authority) == ("rules~changed", "system")
    assert waiting == ()


def test_what_did_not_fit_is_not_offered_again_until_it_changes() -> None:
    law, book = item("law", "Never lie."), item("book", "Once.", "memory_document")
    skipped = {"law": law.digest, "book": book.digest}
    notes, waiting = changes(epoch(RULES, skipped=skipped), (), [RULES, law, book], weigh)
    assert notes == ()
    assert [(one.item, one.reason, one.high_impact) for one in waiting] == [
        ("law", "budget_limit", True),
        ("book", "budget_limit", False),
    ]
    (note,), _ = changes(epoch(RULES, skipped=skipped), (), [RULES, item("law", "Lie less.")], weigh)
    assert note.text == "Lie less."


def test_a_text_that_stands_in_the_prefix_under_another_name_is_not_news() -> None:
    again = item("again", RULES.text)
    assert changes(epoch(RULES), (), [RULES, again], weigh) == ((), ())


def test_a_text_that_moves_to_another_name_is_told_because_the_old_one_is_withdrawn() -> None:
    moved = item("again", RULES.text)
    notes, _ = changes(epoch(RULES), (), [moved], weigh)
    assert [note.id for note in notes] == ["again~changed", "rules~changed"]
    notes, _ = changes(epoch(RULES), (), [item("rules", "Write in French."), moved], weigh)
    assert [note.text for note in notes] == ["Write in French.", "Write in German."]


def noted(*notes: Item) -> tuple[Addition, ...]:
    """Notes that an earlier turn of the epoch wrote into the tail."""
    return (Addition(4, notes),)


def test_a_note_that_is_in_the_tail_is_not_repeated() -> None:
    changed, other = item("rules", "Write in French."), item("law", "Never lie.")
    notes, _ = changes(epoch(RULES), (), [changed, other], weigh)
    assert [note.id for note in notes] == ["rules~changed", "law~changed"]
    assert changes(epoch(RULES), noted(*notes), [changed, other], weigh) == ((), ())


def test_a_second_change_says_what_it_replaces() -> None:
    (first,), _ = changes(epoch(), (), [item("law", "Never lie.")], weigh)
    assert first.title == "law"
    (second,), waiting = changes(epoch(), noted(first), [item("law", "Lie less.")], weigh)
    assert (second.text, second.title) == ("Lie less.", "law (in place of the text above)")
    assert waiting == ()


def test_a_change_that_is_taken_back_is_a_change_again_once_it_was_noted() -> None:
    changed = item("rules", "Write in French.")
    (note,), _ = changes(epoch(RULES), (), [changed], weigh)
    assert changes(epoch(RULES), (), [RULES], weigh) == ((), ())
    (back,), waiting = changes(epoch(RULES), noted(note), [RULES], weigh)
    assert (back.id, back.text, back.title) == ("rules~changed", RULES.text, "rules (in place of the text above)")
    assert waiting == ()
    assert changes(epoch(RULES), (*noted(note), *noted(back)), [RULES], weigh) == ((), ())


def test_a_withdrawal_is_noted_once_and_the_return_of_the_instruction_is_a_note_again() -> None:
    (gone,), _ = changes(epoch(RULES), (), [], weigh)
    assert changes(epoch(RULES), noted(gone), [], weigh) == ((), ())
    (back,), _ = changes(epoch(RULES), noted(gone), [RULES], weigh)
    assert back.text == RULES.text
    (again,), _ = changes(epoch(RULES), (*noted(gone), *noted(back)), [], weigh)
    assert again.text == gone.text


def test_an_instruction_that_came_and_went_within_the_epoch_is_withdrawn_by_its_name() -> None:
    (note,), _ = changes(epoch(), (), [item("law", "Never lie.", title="", source="context/pinned/law.md")], weigh)
    (gone,), _ = changes(epoch(), noted(note), [], weigh)
    assert (gone.id, gone.text) == ("law~changed", "context/pinned/law.md was withdrawn: it no longer applies.")
    assert changes(epoch(), (*noted(note), *noted(gone)), [], weigh) == ((), ())


def test_a_secret_in_a_note_is_taken_out() -> None:
    (note,), _ = changes(epoch(), (), [item("key", "The key is ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8.")], weigh)
    assert "ghp_" not in show(note)
