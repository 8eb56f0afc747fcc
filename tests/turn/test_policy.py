"""The numbers of the window come from the settings, and a wrong one is refused with its place."""

from pathlib import Path

import msgspec
import pytest
from turn.scenes import FakeMemory, stage

import daypack
from daypack.config import Given
from daypack.errors import BadConfig
from daypack.session import Session
from daypack.turn.policy import DEFAULT_WINDOW, WindowPolicy, read_window

REPOSITORY = Path(__file__).parents[2]


def policy_of(session: Session) -> WindowPolicy:
    return session.turns.inputs.window


def reopen(session: Session, **settings: object) -> Session:
    session.close()
    home = session.history.layout.home
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
    Path(session.history.layout.home.config).write_text(
        "[window]\nepoch_share = 0.2\nprefix_share = 0.3\nfresh_outputs = 2\nmemory_hits = 3\n", encoding="utf-8"
    )
    session.history.facets.write_meta({"window": {"prefix_share": 0.4, "fresh_outputs": 4, "memory_hits": 5}})
    monkeypatch.setenv("DAYPACK_WINDOW_FRESH_OUTPUTS", "8")
    monkeypatch.setenv("DAYPACK_WINDOW_MEMORY_HITS", "7")
    assert policy_of(reopen(session, window={"memory_hits": 1})) == WindowPolicy(
        epoch_share=0.2, prefix_share=0.4, fresh_outputs=8, memory_hits=1
    )


@pytest.mark.requirement("G11")
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epoch_share", 1.5, "at most 1"),
        ("epoch_share", 0, "above 0"),
        ("epoch_share", True, "above 0"),
        ("epoch_share", "much", "above 0"),
        ("fresh_outputs", -1, "from 0 to"),
        ("fresh_outputs", 2.5, "from 0 to"),
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


def test_a_window_that_is_no_table_is_refused_with_its_file(home: str) -> None:
    session = stage(home)
    place = session.history.layout.home.config
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
    assert session.prepare(budget=8000, dry_run=True).record.excerpts
    session = reopen(session, window={"excerpt_tokens": 0, "memory_hits": 0})
    session.memory = memory = FakeMemory("A document.")
    assert not session.prepare(budget=8000, dry_run=True).record.excerpts
    assert not memory.queries


def test_every_setting_of_the_window_is_documented_with_its_default() -> None:
    documented = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    for field in msgspec.structs.fields(WindowPolicy):
        assert f"| `{field.name}` | {field.default} |" in documented
