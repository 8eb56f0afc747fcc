"""For every settled history: each rendering is acceptable, and begins the rendering of every longer history."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turn.dialects.library import check_types
from turn.histories import Drafts, messages_of, settled_histories, texts

from daypack.turn.dialects import NAMES, Given, dialect, encode

modest = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
surroundings = st.lists(texts, max_size=2).map(tuple)


@pytest.mark.parametrize("name", NAMES)
@modest
@given(drafts=settled_histories(), prefix=surroundings, volatile=surroundings)
def test_every_rendering_is_acceptable(
    name: str, drafts: Drafts, prefix: tuple[str, ...], volatile: tuple[str, ...]
) -> None:
    body = dialect(name).render(Given(prefix, messages_of(drafts), volatile))
    assert dialect(name).validate(body) == []
    check_types(name, body)


@pytest.mark.parametrize("name", NAMES)
@modest
@given(drafts=settled_histories(), prefix=surroundings, volatile=surroundings, data=st.data())
def test_a_rendering_begins_that_of_the_longer_history(
    name: str, drafts: Drafts, prefix: tuple[str, ...], volatile: tuple[str, ...], data: st.DataObject
) -> None:
    messages = messages_of(drafts)
    cuts = [index for index in range(1, len(messages) + 1) if index == len(messages) or messages[index].role != "tool"]
    earlier = messages[: data.draw(st.sampled_from(cuts))]
    stable = flatten(name, dialect(name).render(Given(prefix, earlier)))
    longer = flatten(name, dialect(name).render(Given(prefix, messages, volatile)))
    assert longer[: len(stable)] == stable
    assert flatten(name, dialect(name).render(Given(prefix, earlier, volatile)))[: len(stable)] == stable


@pytest.mark.parametrize("name", NAMES)
@modest
@given(drafts=settled_histories())
def test_rendering_changes_nothing_and_gives_the_same_bytes_again(name: str, drafts: Drafts) -> None:
    turn = Given(("You are kind.",), messages_of(drafts), ("It is noon.",))
    before = repr(turn)
    assert encode(dialect(name).render(turn)) == encode(dialect(name).render(turn))
    assert repr(turn) == before


def flatten(name: str, body: dict[str, Any]) -> list[object]:
    """What a provider's cache compares: for Anthropic the blocks, whatever message they stand in, without marks."""
    if name != "anthropic":
        return list(body["messages" if name == "openai" else "input"])
    turns: list[tuple[str, Sequence[dict[str, Any]]]] = [("system", body.get("system", []))]
    turns += [(message["role"], message["content"]) for message in body["messages"]]
    return [(role, {**block, "cache_control": None}) for role, blocks in turns for block in blocks]
