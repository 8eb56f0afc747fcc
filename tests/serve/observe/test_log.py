"""The server's log: forms, levels, floods, forged lines, and a standard error that does not take lines."""

import io
import json
import os
import sys
import threading
from typing import Any

import pytest

from daypack.serve.observe import log as logs
from daypack.serve.observe.log import Log

Err = pytest.CaptureFixture[str]


def text_of(log: Log, err: Err) -> str:
    assert log.flush(10)
    return err.readouterr().err


def lines(log: Log, err: Err) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(log, err).split("\n")[:-1]]


def test_a_line_has_time_level_event_and_the_fields_that_are_known(capsys: Err) -> None:
    log = Log("info", "json")
    log.line("warning", "refused", request="r-1", user="", status=401, ms=1.2345)
    [line] = lines(log, capsys)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "event": "refused", "request": "r-1", "status": 401, "ms": 1.2}


def test_lines_below_the_level_are_not_written(capsys: Err) -> None:
    log = Log("warning", "json")
    for level in logs.LEVELS:
        log.line(level, level)
        log.limited("x", level, f"limited {level}")
    assert [line["event"] for line in lines(log, capsys)] == ["warning", "limited warning", "error", "limited error"]


@pytest.mark.parametrize("form", logs.FORMS)
@pytest.mark.parametrize(
    "bad", ["a\nINFO forged", "a\r\nb", "\x1b[2K", "\x9b2J", "\u2028x", "\x85y", "\ud800", "\u202e", "\0"]
)
def test_no_value_forges_a_line_or_controls_a_terminal(form: logs.Form, bad: str, capsys: Err) -> None:
    log = Log("info", form)
    log.line("info", "request", user=bad, at=[bad])
    text = text_of(log, capsys)
    assert len(text.splitlines()) == 1
    assert text.removesuffix("\n").isprintable()


def test_text_lines_quote_what_is_not_a_plain_word(capsys: Err) -> None:
    log = Log("info", "text")
    log.line("info", "request", user='a b="c', tool="get_user", n=3)
    _, rest = text_of(log, capsys).split(" ", 1)
    assert rest == 'INFO request user="a b=\\"c" tool=get_user n=3\n'


def test_long_values_are_cut(capsys: Err) -> None:
    log = Log("info", "json")
    log.line("info", "request", user="x" * 10_000)
    [line] = lines(log, capsys)
    assert len(line["user"]) == logs.MAX_VALUE_CHARS + 1


def test_a_flood_is_counted_not_written(capsys: Err) -> None:
    log = Log("info", "json")
    for _ in range(5_000):
        log.limited("AccessDenied", "warning", "authentication.failed", status=401)
    log.limited("other", "warning", "authentication.failed", status=401)
    told = lines(log, capsys)
    assert len(told) == logs.LINES_PER_WINDOW + 2
    [count] = [line for line in told if "suppressed" in line]
    assert count["suppressed"] == 5_000 - logs.LINES_PER_WINDOW
    assert (count["level"], count["event"], count["error"]) == ("warning", "authentication.failed", "AccessDenied")


def test_the_count_of_a_flood_comes_without_another_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "WINDOW_SECONDS", 0.05)
    written = threading.Event()

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            if "suppressed" in text:
                written.set()
            return len(text)

    monkeypatch.setattr(sys, "stderr", Stream())
    log = Log("info", "json")
    for _ in range(logs.LINES_PER_WINDOW * 50):
        log.limited("AccessDenied", "warning", "authentication.failed")
    assert written.wait(30)


def test_a_reader_that_does_not_read_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(logs, "MAX_QUEUED", 500)
    with os.fdopen(writing, "w") as stream, os.fdopen(reading, "rb") as reader:
        monkeypatch.setattr(sys, "stderr", stream)
        log = Log("info", "json")
        for number in range(20_000):  # far more than the pipe and the queue take
            log.line("info", "request", n=number)
        assert log.dropped > 0
        assert not log.flush(0.01)
        read = b""
        while b"log.dropped" not in read:
            read += os.read(reader.fileno(), 1 << 16)
            log.line("info", "request", n=-1)
        told = [json.loads(line) for line in read.split(b"\n")[:-1]]
        [dropped] = [line for line in told if line["event"] == "log.dropped"][:1]
        assert dropped["lines"] > 0
        draining = threading.Thread(target=reader.read)
        draining.start()
        assert log.flush(30)
        monkeypatch.undo()
        stream.close()
        draining.join()


def test_a_full_or_closed_standard_error_is_counted_and_then_said(capsys: Err, monkeypatch: pytest.MonkeyPatch) -> None:
    log, captured = Log("info", "json"), sys.stderr
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        log.line("info", "lost")
        assert log.flush(10)
    monkeypatch.setattr(sys, "stderr", None)
    log.line("info", "lost")
    assert log.flush(10)
    assert log.dropped == 2
    monkeypatch.setattr(sys, "stderr", captured)
    log.line("info", "back")
    told = lines(log, capsys)
    assert [(line["event"], line.get("lines")) for line in told] == [("log.dropped", 2), ("back", None)]
