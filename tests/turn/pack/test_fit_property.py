"""For any history and any limits: a pack is within every limit, acceptable to every provider, and has the question."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.histories import Drafts, wild_histories
from turn.scenes import append_raw
from turn.windows import check_left, check_window, furnish, open_work, stable_of

from daypack.errors import BudgetTooSmall
from daypack.turn.budget import Limits
from daypack.types.kinds import TARGETS

modest = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

budgets = st.one_of(st.integers(1, 1500), st.integers(1, 200_000))
models = st.sampled_from((None, None, "claude-opus-4-7", "llama-2-7b", "gemini-2.5-pro", "some-new-model"))
limits = st.builds(
    Limits,
    st.one_of(st.none(), budgets),
    st.one_of(st.none(), st.integers(1, 60_000)),
    st.one_of(st.none(), st.integers(1, 60)),
    st.none(),
)
items = st.lists(
    st.fixed_dictionaries(
        {
            "context_kind": st.sampled_from(
                ("file_excerpt", "policy_note", "manual_note", "tool_result", "durable_memory")
            ),
            "content": st.one_of(st.text(max_size=40), st.just("packing list " * 40)),
            "priority": st.floats(0, 1),
        }
    ),
    max_size=4,
)


@modest
@given(drafts=wild_histories(), limits=limits, items=items, model=models, furnished=st.booleans())
def test_a_pack_is_within_every_limit_and_has_the_newest_question(
    drafts: Drafts, limits: Limits, items: list[dict[str, Any]], model: str | None, furnished: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_work(folder, drafts, workspace=f"{folder}/workspace") as session:
        if furnished:
            furnish(session, Path(folder) / "workspace")
        newest = [message for message in session.messages() if message.role == "user"][-1]
        try:
            turn = session.prepare(budget=limits, items=items, model=model, dry_run=True)
        except BudgetTooSmall:
            return
        check_window(turn, limits, newest)
        check_left(turn)


@modest
@given(drafts=wild_histories(max_size=20), limits=limits, cuts=st.lists(st.integers(1, 5), max_size=8), model=models)
def test_turns_of_a_growing_history_only_append_until_an_epoch_begins(
    drafts: Drafts, limits: Limits, cuts: list[int], model: str | None
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_work(folder) as session:
        before: dict[str, list[bytes]] = {}
        newest = None
        for size in [*cuts, len(drafts)]:
            if not drafts:
                break
            added = append_raw(session, *drafts[:size])
            drafts = drafts[size:]
            newest = next((one for one in reversed(added) if one.role == "user"), newest)
            if newest is None:
                continue
            try:
                turn = session.prepare(budget=limits, model=model)
            except BudgetTooSmall:
                before = {}
                continue
            check_window(turn, limits, newest)
            check_left(turn)
            stable = stable_of(turn)
            if turn.new_epoch:
                assert turn.new_epoch == ("overflow" if before else turn.new_epoch)
            else:
                for name, body in before.items():
                    assert stable[name][: len(body)] == body
            before = stable


@modest
@given(drafts=wild_histories(), limits=limits, items=items, target=st.sampled_from(TARGETS))
def test_what_any_target_gets_is_within_its_limits(
    drafts: Drafts, limits: Limits, items: list[dict[str, Any]], target: str
) -> None:
    with tempfile.TemporaryDirectory() as folder, open_work(folder, drafts) as session:
        for one in items:
            one["visibility"] = [target]
        try:
            turn = session.prepare(budget=limits, items=items, target=target)
            again = session.prepare(budget=limits, items=items, target=target)
        except BudgetTooSmall:
            return
        for one in (turn, again):
            assert one.record.used.fits(limits.room)
            check_left(one)
        assert again.new_epoch in ("", "overflow")
