"""What a model keeps at the top level of its snapshots comes back to it; what it may do is the host's to say."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from protocol.pieces import few, values, words
from turn.scenes import MARKER, SECRET, outputs, sent, stage
from turn.snapshot_replies import ADA, ask, block, exchange, talking

from daypack.errors import BadConfig
from daypack.protocol import SEPARATOR
from daypack.session import Session
from daypack.types.carried import MAX_BYTES, MAX_KEYS, MAX_VALUE_BYTES, carry

DEFINED = {"version", "runtime", "capabilities"}


def handed_back(session: Session) -> dict[str, Any]:
    """The keys of the next stamp that the protocol does not define."""
    stamp = ask(session).expected
    assert stamp
    return {key: value for key, value in stamp.items() if key not in DEFINED}


@pytest.mark.requirement("X40")
def test_unknown_keys_of_a_snapshot_are_handed_back_in_the_next_rounds(home: str) -> None:
    session = talking(home)
    exchange(session, mood="calm", plan={"step": 2, "of": [1, 2.5, True, "三"]})
    kept = {"mood": "calm", "plan": {"step": 2, "of": [1, 2.5, True, "三"]}}
    turn = ask(session)
    assert turn.expected
    assert {key: turn.expected[key] for key in kept} == kept
    assert '"mood":"calm"' in turn.messages("openai")[-1]["content"]
    assert session.tiers.carried == kept
    exchange(session, mood="glad")
    assert handed_back(stage(home)) == {**kept, "mood": "glad"}
    exchange(session, plan=None)
    assert handed_back(session) == {"mood": "glad"}
    assert outputs(stage(home).replay(turn.event_id or "")) == outputs(turn)


@pytest.mark.requirement("X40", "S0-R8")
def test_no_key_of_a_model_takes_the_place_of_the_hosts_own(home: str) -> None:
    session = talking(home)
    fields: dict[str, Any] = {" version ": 9, "runtime\n": {"round": 99}, " core": [1], "extra": {"version": 7}}
    exchange(session, **fields)
    turn = ask(session)
    assert turn.expected
    assert turn.expected["version"] == 2.3
    assert turn.expected["runtime"]["round"] == 2
    assert list(turn.expected) == ["version", "runtime", "capabilities", "extra"]
    assert session.tiers.violation_counts["X40"] == 3


@pytest.mark.requirement("X40")
def test_keys_that_are_too_many_or_too_large_are_not_carried_and_that_is_reported(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block()], note="kept", huge="x" * 600)
    [told] = session.tiers.violations
    assert (told["rule"], told["where"], told["level"]) == ("X40", "huge", "should")
    assert "602 bytes, at most 512" in told["problem"]
    assert handed_back(session) == {"note": "kept"}
    exchange(session, note="y" * 600)
    assert handed_back(session) == {"note": "kept"}
    more: dict[str, Any] = {f"k{number}": number for number in range(40)}
    exchange(session, **more)
    assert len(handed_back(session)) == MAX_KEYS
    assert [one.content for one in session.tiers.core] == [ADA]
    raw = next(message for message in session.messages() if "huge" in json.dumps(message.meta))
    assert "x" * 600 in json.dumps(raw.meta)


def test_secrets_in_carried_keys_are_not_handed_back(home: str) -> None:
    session = talking(home)
    exchange(session, token=SECRET, deep=[{SECRET: f"is {SECRET}"}])
    turn = ask(session)
    assert SECRET not in sent(turn)
    assert turn.expected
    assert turn.expected["token"] == MARKER
    assert turn.expected["deep"] == [{MARKER: f"is {MARKER}"}]


@few
@given(words, values(), values())
def test_whatever_a_model_sends_the_carried_keys_stay_within_their_bounds(key: str, first: Any, second: Any) -> None:
    carried: dict[str, Any] = {}
    for number in range(30):
        given = {f"{key}{number}": first, key: second, f" {key}": [first] * number}
        carried, refused = carry(carried, given)
        assert len(carried) <= MAX_KEYS
        assert len(json.dumps(carried, ensure_ascii=False, separators=(",", ":")).encode()) <= MAX_BYTES
        assert all(len(json.dumps(one, ensure_ascii=False).encode()) <= 2 * MAX_VALUE_BYTES for one in carried.values())
        assert set(refused) <= set(given)
        assert carry(carried, carried) == (carried, {})


# Trimming


@pytest.mark.requirement("S0-R10.6", "S0-R10.7")
def test_tags_and_contents_are_stored_and_shown_without_white_space_around_them(home: str) -> None:
    session = talking(home)
    exchange(session, core=[block(content=f"\n {ADA}\t\u3000", tags=[" user ", "", "  ", "\ttwo words\n"])])
    [stored] = session.tiers.core
    assert (stored.content, stored.tags) == (ADA, ("user", "two words"))
    assert session.tiers.violations == ()


# Capabilities


@pytest.mark.requirement("S0-T11")
def test_the_stamp_names_the_capabilities_of_the_protocols_example(home: str) -> None:
    turn = ask(talking(home))
    assert turn.expected
    assert turn.expected["capabilities"] == [{"name": "memory", "scope": "write_once"}]


@pytest.mark.requirement("S0-T11")
def test_capabilities_are_set_for_a_user_or_for_one_session(home: str) -> None:
    session = talking(home)
    config = Path(session.history.layout.home.config)
    config.write_text('capabilities = [{ name = "memory", scope = "write" }, { name = "tools", scope = "none" }]\n')
    turn = ask(stage(home))
    assert turn.expected
    assert turn.expected["capabilities"] == [{"name": "memory", "scope": "write"}, {"name": "tools", "scope": "none"}]
    session.history.facets.write_meta({"capabilities": []})
    turn = ask(stage(home))
    assert turn.expected
    assert turn.expected["capabilities"] == []
    stage(home).accept(f"Yes.{SEPARATOR}{json.dumps({**turn.expected, 'memory': {}})}")


@pytest.mark.parametrize(
    "text",
    [
        "capabilities = 5",
        'capabilities = ["memory"]',
        'capabilities = [{ name = "memory" }]',
        'capabilities = [{ name = "", scope = "write" }]',
        'capabilities = [{ name = "a", scope = "b", more = 1 }]',
        'capabilities = [{ name = "a", scope = "b" }, { name = "a", scope = "c" }]',
    ],
)
def test_bad_capabilities_are_refused_before_a_call_is_paid_for(home: str, text: str) -> None:
    session = talking(home)
    Path(session.history.layout.home.config).write_text(text)
    session.append("user", "Hello.")
    with pytest.raises(BadConfig, match=r"capabilities.*write_once"):
        stage(home).prepare(protocol=True)
    assert session.prepare(protocol=False).event_id
