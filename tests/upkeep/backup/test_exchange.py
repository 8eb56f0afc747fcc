"""Two paths exchanged in one step, by the C library of Linux or of macOS, or one after the other."""

import ctypes
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daypack.upkeep.backup import exchange
from daypack.upkeep.backup.exchange import find_swap


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str, str]:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return str(tmp_path / "new"), str(tmp_path / "old"), str(tmp_path / "aside")


def contents(*paths: str) -> list[str]:
    return [Path(path, "file").read_text() for path in paths if os.path.exists(path)]


def mac_library(code: int = 0) -> Any:
    """The C library of macOS, as far as it is used here: renamex_np(from, to, RENAME_SWAP)."""

    def renamex_np(path: bytes, other: bytes, flags: int) -> int:
        assert flags == 2
        if code:
            ctypes.set_errno(code)
            return -1
        os.rename(other, other + b".between")
        os.rename(path, other)
        os.rename(other + b".between", path)
        return 0

    return SimpleNamespace(renamex_np=renamex_np)


def test_two_folders_are_exchanged_here(pair: tuple[str, str, str]) -> None:
    exchange.exchange(*pair)
    assert contents(pair[1], pair[0] if os.path.exists(pair[0]) else pair[2]) == ["new", "old"]


def test_macos_exchanges_by_its_own_function(pair: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_swap", lambda: find_swap(mac_library(), "darwin"))
    exchange.exchange(*pair)
    assert contents(*pair) == ["old", "new"]


@pytest.mark.parametrize(
    ("library", "platform"),
    [
        (SimpleNamespace(), "linux"),
        (SimpleNamespace(), "darwin"),
        (SimpleNamespace(), "freebsd14"),
        (mac_library(errno.ENOTSUP), "darwin"),
        (mac_library(errno.EINVAL), "darwin"),
    ],
)
def test_where_there_is_no_exchange_the_old_one_is_moved_aside(
    pair: tuple[str, str, str], library: Any, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_swap", lambda: find_swap(library, platform))
    exchange.exchange(*pair)
    assert contents(*pair) == ["new", "old"]
    assert not os.path.exists(pair[0])


def test_another_error_is_raised_and_nothing_is_moved(
    pair: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_swap", lambda: find_swap(mac_library(errno.EIO), "darwin"))
    with pytest.raises(OSError) as raised:
        exchange.exchange(*pair)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, pair[1])
    assert contents(*pair) == ["new", "old"]
    assert os.path.exists(pair[0])
