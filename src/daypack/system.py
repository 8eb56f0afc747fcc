"""What differs between operating systems, apart from syncing: boot ids, detached processes, which are supported.

daypack runs on Linux and macOS. The arguments `platform` are values of `sys.platform`.
"""

import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType

_BOOT_FILE = "/proc/sys/kernel/random/boot_id"
_UUID_BYTES = 64  # more than the 36 characters of a UUID and its NUL
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


def start_detached(command: Sequence[str], *, spawn: Callable[..., int] | None = None) -> None:
    """Start a program that outlives this process, without its terminal and its standard streams."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    try:
        (spawn or os.posix_spawn)(command[0], list(command), os.environ, file_actions=quiet, setsid=True)
    except NotImplementedError:  # a Python that was built for a macOS before 10.15
        from subprocess import DEVNULL, Popen  # noqa: PLC0415 — 10 ms, only there

        started = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)  # noqa: S603
        started.returncode = 0  # nothing waits for it, which is no reason for a warning
