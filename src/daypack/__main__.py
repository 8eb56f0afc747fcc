"""The program `daypack`, also as `python -m daypack`: its standard streams, Ctrl-C and its exit code."""

import os
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType, TracebackType

_INTERRUPTED = 130


def main() -> int:
    """Run the command of the arguments; Ctrl-C ends it without a traceback at any moment."""
    is_hook = sys.argv[1:2] == ["hook"]
    if is_hook:
        _run_hook()
    # Ctrl-C can arrive where no `try` catches it: in a callback of the import system, in a finaliser, at exit.
    sys.excepthook, sys.unraisablehook = _on_exception, _on_unraisable
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, _on_interrupt)
    try:
        _open_streams()
        if sys.argv[1:2] == ["status"] and "--line" in sys.argv:
            _print_status_line()
        from daypack.cli.main import run  # noqa: PLC0415 — Ctrl-C can arrive during this import too

        return min(run(), 1) if is_hook else run()  # 2 would stop the agent whose hook has wrong arguments
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run_hook() -> None:
    """Answer an event of a coding agent and end the process; return if the arguments are those of a command.

    Whatever fails, here or at exit, ends with 0 and nothing on standard output: other exit codes stop the agent.
    """
    try:
        _open_streams()
        from daypack.hooks.main import run  # noqa: PLC0415 — without the modules of commands

        code = run(sys.argv[2:])
    except BaseException as error:  # a broken installation, for example
        code = 0
        with suppress(BaseException):
            from daypack.hooks.failures import Place, record  # noqa: PLC0415

            record(Place(), error)
    if code is not None:
        os._exit(code)


def _print_status_line() -> None:
    """Print a status line and end the process; return if the arguments are those of a command."""
    from daypack.hooks.status.line import run  # noqa: PLC0415 — without the modules of commands, in half the time

    if (code := run(sys.argv[2:])) is not None:
        os._exit(code)  # nothing is open that has to be closed


def _on_interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not out of an import.

    There it becomes a RuntimeError while a class is made, and extension modules that build types crash. Ending at once
    is like a crash of the process, which leaves no half-written line.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _on_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__excepthook__(kind, error, traceback)


def _on_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__unraisablehook__(unraisable)


def _open_streams() -> None:
    """Open closed standard streams as the null device: a log of a session must not get the number of one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDWR)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="backslashreplace")  # arrows and quotes of messages


if __name__ == "__main__":
    sys.exit(main())
