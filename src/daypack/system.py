"""What differs between operating systems, apart from syncing: boot ids, paths, detached processes, which are supported.

daypack runs on Linux and macOS. The arguments `platform` are values of `sys.platform`.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

_BOOT_FILE = "/proc/sys/kernel/random/boot_id"
_UUID_BYTES = 64  # more than the 36 characters of a UUID and its NUL
_GET_PATH, _PATH_BYTES = 50, 1024  # F_GETPATH and PATH_MAX of macOS
_STANDARD = (0, 1, 2)
_boot = b""


class UnsupportedSystem(ImportError):
    """daypack was imported on Windows."""


def check_supported(platform: str = sys.platform) -> None:
    """Raise UnsupportedSystem on Windows; a program that does not catch it ends with its sentence alone."""
    if platform != "win32":
        return
    shown = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, UnsupportedSystem):
            print(error, file=sys.stderr)  # noqa: T201 — the interpreter ends with exit code 1
        else:
            shown(kind, error, traceback)

    sys.excepthook = show
    raise UnsupportedSystem(
        "daypack runs on Linux and macOS: on Windows, install and run it in WSL (run `wsl --install` once)"
    )


def boot_id() -> bytes:
    """Return 16 bytes that differ between boots (between processes if the system has no boot id)."""
    global _boot  # noqa: PLW0603 — constant during a process
    _boot = _boot or read_boot_id()
    return _boot


def read_boot_id(platform: str = sys.platform, *, sysctl: Callable[..., int] | None = None) -> bytes:
    """Ask the kernel for its boot id; `sysctl` is the C function sysctlbyname of macOS."""
    try:
        if platform == "darwin":
            text = _read_sysctl(b"kern.bootsessionuuid", sysctl)
        else:
            with open(_BOOT_FILE, "rb") as file:
                text = file.read(_UUID_BYTES)
        found = bytes.fromhex(text.decode().strip().replace("-", ""))
    except (OSError, ValueError):
        found = b""
    return found if len(found) == 16 else os.urandom(16)


def _read_sysctl(name: bytes, function: Callable[..., int] | None) -> bytes:
    import ctypes  # noqa: PLC0415 — 3 ms, only on macOS

    if function is None:
        try:
            function = ctypes.CDLL(None).sysctlbyname
        except AttributeError as error:
            raise OSError("no sysctlbyname") from error
    text, size = ctypes.create_string_buffer(_UUID_BYTES), ctypes.c_size_t(_UUID_BYTES)
    if function(name, text, ctypes.byref(size), None, ctypes.c_size_t(0)):
        raise OSError(f"no {name.decode()}")
    return text.value


def true_path(path: str, platform: str = sys.platform) -> str:
    """Return the path of an existing file or folder as it is stored: macOS finds it in any case, and two are one."""
    if platform != "darwin":
        return path
    import fcntl  # noqa: PLC0415 — Windows has none

    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = fcntl.fcntl(fd, _GET_PATH, bytes(_PATH_BYTES))
        finally:
            os.close(fd)
    except OSError:
        return path
    return os.fsdecode(found.split(b"\0")[0]) or path


def start_detached(
    arguments: Sequence[str], environ: Mapping[str, str] = os.environ, *, spawn: Callable[..., int] | None = None
) -> None:
    """Start `daypack` in a process that outlives this one: in a session of its own, without any open file of ours."""
    if not sys.executable:
        raise FileNotFoundError("no Python interpreter is known")
    # -P: the working folder may have modules of any name.
    command = [sys.executable, "-P", "-m", "daypack", *arguments]
    actions: list[tuple[int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in _STANDARD
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()]
    try:
        (spawn or os.posix_spawn)(sys.executable, command, environ, file_actions=actions, setsid=True)
    except NotImplementedError:  # a Python that was built for a macOS before 10.15
        _fork(command, environ)


def _inheritable() -> list[int]:
    """Return the open files that a child would get, apart from the standard streams."""
    found: list[int] = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) not in _STANDARD and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the folder itself, closed by now
    return found


def _fork(command: list[str], environ: Mapping[str, str]) -> None:
    """Do the same with two forks, so that the process has no parent that must wait for it."""
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
        for fd in _inheritable():
            os.close(fd)
        os.execve(command[0], command, environ)  # noqa: S606 — a shell would only be in between
    finally:
        os._exit(1)
