"""Lines, seals and what is left of them after damage."""

import json
import os
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daypack.files.jsonl import check, complete, read_at, salvage, scan, seal, unterminated, write_all


def sealed(seq: int) -> bytes:
    return seal(b'{"seq":%d,"id":"msg-%d","content":"text"}' % (seq, seq))[0]


def test_a_seal_is_the_checksum_of_the_bytes_before_it() -> None:
    line, crc = seal(b'{"seq":1,"x":"\xc3\xa9"}')
    assert line == b'{"seq":1,"x":"\xc3\xa9","crc":"%b"}\n' % crc.encode()
    body = line[: line.index(b',"crc"')]
    assert json.loads(line)["crc"] == crc == f"{crc32(body):08x}"
    assert check(line[:-1]) == "sealed"


@pytest.mark.parametrize("line", [b"", b"{}", b'{"a":1}', b'{"crc":"00000000"}', b"x" * 18, b"x" * 40])
def test_a_line_without_a_seal_is_unsealed(line: bytes) -> None:
    assert check(line) in ("unsealed", "broken")
    assert check(line) == ("broken" if b"crc" in line else "unsealed")


def test_every_changed_byte_breaks_the_seal() -> None:
    line = sealed(1)[:-1]
    for at in range(len(line)):
        for bit in range(8):
            changed = line[:at] + bytes([line[at] ^ 1 << bit]) + line[at + 1 :]
            assert check(changed) != "sealed"
            assert check(changed) == "broken" or not changed.endswith(b'"}')


@pytest.mark.parametrize("before", [bytes(100), b'{"seq":7,"id":"ms', b'{"seq":{"seq":', b"junk"])
def test_a_whole_line_behind_foreign_bytes_is_found(before: bytes) -> None:
    assert salvage(before + sealed(8)[:-1]) == sealed(8)[:-1]
    assert salvage(before) is None


def test_a_tail_is_complete_with_or_without_one_wrong_last_byte() -> None:
    line = sealed(3)[:-1]
    assert complete(line) == complete(line + b"\x0b") == line
    assert complete(line[:-1]) == complete(line + b"ab") == complete(b"") == b""


@given(lines=st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=20))
def test_scanning_yields_every_terminated_line_with_its_offset(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("scan") / "log"
    data = b"\n".join(lines)
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    try:
        terminated = data.split(b"\n")[:-1]
        found = list(scan(fd, 0, len(data)))
        assert [line for _, line in found] == [line + b"\n" for line in terminated]
        assert all(data[offset : offset + len(line)] == line for offset, line in found)
        assert unterminated(fd, 0, len(data)) == data.split(b"\n")[-1]
    finally:
        os.close(fd)


def test_lines_longer_than_a_chunk_are_scanned_whole(tmp_path: Path) -> None:
    long = b"x" * 3_000_000
    (tmp_path / "log").write_bytes(b"a\n" + long + b"\nb\n" + long)
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    size = os.fstat(fd).st_size
    assert [(offset, len(line)) for offset, line in scan(fd, 0, size)] == [(0, 2), (2, 3_000_001), (3_000_003, 2)]
    assert len(unterminated(fd, 0, size)) == 3_000_000
    os.close(fd)


def test_short_writes_and_reads_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, pread = os.write, os.pread
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))  # type: ignore[misc]
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: pread(fd, min(length, 5), offset))  # type: ignore[misc]
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    write_all(fd, bytes(range(100)))
    assert read_at(fd, 10, 50) == bytes(range(10, 60))
    assert read_at(fd, 90, 50) == bytes(range(90, 100))
    os.close(fd)
