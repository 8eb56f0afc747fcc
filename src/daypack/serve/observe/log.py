"""The server's log on standard error: one line per event, as JSON or as text; never contents, queries or tokens.

{"time":"2026-11-17T21:04:05.678Z","level":"warning","event":"refused","request":"9f…","route":"/mcp","status":401}
2026-11-17T21:04:05.678Z WARNING refused request=9f… route=/mcp status=401

A thread of its own writes the lines, so that a slow reader, a closed pipe or a full disk delays no request. Lines that
cannot be written are counted, and the count is the next line that can.
"""

import os
import re
import sys
import threading
import time
from collections import deque
from typing import Literal, get_args

import msgspec

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["text", "json"]
LEVELS: tuple[Level, ...] = get_args(Level)
FORMS: tuple[Form, ...] = get_args(Form)
Value = str | int | float | list[str]

MAX_QUEUED = 10_000  # lines; about 2 MB
MAX_VALUE_CHARS = 200
LINES_PER_WINDOW = 10  # of one kind of limited line, see `limited`
WINDOW_SECONDS = 60.0
_PLAIN = re.compile(r"[^\s\"=\\]+")


class _Window:
    """How many lines of one kind were written and suppressed since it began."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.written = 0
        self.suppressed = 0


class Log:
    """Writes lines of a level and above. Threads may share it; no method raises or waits, `flush` excepted."""

    def __init__(self, level: Level = "info", form: Form = "json") -> None:
        self.dropped = 0  # lines that could not be written, since the start
        self._queue: deque[str] = deque()
        self._unreported = 0
        self._windows: dict[tuple[str, str], _Window] = {}
        self._levels: dict[tuple[str, str], Level] = {}
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None
        self._busy = False
        self._torn = False  # the last write ended within a line
        self.configure(level, form)

    def configure(self, level: Level, form: Form | None = None) -> None:
        """Set the least level and the form; without a form, text on a terminal and JSON otherwise."""
        self._least = LEVELS.index(level)
        self._form = form or ("text" if _is_terminal() else "json")

    def writes(self, level: Level) -> bool:
        """Return True if lines of this level are written."""
        return LEVELS.index(level) >= self._least

    def line(self, level: Level, event: str, **fields: Value) -> None:
        """Queue a line; empty texts are left out."""
        if not self.writes(level):
            return
        text = self._render(level, event, fields)
        with self._changed:
            if len(self._queue) >= MAX_QUEUED:
                self._drop(1)
                return
            self._queue.append(text)
            if self._writer is None:
                self._writer = threading.Thread(target=self._run, name="log", daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def limited(self, reason: str, level: Level, event: str, **fields: Value) -> None:
        """Queue a line unless there were too many for this reason within a minute: those are only counted.

        One line states the count when the minute has passed. Reasons must be few: names of errors.
        """
        if not self.writes(level):
            return
        key = event, reason
        with self._changed:
            now = time.monotonic()
            window = self._windows.get(key)
            if window is not None and now - window.began >= WINDOW_SECONDS:
                self._close_window(key, window)
                window = None
            if window is None:
                window = self._windows[key] = _Window(now)
                self._levels[key] = level
            window.written += 1
            if window.written > LINES_PER_WINDOW:
                window.suppressed += 1
                return
        self.line(level, event, **fields)

    def flush(self, seconds: float = 1.0) -> bool:
        """Wait until all lines are written, counts of suppressed lines included; return False if time runs out."""
        with self._changed:
            for key, window in list(self._windows.items()):
                self._close_window(key, window)
            if self._writer is None:
                return not self._queue
            return self._changed.wait_for(lambda: not self._queue and not self._busy, seconds)

    def _render(self, level: Level, event: str, fields: dict[str, Value]) -> str:
        now = time.time()
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
        known = {name: _clean(value) for name, value in fields.items() if value not in ("", [])}
        if self._form == "json":
            values = {"time": moment, "level": level, "event": event, **known}
            return msgspec.json.encode(values).decode()
        words = [moment, level.upper(), event, *(f"{name}={_as_word(value)}" for name, value in known.items())]
        return " ".join(words)

    def _close_window(self, key: tuple[str, str], window: _Window) -> None:
        """Replace a window by the line that counts what it suppressed; the lock is held."""
        del self._windows[key]
        level = self._levels.pop(key)
        if window.suppressed:
            event, reason = key
            seconds = round(time.monotonic() - window.began)
            fields: dict[str, Value] = {"error": reason, "suppressed": window.suppressed, "seconds": seconds}
            self._queue.append(self._render(level, event, fields))
            self._changed.notify_all()

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unreported += count

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if not self._changed.wait_for(lambda: self._queue, WINDOW_SECONDS / 4 if self._windows else None):
                    self._close_old_windows()
                lines = list(self._queue)
                self._queue.clear()
                missed, self._unreported = self._unreported, 0
                self._busy = True
            head = [self._render("warning", "log.dropped", {"lines": missed})] if missed and lines else []
            written = bool(lines) and self._write("".join(f"{line}\n" for line in (*head, *lines)).encode())
            if not written:
                with self._changed:
                    self._drop(len(lines))
                    self._unreported += missed

    def _close_old_windows(self) -> None:
        now = time.monotonic()
        for key, window in list(self._windows.items()):
            if now - window.began >= WINDOW_SECONDS:
                self._close_window(key, window)

    def _write(self, data: bytes) -> bool:
        """Write to standard error; return False if it is closed or full."""
        try:
            stream = sys.stderr
            if stream is None:  # pyright: ignore[reportUnnecessaryComparison] — a process may be started without it
                return False
            try:
                fd = stream.fileno()
            except (OSError, ValueError):  # replaced by something in memory
                stream.write(data.decode())
                stream.flush()
                return True
            if self._torn:
                data = b"\n" + data
            while data:
                # Not through the stream: after an error it would keep the bytes and fail again at exit.
                data = data[os.write(fd, data) :]
                self._torn = bool(data)
        except (OSError, ValueError):
            return False
        return True


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # standard error is closed
        return False


def _clean(value: Value) -> Value:
    """Return a value without control, format and separator characters, and not longer than a line can take."""
    if isinstance(value, list):
        return [str(_clean(item)) for item in value]
    if isinstance(value, float):
        return round(value, 1)
    if not isinstance(value, str):
        return value
    if len(value) > MAX_VALUE_CHARS:
        value = f"{value[:MAX_VALUE_CHARS]}…"
    if value.isprintable():
        return value
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in value)


def _as_word(value: Value) -> str:
    if isinstance(value, list):
        value = " < ".join(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) else msgspec.json.encode(text).decode()


log = Log()
