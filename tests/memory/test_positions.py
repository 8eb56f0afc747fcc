"""Consistency tokens are signed: nobody waits for a write that their own user was not told about."""

import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from zlib import crc32

import pytest

from daypack.errors import BadInput
from daypack.memory.tools import Memories, open_memory
from daypack.memory.writes.positions import Position, Positions

STORE = "ab" * 8
HERE = Position(STORE, "cd" * 16, 7, 2)


def key_file(home: str) -> Path:
    (found,) = Path(home).rglob("positions.key")
    return found


@pytest.mark.requirement("G13")
def test_a_token_is_good_for_its_user_and_its_store_only() -> None:
    positions = Positions()
    token = positions.write_token("ada", HERE)
    assert positions.read_token("ada", token, STORE) == HERE
    with pytest.raises(BadInput, match="of this user"):
        positions.read_token("eve", token, STORE)
    with pytest.raises(BadInput, match="different store"):
        positions.read_token("ada", token, "00" * 8)
    with pytest.raises(BadInput, match="of this user"):
        Positions().read_token("ada", token, STORE)  # another key


@pytest.mark.requirement("G13")
def test_the_token_of_a_database_has_the_position_of_its_log_and_the_key_from_there() -> None:
    here = HERE._replace(log=2**63)
    token = Positions(lambda: b"k" * 32).write_token("ada", here)
    assert Positions(lambda: b"k" * 32).read_token("ada", token, STORE) == here
    data = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[34] ^= 1  # within the position of the log
    older = bytes([2, *data[1:33], *data[41:]])  # as a version without one
    for forged in (bytes(data), older):
        with pytest.raises(BadInput, match="of this user"):
            Positions(lambda: b"k" * 32).read_token("ada", urlsafe_b64encode(forged).decode().rstrip("="), STORE)


@pytest.mark.requirement("G13")
def test_a_position_that_no_write_returned_cannot_be_waited_for(memories: Memories, memory_id: str) -> None:
    token = memories.add_entry(memory_id, "one", "one").token
    data = bytearray(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[28] = 200  # the seq of an entry that does not exist
    changed = urlsafe_b64encode(data).decode().rstrip("=")
    body = bytes([1, *data[1:33]])
    unsigned = urlsafe_b64encode(body + crc32(body).to_bytes(4, "big")).decode().rstrip("=")  # of an older version
    for forged in (changed, unsigned, token[:-6], f"{token}AAAA"):
        with pytest.raises(BadInput, match="of this user"):
            memories.await_consistency(token=forged, timeout_ms=600_000)


@pytest.mark.requirement("G13")
def test_reads_since_a_write_need_its_token(memories: Memories, memory_id: str) -> None:
    token = memories.add_entry(memory_id, "one", "one").token
    assert memories.since(token).list_entries(memory_id).count == 1
    with pytest.raises(BadInput, match="of this user"):
        memories.as_user("eve").since(token)
    with pytest.raises(BadInput, match="of this user"):
        memories.since(token[:-6])


def test_the_key_is_private_and_outlives_the_process(home: str) -> None:
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("Launch").memory_id
        token = memories.add_entry(memory_id, "one", "one").token
    assert stat.S_IMODE(key_file(home).stat().st_mode) == 0o600
    assert len(key_file(home).read_bytes()) == 32
    with open_memory(home=home) as memories:
        assert memories.await_consistency(token=token).status == "consistent"


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "positions.key"
    path.write_bytes(content)
    token = Positions(str(path)).write_token("ada", HERE)
    assert len(path.read_bytes()) == 32
    assert Positions(str(path)).read_token("ada", token, STORE) == HERE


def test_without_a_place_for_the_key_writes_still_return_a_token(home: str) -> None:
    with open_memory(home=home) as memories:
        memory_id = memories.create_memory("Launch").memory_id
        place = key_file(home)
    place.unlink()
    place.symlink_to("/dev/null")
    with open_memory(home=home) as memories:
        added = memories.add_entry(memory_id, "one", "one")
        assert memories.await_consistency(token=added.token).status == "consistent"
    assert os.readlink(place) == "/dev/null"
