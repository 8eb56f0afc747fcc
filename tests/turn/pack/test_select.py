"""Selection: who may see what, what is said twice, what is over; every candidate is chosen or told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from turn.windows import Memory, check_left, furnish, open_work, user

from daypack.text.tokens import counter_named
from daypack.turn.budget import Limits
from daypack.turn.items import Item, Omission, TokenMeter
from daypack.turn.pack.fence import measurer
from daypack.turn.pack.select import Selection, select
from daypack.turn.surface import Surface
from daypack.types.kinds import TARGETS, is_known

NOW = "2026-11-15T12:00:00.000Z"
weigh = measurer(TokenMeter(counter_named("o200k_base")), redacting=False)


def item(name: str, text: str = "", kind: Any = "custom", **fields: Any) -> Item:
    given: dict[str, Any] = {"context_kind": "custom", "source": f"from/{name}", **fields}
    return weigh(Item(id=name, kind=kind, text=text or f"the text of {name}", **given))


def chosen(*items: Item, target: Any = "model", **fields: Any) -> Selection:
    surface = Surface(
        target=target,
        now=NOW,
        limits=Limits(1000),
        tokenizer="o200k_base",
        model=None,
        prefix=tuple(one for one in items if one.placement == "prefix"),
        volatile=tuple(one for one in items if one.placement == "volatile"),
        notes=(),
        waiting=(),
        first=1,
        last=0,
        user=None,
        epoch=None,
    )
    return select(replace(surface, **fields))


def reasons(selection: Selection) -> dict[str, str]:
    return {one.item: one.reason for one in selection.omitted}


def ids(items: tuple[Item, ...]) -> list[str]:
    return [one.id for one in items]


def test_the_best_come_first_and_equals_stay_in_the_order_they_were_found_in() -> None:
    found = chosen(
        item("a", priority=0.2),
        item("b", priority=0.9),
        item("c", priority=0.2),
        item("p", placement="prefix", priority=0.1),
        item("q", placement="prefix", priority=1.0),
    )
    assert ids(found.volatile) == ["b", "a", "c"]
    assert ids(found.prefix) == ["q", "p"]
    assert found.omitted == ()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("placement", ["prefix", "volatile"])
def test_an_item_is_seen_only_where_its_visibility_allows(target: str, placement: str) -> None:
    every = [item(one, visibility=(one,), placement=placement) for one in TARGETS]
    found = chosen(*every, target=target)
    assert ids((*found.prefix, *found.volatile)) == [target]
    assert reasons(found) == {one: "not_visible_to_target" for one in TARGETS if one != target}


@pytest.mark.parametrize("placement", ["prefix", "volatile"])
def test_each_objection_has_its_reason(placement: str) -> None:
    found = chosen(
        item("blocked", blocked=True, placement=placement),
        item("secret", sensitivity="secret", placement=placement),
        item("over", expires="2026-11-15T11:59:59Z", placement=placement),
        item("picture", media=True, placement=placement),
        item("fine", sensitivity="internal", expires="2026-11-15T12:00:01Z", placement=placement),
    )
    assert reasons(found) == {
        "blocked": "policy_blocked",
        "secret": "sensitive",
        "over": "stale",
        "picture": "unsupported_media",
    }
    assert ids((*found.prefix, *found.volatile)) == ["fine"]


@pytest.mark.parametrize("target", ["tool", "runtime"])
def test_a_secret_is_shown_to_tools_and_the_runtime_only(target: str) -> None:
    found = chosen(item("secret", sensitivity="secret", visibility=TARGETS), target=target)
    assert ids(found.volatile) == ["secret"]


@pytest.mark.parametrize(
    ("expires", "over"),
    [
        ("2026-11-15T12:00:00.000Z", True),
        ("2026-11-15T12:00:00.001Z", False),
        ("2026-11-15T13:30:00+02:00", True),
        ("2026-11-15T08:00:00-05:00", False),
        ("2026-11-15T11:59:00", True),
        ("2026-11-15", True),
        ("2026-11-16", False),
        ("20261115T115900Z", True),
        ("tomorrow", False),
        ("", False),
    ],
)
def test_times_are_compared_as_times(expires: str, *, over: bool) -> None:
    assert reasons(chosen(item("it", expires=expires))) == ({"it": "stale"} if over else {})


def test_one_text_of_a_kind_stands_in_the_prefix_once() -> None:
    found = chosen(
        item("a", "Be kind.", "system", placement="prefix"),
        item("b", "Be kind.", "system", placement="prefix", priority=0.9),
        item("c", "Be kind.", "memory_document", placement="prefix"),
    )
    assert set(ids(found.prefix)) == {"a", "c"}
    assert [(one.item, one.reason, one.note) for one in found.omitted] == [("b", "duplicate", "same text as a")]


def test_a_text_that_may_not_be_shown_does_not_keep_its_twin_out() -> None:
    found = chosen(
        item("a", "Be kind.", "system", placement="prefix", blocked=True),
        item("b", "Be kind.", "system", placement="prefix"),
    )
    assert ids(found.prefix) == ["b"]
    assert reasons(found) == {"a": "policy_blocked"}


@pytest.mark.requirement("X13")
def test_the_document_stands_for_its_records() -> None:
    kinds = ("summary", "facts", "decisions", "todo", "errors")
    records = [item(kind, kind=kind, placement="prefix") for kind in kinds]
    found = chosen(item("context_doc", kind="context_doc", placement="prefix"), *records)
    assert ids(found.prefix) == ["context_doc"]
    assert reasons(found) == dict.fromkeys(kinds, "duplicate")
    assert set(ids(chosen(*records).prefix)) == set(kinds)


def test_a_document_that_may_not_be_shown_stands_for_nothing() -> None:
    document = item("context_doc", kind="context_doc", placement="prefix", visibility=("tool",))
    found = chosen(document, item("facts", kind="facts", placement="prefix"))
    assert ids(found.prefix) == ["facts"]
    assert reasons(found) == {"context_doc": "not_visible_to_target"}


def test_a_note_about_what_may_not_be_shown_is_not_told_twice() -> None:
    hidden = item("pin", "Be kind.", "system", placement="prefix", visibility=("tool",))
    note = replace(hidden, id="pin~changed", placement="volatile")
    found = chosen(hidden, notes=(note, item("shown~changed")))
    assert ids(found.notes) == ["shown~changed"]
    assert [one.item for one in found.omitted] == ["pin"]


def test_what_the_survey_left_out_stays_told() -> None:
    gone = Omission(item="file:AGENTS.md", reason="permission_missing")
    assert chosen(omitted=(gone,)).omitted == (gone,)


fields = st.fixed_dictionaries(
    {
        "text": st.sampled_from(("one", "two", "three")),
        "kind": st.sampled_from(("system", "facts", "context_doc", "custom")),
        "placement": st.sampled_from(("prefix", "volatile")),
        "visibility": st.lists(st.sampled_from(TARGETS), min_size=1, max_size=8).map(tuple),
        "priority": st.floats(0, 1),
        "sensitivity": st.sampled_from((None, "secret", "public")),
        "expires": st.sampled_from((None, "2020-01-01", "2030-01-01")),
        "media": st.booleans(),
        "blocked": st.booleans(),
    }
)


@pytest.mark.requirement("G9")
@given(given=st.lists(fields, max_size=8), target=st.sampled_from(TARGETS))
def test_every_candidate_is_chosen_or_left_out_with_a_known_reason(given: list[dict[str, Any]], target: str) -> None:
    every = [item(f"i{number}", **one) for number, one in enumerate(given)]
    found = chosen(*every, target=target)
    told = [*ids(found.prefix), *ids(found.volatile), *(one.item for one in found.omitted)]
    assert sorted(told) == sorted(one.id for one in every)
    assert all(is_known("omission_reason", one.reason) for one in found.omitted)
    for one in (*found.prefix, *found.volatile):
        assert target in one.visibility
        assert not one.blocked


# In a turn


def test_a_duplicate_pin_stays_a_duplicate_and_does_not_come_back_as_a_note(home: str) -> None:
    with open_work(home, [user("Hello.")]) as session:
        session.pin("a.md", "Be kind.")
        session.pin("b.md", "Be kind.")
        for _ in range(3):
            turn = session.prepare()
            assert [(one.item, one.reason) for one in turn.omitted] == [("pin:b.md", "duplicate")]
            assert turn.parts.volatile == ()
            session.append("user", "Go on.")


def test_an_item_that_says_what_stands_in_the_pack_is_a_duplicate(home: str) -> None:
    items = [
        {"context_kind": "manual_note", "content": "Be kind.", "item_id": "pinned"},
        {"context_kind": "manual_note", "content": "Rain.", "item_id": "first", "priority": 0.2},
        {"context_kind": "tool_result", "content": "Rain.", "item_id": "second", "priority": 0.9},
    ]
    with open_work(home, [user("Hello.")]) as session:
        session.pin("a.md", "Be kind.")
        for _ in range(2):
            turn = session.prepare(items=items)
            assert {one.item: one.note for one in turn.omitted} == {
                "item:pinned": "same text as pin:a.md",
                "item:first": "same text as item:second",
            }


def test_an_item_is_no_duplicate_of_what_only_waits(home: str) -> None:
    note = {"context_kind": "manual_note", "content": "The user sails.", "item_id": "note"}
    with open_work(home, [user("Hello.")]) as session:
        session.prepare()
        session.memory = Memory("The user sails.")
        turn = session.prepare(items=[note])
        assert {one.item: one.note for one in turn.omitted} == {"memory": "new; waits for the next epoch"}
        assert "item:note" in [one.id for one in turn.parts.volatile]
        session.refresh()
        turn = session.prepare(items=[note])
    assert {one.item: one.note for one in turn.omitted} == {"item:note": "same text as memory"}


@pytest.mark.requirement("G9")
def test_every_component_of_a_turn_is_in_it_or_left_out_with_a_reason(home: str, tmp_path: Any) -> None:
    with open_work(home, [user("Hello.")], workspace=str(tmp_path / "w")) as session:
        items = furnish(session, tmp_path / "w")
        whole = session.prepare(items=items, dry_run=True)
        every = {one.id for one in whole.inserted}
        assert len(every) > 15
        for budget in range(30, 1500, 50):
            turn = session.prepare(budget=budget, items=items, dry_run=True)
            present = {one.id for one in turn.inserted}
            assert present | {one.item for one in turn.omitted} >= every
            check_left(turn)
