"""Failures of hooks: a line each in `home/<uid>/hook.log`, because a hook that fails must not disturb the agent.

    2026-11-18T09:12:44Z claude UserPromptSubmit 5ac28188 StorageFailed: open: /home/…: disk full
    2026-11-18T09:20:02Z - reported - 1

A `reported` line says that the user knows of the failures above it. Imports here are lazy: a broken installation is a
failure too.
"""

import os
import time
from contextlib import suppress
from typing import NamedTuple

LOG = "hook.log"
_MAX_BYTES = 1_000_000  # then the log becomes hook.log.1
_MAX_PROBLEM = 500  # characters of a line
_MAX_FIELD = 80
_TAIL_BYTES = 65_536  # of the log, in which unreported failures are searched
_RECENT_SECONDS = 7 * 86_400
_REPORTED = " - reported - "


class Place(NamedTuple):
    """Where a failure happened, as far as it is known."""

    host: str = "?"
    event: str = "?"
    session: str = "?"


class Failures(NamedTuple):
    """Some failures: how many, since when, and the line of the newest."""

    number: int
    since: str
    newest: str


def record(place: Place, error: BaseException) -> None:
    """Append a line to the log; to one in the temporary folder if the home cannot be written; never raise."""
    line = _line(place, _describe(error))
    try:
        from daypack.history.home import find_home  # noqa: PLC0415

        folder = find_home(store="").folder  # also if the address of the database is wrong
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _append(os.path.join(folder, LOG), line)
    except BaseException:  # whatever it is, there is another place to try
        with suppress(BaseException):  # there is nowhere to write
            _append(fallback_log(), line)


def fallback_log() -> str:
    """Return the path of the log when the home cannot be written."""
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"daypack-hook-{os.getuid()}.log")  # noqa: S108 — checked when opened


def read_recent(path: str) -> Failures | None:
    """Return the failures of the last days in a log; None if there are none."""
    since = _time(time.time() - _RECENT_SECONDS)
    return _sum([line for line in _tail(path) if line[: len(since)] >= since and not _is_reported(line)])


def read_lines(path: str, count: int) -> list[str]:
    """Return the lines of the newest failures in a log, newest first."""
    return [line for line in _tail(path) if not _is_reported(line)][:count]


def read_unreported(folder: str) -> Failures | None:
    """Return the failures in the log of a user's folder since the last `reported` line; None if there are none."""
    lines = _tail(os.path.join(folder, LOG))
    reported = next((number for number, line in enumerate(lines) if _is_reported(line)), len(lines))
    return _sum(lines[:reported])


def mark_reported(folder: str, failures: Failures) -> None:
    """Append that the failures were reported to the user."""
    _append(os.path.join(folder, LOG), f"{_time()}{_REPORTED}{failures.number}\n")


def notice(failures: Failures) -> str:
    """Return the line that reports failures to the user."""
    return f"daypack: {describe(failures)}; `daypack doctor` shows the newest"


def describe(failures: Failures) -> str:
    """Return how many there are, and since when."""
    number = "1 hook failure" if failures.number == 1 else f"{failures.number:,} hook failures"
    return f"{number} since {failures.since}"


def _sum(lines: list[str]) -> Failures | None:
    return Failures(len(lines), lines[-1].partition(" ")[0], lines[0]) if lines else None


def _is_reported(line: str) -> bool:
    return line.partition(" ")[2].startswith(_REPORTED.lstrip())


def _describe(error: BaseException) -> str:
    """Return an error on one line, without secrets."""
    name = type(error).__name__
    try:
        from daypack.text.redact.redact import redact  # noqa: PLC0415

        problem = redact(str(error)[: 4 * _MAX_PROBLEM]).text
    except BaseException:  # then only what cannot be a secret
        problem = ""
    return _one_line(f"{name}: {problem}" if problem else name, _MAX_PROBLEM)


def _line(place: Place, problem: str) -> str:
    fields = (_one_line(field, _MAX_FIELD).replace(" ", "_") or "?" for field in place)
    return f"{_time()} {' '.join(fields)} {problem}\n"


def _one_line(text: str, max_chars: int) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text[: 2 * max_chars])
    return " ".join(shown.split())[:max_chars]


def _time(seconds: float | None = None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _append(path: str, line: str) -> None:
    """Append a line with one write, so that lines of several processes do not mix."""
    fd = _open(path)
    try:
        if os.fstat(fd).st_size > _MAX_BYTES:
            os.close(fd)
            fd = -1
            _rotate(path)
            fd = _open(path)
        os.write(fd, line.encode("utf-8", "replace"))
    finally:
        if fd >= 0:
            os.close(fd)


def _open(path: str) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if os.fstat(fd).st_uid != os.geteuid():  # put there by another user
        os.close(fd)
        raise PermissionError(path)
    return fd


def _rotate(path: str) -> None:
    """Make room for a new log, unless another process has just done so."""
    import fcntl  # noqa: PLC0415 — once in a megabyte

    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.getsize(path) > _MAX_BYTES:
            os.replace(path, f"{path}.1")
    except OSError:
        pass  # it is being done, or cannot be done: the line is more important
    finally:
        os.close(fd)


def _tail(path: str) -> list[str]:
    """Return the last lines of a log, newest first."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        start = max(0, os.fstat(fd).st_size - _TAIL_BYTES)
        os.lseek(fd, start, os.SEEK_SET)
        lines = os.read(fd, _TAIL_BYTES).decode("utf-8", "replace").splitlines()
    finally:
        os.close(fd)
    return [line for line in reversed(lines[1:] if start else lines) if line.strip()]
