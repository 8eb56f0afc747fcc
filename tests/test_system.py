"""What differs between operating systems: boot ids, detached processes, and Windows, which is refused in a sentence."""

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from daypack import system

SYSCTL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t
)
UUID = "6E1B4F3A-8C1D-4B5E-9A55-0C2D3E4F5A6B"


def sysctl(answers: dict[bytes, bytes]) -> Callable[..., int]:
    """A C function with the signature of sysctlbyname."""

    def call(name: bytes, text: int, size: int, *_: Any) -> int:
        answer = answers.get(name)
        if answer is None:
            return -1
        length = ctypes.c_size_t.from_address(size)
        assert length.value > len(answer)
        ctypes.memmove(text, answer + b"\0", len(answer) + 1)
        length.value = len(answer) + 1
        return 0

    return SYSCTL(call)


def test_the_boot_id_is_the_same_within_a_boot() -> None:
    assert system.boot_id() == system.boot_id()
    assert len(system.boot_id()) == 16


@pytest.mark.skipif(sys.platform != "linux", reason="reads a file of Linux")
def test_linux_has_its_boot_id_in_a_file() -> None:
    text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    assert system.read_boot_id("linux").hex() == text.strip().replace("-", "")


def test_macos_is_asked_by_sysctl() -> None:
    asked = sysctl({b"kern.bootsessionuuid": UUID.encode()})
    assert system.read_boot_id("darwin", sysctl=asked).hex() == UUID.replace("-", "").lower()


@pytest.mark.parametrize("answers", [{}, {b"kern.bootsessionuuid": b""}, {b"kern.bootsessionuuid": b"not a uuid"}])
def test_without_a_boot_id_every_reading_is_another_boot(answers: dict[bytes, bytes]) -> None:
    first, second = (system.read_boot_id("darwin", sysctl=sysctl(answers)) for _ in range(2))
    assert first != second
    assert len(first) == 16


def test_a_system_without_sysctl_or_proc_has_no_boot_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if sys.platform != "darwin":
        assert system.read_boot_id("darwin") != system.read_boot_id("darwin")
    monkeypatch.setattr(system, "_BOOT_FILE", str(tmp_path / "none"))
    assert system.read_boot_id("freebsd14") != system.read_boot_id("freebsd14")


def missing(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError("posix_spawn: setsid unavailable on this platform")


@pytest.mark.parametrize("spawn", [None, missing], ids=["posix_spawn", "subprocess"])
def test_a_detached_process_has_a_session_of_its_own_and_no_stream_of_ours(
    spawn: Callable[..., int] | None, tmp_path: Path
) -> None:
    code = (
        "import os, sys; print('lost'); found = [os.getsid(0) == os.getpid(), sys.stdin.read(), os.isatty(1)];"
        f"open({str(tmp_path / 'part')!r}, 'w').write(repr(found));"
        f"os.rename({str(tmp_path / 'part')!r}, {str(tmp_path / 'done')!r})"
    )
    system.start_detached([sys.executable, "-c", code], spawn=spawn)
    until = time.monotonic() + 60
    while not (tmp_path / "done").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert (tmp_path / "done").read_text() == "[True, '', False]"


# Python on Windows has neither these modules nor these functions.
WINDOWS = """
import os, sys
sys.platform = "win32"
for name in ("fcntl", "resource", "pwd", "termios"):
    sys.modules[name] = None
for name in ("posix_spawn", "fork", "register_at_fork", "fdatasync", "getuid", "POSIX_SPAWN_OPEN"):
    delattr(os, name)
"""
SENTENCE = "daypack runs on Linux and macOS: on Windows, install and run it in WSL (run `wsl --install` once)\n"


@pytest.mark.parametrize(
    "started",
    [
        "import daypack",
        "from daypack.session import open_session",
        "from daypack.__main__ import main; sys.exit(main())",
        "import runpy; runpy.run_module('daypack', run_name='__main__', alter_sys=True)",
    ],
)
def test_on_windows_a_sentence_names_wsl_and_there_is_no_traceback(started: str) -> None:
    done = subprocess.run([sys.executable, "-c", WINDOWS + started], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", SENTENCE)


def test_on_windows_a_program_can_go_on_without_daypack_and_sees_other_errors_as_usual() -> None:
    code = "try:\n    import daypack\nexcept ImportError as error:\n    print(error)\n1 / 0"
    done = subprocess.run([sys.executable, "-c", WINDOWS + code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, SENTENCE)
    assert "Traceback" in done.stderr
    assert "ZeroDivisionError" in done.stderr


def test_other_systems_are_let_in() -> None:
    for platform in ("linux", "darwin", "cygwin", "freebsd14"):
        system.check_supported(platform)
