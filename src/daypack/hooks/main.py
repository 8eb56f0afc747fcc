"""`daypack hook`: one event of a coding agent in, one answer out, and never a failure that the agent notices.

It runs at every prompt of the user, so that it parses its arguments itself and each event imports only what it needs.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from daypack.hooks import failures

if TYPE_CHECKING:
    from types import FrameType

    from daypack.hooks.call import HookCall

MAX_INPUT_BYTES = 32 << 20
_READ_BYTES = 1 << 20
# Seconds per event: below the timeouts in the plug-in's hooks.json, after which the host would kill the hook.
_SECONDS = {"SessionStart": 8.0, "SessionEnd": 2.5}
_OTHER_SECONDS = 4.0
_READING_SECONDS = 2.5
_SPARE_SECONDS = 0.3  # after the limit, until a signal ends what keeps the thread of the limit from running
_LOGGING_SECONDS = 1.0
_DATABASE_SECONDS = 1.0  # for a database that does not answer: the agent waits too
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TERMINAL = (
    "daypack hook reads an event of a coding agent on standard input; "
    "`daypack hook --help` says more, `daypack setup` installs it\n"
)


def run(arguments: Sequence[str]) -> int | None:
    """Answer one event and return the exit code, which is always 0; None if the arguments are not those of a hook."""
    if len(arguments) == 3 and arguments[1] == "--take-in":
        return _take_in(arguments[0], arguments[2])
    if arguments[1:] == ["--serve"] and arguments[0] == "opencode":
        return _serve()
    if len(arguments) > 1:
        return None
    name = arguments[0] if arguments else ""
    if name:
        from daypack.hooks.hosts import NAMES  # noqa: PLC0415

        if name not in NAMES:
            return None
    if os.isatty(0):
        sys.stderr.write(_TERMINAL)
        return 0
    _Hook(name).run()
    return 0


def _take_in(name: str, session: str) -> int:
    """Do what a hook left to a detached process."""
    from daypack.history.home import find_home  # noqa: PLC0415
    from daypack.hooks.hosts import NAMES  # noqa: PLC0415
    from daypack.hooks.intake import take_in  # noqa: PLC0415

    try:
        take_in.run(NAMES[name], session, find_home())
    except BaseException as error:
        failures.record(failures.Place(name, "take-in", session), error)
    return 0


def _serve() -> int:
    """Answer the plug-in of opencode until it ends."""
    try:
        from daypack.history.home import find_home  # noqa: PLC0415
        from daypack.hooks.packing.process import serve  # noqa: PLC0415

        home = find_home()
        if home.database is not None:
            home.database.wait_at_most(_DATABASE_SECONDS)
        serve(home)
    except BaseException as error:
        failures.record(failures.Place("opencode", "serve"), error)
    return 0


class _Hook:
    """One run of the program; whatever fails is logged and leaves standard output empty."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._place = failures.Place(host=name or "?")
        self._timer: threading.Timer | None = None
        self._ending = threading.Lock()

    def run(self) -> None:
        try:
            for number in (*_SIGNALS, signal.SIGALRM):
                signal.signal(number, self._on_signal)
            self._limit(_READING_SECONDS)
            call = self._read()
            self._limit(_SECONDS.get(call.event, _OTHER_SECONDS))
            self._answer(call)
        except BaseException as error:  # whatever it is, the agent must continue
            failures.record(self._place, error)
        finally:
            self._limit(None)

    def _read(self) -> "HookCall":
        data = _read_input()
        from daypack.hooks.call import call_of, read_fields  # noqa: PLC0415 — as late as it is needed: 20 ms
        from daypack.hooks.hosts import NAMES, recognise  # noqa: PLC0415

        fields = read_fields(data)
        event, session = (str(fields.get(name) or "?") for name in ("hook_event_name", "session_id"))
        self._place = self._place._replace(event=event, session=session)
        host = NAMES[self._name] if self._name else recognise(fields, os.environ)
        self._place = self._place._replace(host=host)
        return call_of(host, fields)

    def _answer(self, call: "HookCall") -> None:
        from daypack.history.home import find_home  # noqa: PLC0415
        from daypack.hooks.dispatch import answer  # noqa: PLC0415

        home = find_home()
        if home.database is not None:
            home.database.wait_at_most(_DATABASE_SECONDS)
        unreported = failures.read_unreported(home.folder) if call.event == "SessionStart" else None
        if output := answer(call, home, failures.notice(unreported) if unreported else ""):
            _write(output)
        if unreported:
            failures.mark_reported(home.folder, unreported)

    def _limit(self, seconds: float | None) -> None:
        """End the process after some seconds.

        A thread does it, because a locked database waits outside of Python; a signal if a regular expression searches
        for so long, which lets no other thread run.
        """
        signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_SECONDS if seconds else 0)
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if seconds:
            self._timer = threading.Timer(seconds, self._give_up, (TimeoutError(f"no answer within {seconds:g} s"),))
            self._timer.daemon = True
            self._timer.start()

    def _on_signal(self, number: int, _: "FrameType | None") -> None:
        late = number == signal.SIGALRM
        self._give_up(TimeoutError("no answer in time") if late else InterruptedError(f"ended by {_name(number)}"))

    def _give_up(self, error: BaseException) -> NoReturn:
        if self._ending.acquire(blocking=False):  # else it is being done, in another thread or below this frame
            # A log on a disk that does not answer, or a module that is being imported, must not hold it up.
            last = threading.Timer(_LOGGING_SECONDS, os._exit, (0,))
            last.daemon = True
            last.start()
            failures.record(self._place, error)
            os._exit(0)
        while True:
            time.sleep(_LOGGING_SECONDS)


def _name(number: int) -> str:
    return signal.Signals(number).name


def _read_input() -> bytes:
    """Read standard input to its end, so that the host can write all of it; keep no more than the limit."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, _READ_BYTES):
        size += len(part)
        if size <= MAX_INPUT_BYTES:
            parts.append(part)
        else:
            parts.clear()
    if size > MAX_INPUT_BYTES:
        raise ValueError(f"the input has {size:,} bytes, the limit is {MAX_INPUT_BYTES:,}")
    return b"".join(parts)


def _write(output: bytes) -> None:
    while output:
        output = output[os.write(1, output) :]
