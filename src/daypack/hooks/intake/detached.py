"""Processes that outlive a hook: the agent waits for nothing, and does not end them when it ends."""

import os
import sys
from collections.abc import Mapping, Sequence

_STANDARD = (0, 1, 2)


def start(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """Start `daypack` with these arguments in a session of its own, without any file of the host."""
    if not sys.executable:
        raise FileNotFoundError("no Python interpreter is known")
    # -P: the project's folder, in which hooks run, may have modules of any name.
    command = [sys.executable, "-P", "-m", "daypack", *arguments]
    actions: list[tuple[int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in _STANDARD
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()]
    try:
        os.posix_spawn(sys.executable, command, environ, file_actions=actions, setsid=True)
    except NotImplementedError:  # this system cannot: the child does it itself
        _fork(command, environ)


def _inherited() -> list[int]:
    """Return the open files that a child would get: those that the host left open for the hook."""
    found: list[int] = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) not in _STANDARD and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the folder itself, closed by now
    return found


def _fork(command: list[str], environ: Mapping[str, str]) -> None:
    """Do the same with two forks, so that the process has no parent that waits for it."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in _STANDARD:
            os.dup2(null, fd)
        for fd in _inherited():
            os.close(fd)
        os.execve(command[0], command, environ)  # noqa: S606 — a shell would only be in between
    finally:
        os._exit(1)
