"""What differs between operating systems: boot ids, detached processes, and Windows, which is refused in a sentence."""

import ast
import ctypes
import errno
import fcntl
import os
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


# In place of daypack: says what the process has, in a file that appears whole.
STAND_IN = """
import os, sys
found = [os.getsid(0), sys.stdin.read(), os.isatty(1), sys.argv[1:], os.environ["WORD"]]
found.append(os.listdir("/dev/fd"))
with open("part", "w") as file:
    print("lost")
    file.write(repr(found))
os.rename("part", "done")
"""


@pytest.mark.parametrize("spawn", [None, missing], ids=["posix_spawn", "fork"])
def test_a_detached_process_has_a_session_of_its_own_and_no_open_file_of_ours(
    spawn: Callable[..., int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "packages" / "daypack"
    place.mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "__main__.py").write_text(STAND_IN)
    (tmp_path / "daypack.py").write_text("raise AssertionError('a module of the working folder')")
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    system.start_detached(["one", "--two"], {"PYTHONPATH": str(place.parent), "WORD": "x"}, spawn=spawn)
    os.close(writing)
    assert os.read(reading, 1) == b""  # nobody holds the other end, although the child may still run
    os.close(reading)
    until = time.monotonic() + 60
    while not (tmp_path / "done").exists() and time.monotonic() < until:
        time.sleep(0.01)
    session, *found, files = ast.literal_eval((tmp_path / "done").read_text())
    assert session != os.getsid(0)
    assert found == ["", False, ["one", "--two"], "x"]
    assert len(files) == 4  # the standard streams, and the folder that is listed


def test_without_an_interpreter_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(FileNotFoundError, match="no Python interpreter"):
        system.start_detached(["hook"])


def test_macos_tells_the_stored_spelling_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file is asked for its path: fcntl with F_GETPATH fills a buffer of PATH_MAX bytes."""
    (tmp_path / "Repo").mkdir()
    asked: list[tuple[int, bytes]] = []

    def get_path(fd: int, command: int, buffer: bytes) -> bytes:
        asked.append((command, buffer))
        return os.fsencode(os.readlink(f"/proc/self/fd/{fd}")).ljust(len(buffer), b"\0")

    monkeypatch.setattr(fcntl, "fcntl", get_path)
    (tmp_path / "other name").symlink_to("Repo")  # stands for `repo`, which macOS would find
    assert system.true_path(str(tmp_path / "other name"), "darwin") == str(tmp_path / "Repo")
    assert asked == [(50, bytes(1024))]
    assert system.true_path(str(tmp_path / "none"), "darwin") == str(tmp_path / "none")
    assert system.true_path(str(tmp_path / "other name"), "linux") == str(tmp_path / "other name")

    def refuse(*_: Any) -> bytes:
        raise OSError(errno.ENOTSUP, "no path")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    assert system.true_path(str(tmp_path / "Repo"), "darwin") == str(tmp_path / "Repo")


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
