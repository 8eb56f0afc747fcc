"""The numbers of the window come from the settings, and a wrong one is refused with its place."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from turn.scenes import FakeMemory, excerpts_in, stage

import daypack
from daypack.config import Given
from daypack.errors import BadConfig
from daypack.session import Session
from daypack.turn.policy import (
    COMPACTION_MIN_ROOM_TOKENS,
    DEFAULT_WINDOW,
    FREE_FACTOR,
    OPENING_SHARES,
    SMALL_OPENING_SHARE,
    WindowPolicy,
    read_window,
)

REPOSITORY = Path(__file__).parents[2]


def policy_of(session: Session) -> WindowPolicy:
    return session.turns.inputs.window


def reopen(session: Session, **settings: object) -> Session:
    session.close()
    home = session.layout.home
    return daypack.open_session(session.name, home=home.root, uid=home.uid, **settings)  # type: ignore[arg-type]


def fill(session: Session, count: int) -> None:
    for number in range(count):
        session.append("user", f"Question {number}: " + "harbour lantern " * 40)
        session.append("assistant", f"Answer {number}: " + "tide and rope " * 60)
    session.append("user", "Where was the lantern of question 3?")


@pytest.mark.requirement("S4-F8")
def test_argument_environment_meta_and_file_decide_key_by_key(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stage(home)
    assert policy_of(session) == DEFAULT_WINDOW
    Path(session.layout.home.config).write_text(
        "[window]\nepoch_share = 0.2\nprefix_share = 0.3\nexcerpt_tokens = 200\nmemory_hits = 3\n", encoding="utf-8"
    )
    session.history.facets.write_meta({"window": {"prefix_share": 0.4, "excerpt_tokens": 400, "memory_hits": 5}})
    monkeypatch.setenv("DAYPACK_WINDOW_EXCERPT_TOKENS", "800")
    monkeypatch.setenv("DAYPACK_WINDOW_MEMORY_HITS", "7")
    assert policy_of(reopen(session, window={"memory_hits": 1})) == WindowPolicy(
        epoch_share=0.2, prefix_share=0.4, excerpt_tokens=800, memory_hits=1
    )


@pytest.mark.requirement("G11")
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epoch_share", 1.5, "at most 1"),
        ("epoch_share", 0, "above 0"),
        ("epoch_share", True, "above 0"),
        ("epoch_share", "much", "above 0"),
        ("excerpt_tokens", -1, "from 0 to"),
        ("excerpt_tokens", 2.5, "from 0 to"),
        ("fresh_outputs", 6, "verbatim_share"),
        ("colour", 1, "epoch_share"),
    ],
)
def test_a_wrong_number_is_refused_with_its_name_place_and_range(name: str, value: object, allowed: str) -> None:
    with pytest.raises(BadConfig) as refused:
        read_window({name: Given(value, "/home/config.toml")})
    assert f"window.{name}" in refused.value.problem
    assert refused.value.place == "/home/config.toml"
    assert allowed in (refused.value.hint or "")


@pytest.mark.requirement("G11")
def test_shares_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadConfig, match="soft_share"):
        read_window({"epoch_share": Given(0.8, "argument")})
    read_window({"epoch_share": Given(0.8, "argument"), "soft_share": Given(0.8, "environment")})


@given(
    room=st.integers(0, 2_000_000),
    more=st.integers(0, 2_000_000),
    shares=st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(sorted),
    chosen=st.booleans(),
)
def test_an_epoch_opens_below_the_share_that_ends_it_and_a_larger_room_is_no_emptier(
    room: int, more: int, shares: list[float], chosen: bool
) -> None:
    epoch, soft, hard = shares
    policy = WindowPolicy(epoch_share=epoch if chosen else None, soft_share=soft, hard_share=hard)
    opening = policy.opening_share(room)
    assert 0 < opening <= policy.background_share(room) <= hard
    assert opening <= policy.opening_share(room + more)
    assert opening == epoch if chosen else opening <= OPENING_SHARES[1]


@pytest.mark.parametrize(
    ("room", "share"),
    [
        (1, SMALL_OPENING_SHARE),
        (12_288, OPENING_SHARES[0]),
        (60_000, 0.8),
        (123_904, 0.884),
        (10**6, OPENING_SHARES[1]),
    ],
)
def test_a_larger_window_opens_fuller(room: int, share: float) -> None:
    assert DEFAULT_WINDOW.opening_share(room) == pytest.approx(share, abs=0.001)


def test_a_window_that_is_no_table_is_refused_with_its_file(home: str) -> None:
    session = stage(home)
    place = session.layout.home.config
    Path(place).write_text("window = 5\n", encoding="utf-8")
    with pytest.raises(BadConfig, match="window") as refused:
        reopen(session)
    assert refused.value.place == place


@pytest.mark.requirement("G8", "G11")
def test_the_numbers_decide_how_a_window_is_filled_and_recorded_turns_still_replay(home: str) -> None:
    session = reopen(stage(home), window={"epoch_share": 0.3})
    fill(session, 60)
    small = session.prepare(budget=8000)
    session = reopen(session, window={"epoch_share": 0.7})
    session.refresh()
    session.append("user", "And the lantern of question 5?")
    large = session.prepare(budget=8000)
    assert large.stable_tokens > small.stable_tokens
    assert session.replay(str(small.event_id)).request() == small.request()


def test_zero_turns_excerpts_and_memory_entries_off(home: str) -> None:
    session = stage(home)
    session.memory = FakeMemory("A document.")
    fill(session, 60)
    assert excerpts_in(session.prepare(budget=8000, dry_run=True))
    session = reopen(session, window={"excerpt_tokens": 0, "memory_hits": 0})
    session.memory = memory = FakeMemory("A document.")
    assert not excerpts_in(session.prepare(budget=8000, dry_run=True))
    assert not memory.queries


def test_every_setting_of_the_window_is_documented_with_its_default() -> None:
    documented = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    for field in msgspec.structs.fields(WindowPolicy):
        default = "unset" if field.default is None else field.default
        assert f"| `{field.name}` | {default} |" in documented
    low, high = OPENING_SHARES
    assert f"1 - {FREE_FACTOR}/room^0.75, at least {low} and at most {high} " in documented
    assert f"; {SMALL_OPENING_SHARE} with a room below {COMPACTION_MIN_ROOM_TOKENS:,} |" in documented
