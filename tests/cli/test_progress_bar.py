"""The bar of long work: how it is drawn, in a terminal and in a file."""

import io
import time

import pytest

from daypack.cli.progress_bar import ProgressBar, draw


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time; tests set it."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("share", "bar"),
    [
        (0, "........................   0%"),
        (0.5, "############............  50%"),
        (2, "######################## 100%"),
    ],
)
def test_the_bar_is_as_full_as_the_work_is_done(share: float, bar: str) -> None:
    assert draw(share, ascii_only=True) == bar


def test_a_terminal_shows_one_line_and_erases_it(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with ProgressBar(100) as bar:
        bar.show(10, "too early")
        clock[0] = 10.0
        bar.show(50, "1 of 2 files")
    assert terminal.getvalue() == "\r\x1b[K████████████░░░░░░░░░░░░  50%  1 of 2 files, about 10 s left\r\x1b[K"


def test_a_file_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stderr", file)
    with ProgressBar(1_000_000) as bar:
        for second in range(0, 30, 3):
            clock[0] = float(second)
            bar.show(second * 1_000, f"{second} of 9")
    file.seek(0)
    lines = file.read().splitlines()
    assert [line.partition("  ")[2] for line in lines] == [
        " 1%  12 of 9, about 16 min left",
        " 2%  24 of 9, about 16 min left",
    ]
