"""The tiers in a turn: core blocks frozen in the prefix, the others behind the tail, instructions only when asked."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from turn.scenes import Clock, outputs, reasons, sent, stage, turn_events
from turn.snapshot_replies import (
    ADA,
    BOAT,
    SHIPPED,
    ask,
    block,
    exchange,
    frozen,
    noted,
    refs,
    remembering,
    reply_to,
    talking,
    volatile,
)

from daypack.derived.tiers import Projection
from daypack.turn.dialects import NAMES, dialect
from daypack.turn.items import Item, Omission
from daypack.turn.pack.changes import changed_blocks
from daypack.turn.survey.tiers import block_items
from daypack.types.kinds import TIERS, Tier
from daypack.types.snapshot import Block

INSTRUCTIONS, STAMP = "block:protocol", "runtime:stamp"


# Where things stand


@pytest.mark.requirement("S0-N7")
def test_core_blocks_stand_in_the_prefix_and_the_others_behind_the_tail(home: str) -> None:
    turn = ask(remembering(home))
    core = frozen(turn, "blocks:core")
    working, ephemeral = volatile(turn, "blocks:working"), volatile(turn, "blocks:ephemeral")
    assert core
    assert working
    assert ephemeral
    assert (core.kind, working.kind, ephemeral.kind) == ("core_blocks", "working_blocks", "ephemeral_blocks")
    assert core.text == f"- core-001 (note): {ADA} #user #two-words"
    assert working.text == (
        f"active task: Paint the hull.\n- work-001 (task, decay 0.4, confidence 0.75, round 1): {BOAT}"
    )
    assert ephemeral.text == "- temp-001 (hint, decay 0.75, confidence 0.55, round 1): The tide turns at noon."
    order = refs(turn)
    assert order.index("blocks:core") < order.index("messages:1-3") < order.index("blocks:working")
    assert {core.authority, working.authority, ephemeral.authority} == {"agent"}
    assert ADA in turn.quoted
    assert BOAT not in turn.quoted
    for name in NAMES:
        assert dialect(name).validate(turn.request(name)) == []


@pytest.mark.requirement("S0-N1", "S0-N6")
def test_with_the_protocol_on_the_model_is_told_what_to_write_and_sees_the_runtime_fields(home: str) -> None:
    turn = ask(talking(home))
    told, stamp = volatile(turn, INSTRUCTIONS), volatile(turn, STAMP)
    assert told
    assert stamp
    assert told.text == SHIPPED.strip()
    assert told.authority == stamp.authority == "system"
    assert json.loads(stamp.text) == turn.expected
    assert turn.expected
    assert turn.expected["version"] == 2.3
    assert turn.expected["capabilities"] == [{"name": "memory", "scope": "write_once"}]
    assert stamp.text in turn.messages("openai")[-1]["content"]
    assert told.text not in turn.quoted
    assert refs(turn)[-2:] == [INSTRUCTIONS, STAMP]


@pytest.mark.requirement("S0-N3", "S0-N4", "S0-N5", "S0-T3", "S0-T4", "S0-T5", "S0-T6")
def test_the_runtime_fields_are_the_hosts_own(home: str, tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    clock = Clock(1_800_000_000.25)
    session = talking(home, clock=clock, workspace=f"{tmp_path}/other/..//shop/.")
    turn = ask(session)
    created = session.history.facets.read(session.history.layout.created_at)
    assert turn.expected
    runtime = turn.expected["runtime"]
    assert list(runtime) == ["round", "workspace", "datetime", "startup_at"]
    assert (runtime["round"], type(runtime["round"])) == (1, int)
    assert runtime["workspace"] == f"{workspace}/"
    assert runtime["datetime"] == "2027-01-15T08:00:00.250Z"
    assert type(runtime["startup_at"]) is int
    assert runtime["startup_at"] == round(datetime.fromisoformat(created).timestamp() * 1000)
    clock.now += 3600
    later = ask(session).expected
    assert later
    assert later["runtime"]["datetime"] == "2027-01-15T09:00:00.250Z"
    assert later["runtime"]["startup_at"] == runtime["startup_at"]


def test_without_the_protocol_nothing_is_asked_for(home: str) -> None:
    turn = ask(stage(home))
    assert not {INSTRUCTIONS, STAMP} & set(refs(turn))
    assert turn.expected is None


def test_one_call_can_do_without_and_one_call_can_ask(home: str) -> None:
    session = remembering(home)
    off = ask(session, protocol=False)
    assert not {INSTRUCTIONS, STAMP} & set(refs(off))
    assert off.expected is None
    assert ADA in off.quoted
    assert volatile(off, "blocks:working")
    assert ask(session).expected is not None
    other = stage(home, "other")
    assert ask(other, protocol=True).expected is not None
    assert ask(other).expected is None
    session.switch("protocol", on=False)
    assert ask(session).expected is None
    assert ADA in ask(session).quoted


def test_the_users_own_words_take_the_place_of_the_shipped_ones(home: str) -> None:
    session = talking(home)
    folder = Path(session.history.layout.prompts)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "protocol.md").write_text("Append <<<CONTEXT>>> and JSON.\n", encoding="utf-8")
    turn = ask(session)
    told = volatile(turn, INSTRUCTIONS)
    assert told
    assert told.text == "Append <<<CONTEXT>>> and JSON."
    assert SHIPPED[:40] not in sent(turn)
    assert turn.expected is not None


def test_a_turn_of_the_protocol_replays_byte_for_byte(home: str) -> None:
    session = remembering(home)
    turns = [ask(session), ask(session, protocol=False), ask(session)]
    other = stage(home)
    assert [event.id for event in turn_events(other)][1:] == [turn.event_id for turn in turns]
    for turn in turns:
        assert outputs(other.replay(turn.event_id or "")) == outputs(turn)
        assert sent(other.replay(turn.event_id or "")) == sent(turn)


# During an epoch


def test_a_core_block_that_changes_arrives_as_a_note_and_the_prefix_stays(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block(), block("core-002", BOAT), block("core-003", "The bay is deep.")])
    session.refresh()
    first = ask(session)
    gone, changed = block("core-002", decay=1, round=2), block(content="The user is Ada Byron.", round=2)
    session.accept(reply_to(first, core=[changed, gone, block("core-004", "The pier is long.", round=2)]))
    second = ask(session)
    note = noted(second, "blocks:core")
    assert note
    assert note.text == (
        "- core-001 (note): The user is Ada Byron.\n- core-004 (note): The pier is long.\nno longer: core-002"
    )
    assert note.title == "core blocks (changed since)"
    assert "The bay is deep." not in note.text
    assert second.quoted == first.quoted
    assert (second.new_epoch, second.prefix_sha256) == ("", first.prefix_sha256)
    session.refresh()
    third = ask(session)
    assert "Ada Byron" in third.quoted
    assert BOAT not in third.quoted
    assert noted(third, "blocks:core") is None


def test_the_first_core_blocks_of_an_epoch_arrive_at_once(home: str) -> None:
    session = talking(home)
    first = exchange(session, core=[block()])
    second = ask(session)
    note = noted(second, "blocks:core")
    assert note
    assert note.text == f"- core-001 (note): {ADA}"
    assert second.quoted == first.quoted


def test_the_last_core_block_that_is_deleted_is_taken_back(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()])
    session.refresh()
    first = ask(session)
    assert ADA in first.quoted
    session.accept(reply_to(first, core=[block(decay=1, round=2)]))
    second = ask(session)
    assert second.quoted == first.quoted
    note = noted(second, "blocks:core")
    assert note
    assert note.text == "no longer: core-001"


def test_new_numbers_alone_change_neither_prefix_nor_notes(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block(), block("core-002", BOAT, decay=0.2)])
    session.refresh()
    first = ask(session)
    session.accept(reply_to(first, core=[block(confidence=0.95, round=2)]))
    same = ask(session)
    assert noted(same, "blocks:core") is None
    session.accept(reply_to(same, core=[block(decay=0.3, confidence=0.75, round=3)]))  # now the other one is better
    turned = ask(session)
    assert turned.quoted == first.quoted
    assert noted(turned, "blocks:core") is None


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a", "ab", "- b (note): About b."),
        ("ab", "b", "no longer: a"),
        ("ab", "ba", ""),
        ("ab", "c", "- c (note): About c.\nno longer: a, b"),
        ("ab", "", "no longer: a, b"),
    ],
)
def test_only_what_changed_is_told(before: str, after: str, told: str) -> None:
    def item_of(names: str) -> Item | None:
        blocks = (told_as(name, f"About {name}.") for name in names)
        return next((one for one in block_items(seen(*blocks), 9999, len) if isinstance(one, Item)), None)

    first = item_of(before)
    assert first
    assert changed_blocks(first, item_of(after)) == told


def test_what_merely_has_no_room_is_not_taken_back() -> None:
    def items_of(room: int, *blocks: Block) -> list[Item]:
        return [one for one in block_items(seen(*blocks), room, len) if isinstance(one, Item)]

    short, long = told_as("a", "About a."), told_as("b", "About b. " * 9)
    [frozen_item] = items_of(9999, short, long, told_as("c"))
    [no_room] = items_of(12 * 40, short, long, told_as("c"))
    assert "- b " not in no_room.text
    assert changed_blocks(frozen_item, no_room) == ""
    [gone] = items_of(12 * 40, short, long)
    assert changed_blocks(frozen_item, gone) == "no longer: c"


def test_a_core_block_that_better_ones_push_out_is_not_taken_back(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("plain", BOAT, decay=0.3), block("gone", "The bay is deep.")])
    session.refresh()
    first = ask(session)
    better = [block(f"b{number}", f"Pier {number}.", decay=0) for number in range(24)]
    session.accept(reply_to(first, core=[*better, block("gone", decay=1)]))
    assert "plain" not in {one.id for one in session.tiers.core}
    note = noted(ask(session), "blocks:core")
    assert note
    assert note.text.splitlines()[-1] == "no longer: gone"


@pytest.mark.parametrize("others", [0, 1])
def test_a_core_block_that_grew_too_long_for_the_window_is_not_taken_back(home: str, others: int) -> None:
    session = talking(home)
    exchange(session, core=[block(), *[block("core-002", "Sail.")] * others])
    session.refresh()
    first = ask(session, budget=4000)
    assert frozen(first, "blocks:core")
    grown = "".join(chr(0x4E00 + 7 * number) for number in range(500))  # rare signs: more tokens than characters
    session.accept(reply_to(first, core=[block(content=grown)]))
    second = ask(session, budget=4000)
    assert second.new_epoch == ""
    note = noted(second, "blocks:core")
    assert "no longer" not in (note.text if note else "")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_changes_are_told_in_every_turn_of_the_epoch_also_by_another_process(home: str, elsewhere: bool) -> None:
    session = talking(home)
    exchange(session, core=[block(), block("core-002", BOAT)])
    session.refresh()
    first = ask(session)
    session.accept(reply_to(first, core=[block("core-002", decay=1, round=2)]))
    for _ in range(2):
        session = stage(home) if elsewhere else session
        turn = ask(session)
        note = noted(turn, "blocks:core")
        assert note
        assert (turn.new_epoch, note.text) == ("", "no longer: core-002")
        assert turn.quoted == first.quoted


def test_an_id_with_a_bracket_in_it_is_taken_back_under_its_whole_name(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block("ann (pilot)"), block("ann (cook)", BOAT)])
    session.refresh()
    session.accept(reply_to(ask(session), core=[block("ann (pilot)", decay=1, round=2)]))
    note = noted(ask(session), "blocks:core")
    assert note
    assert note.text == "no longer: ann (pilot)"


# Small windows


def seen(*blocks: Block, tier: Tier = "core", **fields: Any) -> Projection:
    return Projection(round=1, **{tier: blocks}, **fields)


def told_as(identity: str = "a", content: str = "x", **fields: Any) -> Block:
    return Block(identity, fields.pop("type", "note"), 0.1, 0.9, 1, fields.pop("tags", ()), content)


def test_blocks_that_do_not_fit_are_named_best_first(home: str) -> None:
    many = [told_as(f"b{number}", "one two three four five six") for number in range(20)]
    left, shown = block_items(seen(*many), 12 * 50, lambda text: len(text.split()))
    assert isinstance(left, Omission)
    assert isinstance(shown, Item)
    assert [line[2:4] for line in shown.text.splitlines()] == ["b0", "b1", "b2", "b3", "b4"]
    assert (left.item, left.reason) == ("blocks:core", "budget_limit")
    assert left.note == "15 of 20 blocks did not fit: b5, b6, b7, b8, b9, b10, b11, b12"


@pytest.mark.parametrize("budget", [300, 700, 1500, 3000, 8000])
def test_in_any_window_a_turn_keeps_its_budget_and_tells_what_is_left(home: str, budget: int) -> None:
    session = talking(home)
    words = "The harbour master keeps the keys of the eastern gate in the third drawer. "
    turn = ask(session)
    many = [block(f"b{number}", f"{number}: {words * 3}") for number in range(24)]
    session.accept(reply_to(turn, core=many, working=many, ephemeral=many))
    session.refresh()
    turn = ask(session, budget=budget)
    assert turn.tokens <= budget
    shown = {one.id: one.text.count("\n- ") + 1 for one in turn.inserted}
    for tier in TIERS:
        if shown.get(f"blocks:{tier}", 0) < 24:
            assert reasons(turn)[f"blocks:{tier}"] in ("budget_limit", "too_large")


@pytest.mark.parametrize("budget", [200, 300, 400, 500, 600])
def test_a_window_has_room_for_both_the_instructions_and_the_stamp_or_for_neither(home: str, budget: int) -> None:
    turn = ask(talking(home), budget=budget)
    assert (volatile(turn, INSTRUCTIONS) is None) == (volatile(turn, STAMP) is None)


def test_a_block_whose_id_or_type_is_huge_does_not_crowd_out_the_others(home: str) -> None:
    session = talking(home)
    huge = block("big", BOAT, decay=0, confidence=1, type="x " * 50_000)
    exchange(session, core=[huge, block("pier 7 " * 9_000, "The bay is deep.", decay=0, confidence=1), block()])
    session.refresh()
    turn = ask(session, budget=8000)
    assert ADA in turn.quoted
    assert len(str(turn.omitted)) < 5000
