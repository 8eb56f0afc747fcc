"""Power failures: from a recorded trace of file calls, images of the disk, each opened, examined and appended to."""

import os
import random
import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from campaigns import Campaign

import daypack
from daypack import system
from daypack.errors import DamageWarning
from daypack.session import Session
from daypack.upkeep.doctor import examine_session
from tests.history.crash_images import SECTOR, Trace, lay_out

ORDERS = ("strict", "ext4", "reordered")
BATCH = 4


class Load:
    """What a session appends, and after how many calls it was acknowledged."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.messages: dict[str, int] = {}
        self.events: dict[str, int] = {}
        self.batches: list[list[str]] = []

    def run(self, session: Session, name: str, rounds: int) -> None:
        chance = random.Random(name)
        for number in range(rounds):
            text = f"{name} {number} " + "word " * chance.choice((1, 40, 300))
            if number % 3 == 0:
                texts = [f"{part} of {text}" for part in range(BATCH)]
                self.batches.append(texts)
                session.append_many([{"role": "user", "content": part} for part in texts])
                for part in texts:
                    self.messages[part] = len(self.trace)
            elif number % 3 == 1:
                session.append("user", text, client_key=f"{name} {number}")
                self.messages[text] = len(self.trace)
            else:
                session.append_event("noted", {"text": text})
                self.events[text] = len(self.trace)
                session.append("assistant", text, tool_calls=[{"id": text[:12], "name": "run", "arguments": "{}"}])
                self.messages[text] = len(self.trace)


def record(home: str, threads: int) -> tuple[Trace, Load]:
    """Record a session under load, with one thread or several that share their syncs."""
    trace = Trace(home)
    load = Load(trace)
    with trace.recording():
        os.makedirs(home)
        with daypack.open_session("work", home=home) as session:
            session.pin("rules.md", "Answer in one sentence.")
            crowd = [threading.Thread(target=load.run, args=(session, f"t{each}", 8)) for each in range(threads)]
            for thread in crowd:
                thread.start()
            for thread in crowd:
                thread.join()
    return trace, load


def check(home: str, load: Load, stop: int) -> None:
    """Open what a power failure left after `stop` calls, and append to it."""
    acknowledged = {text for text, at in load.messages.items() if at <= stop}
    events = {text for text, at in load.events.items() if at <= stop}
    with daypack.open_session("work", home=home) as session:
        for _ in range(2):  # as a reader sees it, then after an append
            texts = [message.text for message in session.messages()]
            assert acknowledged <= set(texts)
            assert events <= {event.data["text"] for event in session.events() if event.type == "noted"}
            for batch in load.batches:
                assert sum(text in texts for text in batch) in (0, len(batch))
            session.append("user", "after the crash")
            assert session.tail(1)[0].text == "after the crash"
        seqs = [message.seq for message in session.messages()]
        assert seqs == list(range(1, len(seqs) + 1))
        damaged = {finding.path for finding in examine_session(session.layout) if finding.severity == "damage"}
        assert damaged <= {session.layout.events, session.layout.messages}
        assert session.layout.messages not in damaged


@pytest.mark.requirement("G6")
@pytest.mark.parametrize("threads", [1, 4])
def test_after_a_power_failure_everything_acknowledged_is_there_and_batches_are_whole(
    home: str, tmp_path: Path, threads: int, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, load = record(home, threads)
    # A session exists once it was opened: before that there is nothing to keep.
    begun = min(*load.messages.values(), *load.events.values()) - 1
    chance = random.Random(campaign.seed)
    for number in range(campaign.size("crash images", 250)):
        monkeypatch.setattr(system, "_boot", number.to_bytes(16, "big"))
        stop = chance.randint(begun, len(trace))
        place = tmp_path / "image"
        image = trace.image(stop, ORDERS[number % len(ORDERS)], chance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            check(lay_out(image, home, place), load, stop)
        shutil.rmtree(place)


def _zero(data: bytearray, start: int) -> None:
    data[start : start + SECTOR] = bytes(min(SECTOR, len(data) - start))


@pytest.mark.requirement("G6")
@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_batch_that_lost_a_sector_is_set_aside_as_torn(
    home: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = daypack.open_session("work", home=home)
    session.append("user", "before")
    start = os.path.getsize(session.layout.messages)
    session.history.messages.writer._offsets.sync()  # pyright: ignore[reportPrivateUsage]
    session.append_many([{"role": "user", "content": f"{number} " + "x" * 700} for number in range(4)])
    path = Path(session.layout.messages)
    data = bytearray(path.read_bytes())
    _zero(data, {"first": start, "middle": (start + len(data)) // 2, "last": len(data) - SECTOR - 1}[where])
    image = path.parent.parent / "power-failure"
    shutil.copytree(path.parent, image)  # as the disk is: the session was not closed
    (image / "messages.jsonl").write_bytes(data)
    session.close()
    monkeypatch.setattr(system, "_boot", b"another boot ...")
    with daypack.open_session("power-failure", home=home) as after:
        assert [message.text for message in after.messages()] == ["before"]
        assert after.append("user", "after").seq == 2
        assert after.damage == []
        torn = [event.data for event in after.events() if event.type == "log.torn"]
        assert [(event["offset"], event["bytes"]) for event in torn] == [(start, len(data) - start)]
        assert (after.path / str(torn[0]["file"])).read_bytes() == data[start:]


def _zero_a_sector(data: bytearray) -> None:
    _zero(data, 300)


def _flip_a_bit(data: bytearray) -> None:
    data[320] ^= 1


@pytest.mark.parametrize("spoil", [_zero_a_sector, _flip_a_bit])
def test_damage_before_an_acknowledged_line_is_reported_and_left_in_place(
    home: str, spoil: Callable[[bytearray], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append_many([{"role": "user", "content": f"{number} " + "x" * 700} for number in range(4)])
        session.append("user", "acknowledged later")
        layout = session.layout
    path = Path(layout.messages)
    data = bytearray(path.read_bytes())
    spoil(data)
    path.write_bytes(data)
    shutil.rmtree(layout.context)
    monkeypatch.setattr(system, "_boot", b"another boot ...")
    with daypack.open_session("work", home=home) as session:
        with pytest.warns(DamageWarning):
            seqs = [message.seq for message in session.messages()]
        assert seqs == [2, 3, 4, 5]
        session.append("user", "more")
        assert path.read_bytes().startswith(data)
        assert [finding.line for finding in examine_session(session.layout) if finding.severity == "damage"] == [1]


def test_damage_in_a_last_line_that_was_synced_when_its_session_closed_is_no_torn_tail(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daypack.open_session("work", home=home) as session:
        session.append_many([{"role": "user", "content": f"{number}"} for number in range(3)])
        path = Path(session.layout.messages)
    data = bytearray(path.read_bytes())
    data[-60] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(system, "_boot", b"another boot ...")
    with daypack.open_session("work", home=home) as session:
        with pytest.warns(DamageWarning):
            seqs = [message.seq for message in session.messages()]
        assert seqs == [1, 2]
        assert session.append("user", "more").seq == 4
        assert path.read_bytes().startswith(data)
