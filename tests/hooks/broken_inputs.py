"""What can be wrong when a coding agent runs a hook: its input, its files, the home, the disk, the installation."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hooks.hook_process import SOURCE

from daypack.history.home import find_home
from daypack.hooks.call import HookCall, HostName
from daypack.hooks.hosts import NAMES
from daypack.hooks.intake import take_in
from daypack.hooks.main import MAX_INPUT_BYTES
from daypack.memory.project import find_project
from daypack.memory.project.memory import decisions_file

FULL_DISK = (
    'mount -t tmpfs -o size=64k tmpfs "$DAYPACK_HOME" && head -c 65536 /dev/zero >"$DAYPACK_HOME/rest"; exec "$@"'
)


class Scene:
    """One run of the program: its input, its environment, and a home of its own."""

    def __init__(self, folder: Path, host: HostName) -> None:
        self.folder = folder
        self.host = host
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.arguments: list[str] = [host]
        self.prefix: list[str] = []
        self.limits: dict[int, int] = {}
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": SOURCE,
            "DAYPACK_HOME": str(self.home),
        }
        self.fields: dict[str, Any] = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": "s-1",
            "cwd": str(self.work),
            "prompt": "Which port does the staging server listen on?",
        }
        self.data: bytes | None = None  # else the fields

    @property
    def user_folder(self) -> Path:
        """The user's folder in the home, which this makes."""
        path = Path(find_home(str(self.home)).folder)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def run(self) -> "subprocess.CompletedProcess[bytes]":
        """Run the hook to its end, and what it left to a detached process."""
        command = [*self.prefix, sys.executable, "-P", "-m", "daypack", "hook", *self.arguments]
        done = subprocess.run(
            command,
            input=json.dumps(self.fields).encode() if self.data is None else self.data,
            capture_output=True,
            env=self.environment,
            cwd=self.work,
            preexec_fn=partial(_limit, self.limits) if self.limits else None,
            timeout=120,
            check=False,
        )
        if self.data is None and self.fields.get("hook_event_name") == "Stop" and self.home.is_dir():
            call = HookCall(host=NAMES[self.host], event="", session=str(self.fields.get("session_id")), cwd="")
            with suppress(OSError):  # where there is no place for requests, none was made
                take_in.wait_for(find_home(str(self.home)), call, 30)
        return done

    @property
    def log(self) -> list[str]:
        """The lines of both logs: that of the home, and that for a home that cannot be written."""
        logs = [self.home / "home" / str(os.getuid()) / "hook.log", *self.temporary.glob("daypack-hook-*.log")]
        return [line for log in logs if log.is_file() for line in log.read_text(encoding="utf-8").splitlines()]


def _limit(limits: dict[int, int]) -> None:
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))


class Case(NamedTuple):
    """Something that is wrong; `line`: whether it must leave a line in the log, or may also be no failure."""

    name: str
    arrange: Callable[[Scene], None]
    line: Literal["always", "perhaps"] = "always"


def cases() -> list[Case]:
    """Return all of them."""
    files = (*_transcripts(), *_homes(), *_home_files(), *_disks())
    return [*_inputs(), *_fields(), *_events(), *_edits(), *files, *_streams(), *_installations()]


def _inputs() -> Iterator[Case]:
    whole = b'{"hook_event_name": "Stop", "session_id": "s-1", "cwd": "/"}'
    broken: dict[str, bytes] = {
        "empty": b"",
        "spaces": b"  \n",
        "a bracket": b"{",
        "a list": b"[]",
        "null": b"null",
        "true": b"true",
        "a number": b"12",
        "a text": b'"text"',
        "not UTF-8": b"\xff\xfe\xfd",
        "NULs": b"\0" * 100,
        "a mark of byte order": b"\xef\xbb\xbf" + whole,
        "two objects": whole + whole,
        "cut off": whole[:-5],
        "an open text": b'{"hook_event_name": "Sto',
        "single quotes": whole.replace(b'"', b"'"),
        "not a number": b'{"hook_event_name": NaN}',
        "text after it": whole + b" end",
        "UTF-16": whole.decode().encode("utf-16"),
        "not UTF-8 inside": whole.replace(b"s-1", b"\xff"),
        "a control character": whole.replace(b"s-1", b"s\n1"),
        "deep lists": b"[" * 200_000,
        "deep objects": b'{"a":' * 200_000,
        "a deep field": whole[:-1] + b', "a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        "too large": b'{"prompt": "' + b"a" * (MAX_INPUT_BYTES + 1) + b'"}',
    }
    for name, data in broken.items():
        yield Case(f"input: {name}", partial(_set_data, data))


def _set_data(data: bytes, scene: Scene) -> None:
    scene.data = data


def _fields() -> Iterator[Case]:
    wrong: dict[str, object] = {"null": None, "number": 7, "bool": True, "list": [], "object": {}, "empty": ""}
    for field in ("hook_event_name", "session_id", "cwd"):
        yield Case(f"{field}: missing", partial(_remove_field, field))
        for name, value in wrong.items():
            yield Case(f"{field}: {name}", partial(_set_fields, {field: value}))
    for field in ("prompt", "source", "transcript_path"):
        for event in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact"):
            fields = {"hook_event_name": event, field: wrong["list"]}
            yield Case(f"{field} of {event}: list", partial(_set_fields, fields), "perhaps")


def _remove_field(field: str, scene: Scene) -> None:
    del scene.fields[field]


def _set_fields(fields: dict[str, object], scene: Scene) -> None:
    scene.fields.update(fields)


def _events() -> Iterator[Case]:
    for event in ("Bedtime", "sessionstart", "Stop\n", "💥", "A" * 100_000, "PreToolBatch", "SessionStart "):
        yield Case(f"event {event[:20]!r}", partial(_set_fields, {"hook_event_name": event}))
    strange: dict[str, str] = {"NUL": "s\0-1", "long": "s" * 300_000}
    for name, session in strange.items():
        yield Case(f"session with {name}", partial(_set_fields, {"hook_event_name": "Stop", "session_id": session}))
    for folder in ("/proc/none/at/all", "relative", "a\0b", "/dev/null", "x" * 5_000):
        for event in ("SessionStart", "UserPromptSubmit"):
            fields: dict[str, object] = {"hook_event_name": event, "cwd": folder}
            yield Case(f"cwd {folder[:10]!r} at {event}", partial(_set_fields, fields), "perhaps")
    yield Case("a huge prompt", partial(_set_fields, {"prompt": "port 8443 of the harbour " * 200_000}), "perhaps")
    yield Case("a prompt with surrogates", partial(_set_fields, {"prompt": "port \ud800 of the harbour"}), "perhaps")


def _edits() -> Iterator[Case]:
    """Edits that name nothing, or too much, and indexes that cannot be read."""
    inputs: dict[str, object] = {
        "missing": None,
        "a list": [1],
        "a number for a path": {"file_path": 7},
        "a path with NUL": {"file_path": "a\0b.py"},
        "a long path": {"file_path": "a/" * 50_000},
        "a path with surrogates": {"file_path": "\ud800.py"},
        "a path outside": {"file_path": "/proc/self/mem"},
        "a patch without an end": {"command": "*** Begin Patch\n*** Update File: "},
        "a patch of many files": {"command": "".join(f"*** Add File: {name}.py\n+x\n" for name in range(20_000))},
    }
    for name, given in inputs.items():
        yield Case(f"edit: {name}", partial(_edit, given, _write_noise), "perhaps")
    for make in (_write_noise, _write_wrong, os.mkdir, os.mkfifo, _link_to_zeros):
        yield Case(f"index of decisions: {make.__name__}", partial(_edit, {"file_path": "a.py"}, make), "perhaps")


def _edit(given: object, make_index: Callable[[str], object], scene: Scene) -> None:
    (scene.user_folder / "config.toml").write_text("[hooks]\nrecall_before_edit = true\n")
    path = decisions_file(find_home(str(scene.home)), find_project(str(scene.work)))
    os.makedirs(os.path.dirname(path))
    make_index(path)
    scene.fields.update(hook_event_name="PreToolUse", tool_name="Write", tool_input=given)


def _write_noise(path: str) -> None:
    Path(path).write_bytes(bytes(range(256)) * 40)


def _write_wrong(path: str) -> None:
    Path(path).write_text('{"format": 1, "decisions": [{"files": "a.py", "kind": 3}]}')


def _link_to_zeros(path: str) -> None:
    Path(path).symlink_to("/dev/zero")


def _transcripts() -> Iterator[Case]:
    def folder(path: Path) -> None:
        path.mkdir()

    def loop(path: Path) -> None:
        path.symlink_to(path)

    def pipe(path: Path) -> None:
        os.mkfifo(path)

    def device(path: Path) -> None:
        path.symlink_to("/dev/zero")

    def noise(path: Path) -> None:
        path.write_bytes(bytes(range(256)) * 40)

    def prose(path: Path) -> None:
        path.write_text("This is no transcript.\n")

    for make in (folder, loop, pipe, device, noise, prose):
        yield Case(f"transcript: {make.__name__}", partial(_set_transcript, make))


def _set_transcript(make: Callable[[Path], None], scene: Scene) -> None:
    path = scene.folder / "transcript.jsonl"
    make(path)
    scene.fields.update(hook_event_name="Stop", transcript_path=str(path))


def _homes() -> Iterator[Case]:
    def is_a_file(scene: Scene) -> None:
        scene.home.write_text("")

    def cannot_exist(scene: Scene) -> None:
        scene.environment["DAYPACK_HOME"] = "/proc/none"

    def is_nowhere(scene: Scene) -> None:
        del scene.environment["DAYPACK_HOME"]
        scene.environment["HOME"] = "/proc/none"

    for arrange in (is_a_file, cannot_exist, is_nowhere):
        yield Case(f"home {arrange.__name__}", _at_stop(arrange))


def _home_files() -> Iterator[Case]:
    def has_a_bad_user(scene: Scene) -> None:
        scene.environment["DAYPACK_UID"] = "../x"

    def has_bad_settings(scene: Scene) -> None:
        (scene.user_folder / "config.toml").write_text("[hooks\n")

    def has_wrong_settings(scene: Scene) -> None:
        (scene.user_folder / "config.toml").write_text("[hooks]\noff = 3\n")

    def has_a_folder_for_settings(scene: Scene) -> None:
        (scene.user_folder / "config.toml").mkdir()

    def has_a_file_for_state(scene: Scene) -> None:
        (scene.user_folder / "hook").write_text("")
        scene.fields["hook_event_name"] = "Stop"

    def has_a_folder_for_its_log(scene: Scene) -> None:
        (scene.user_folder / "hook.log").mkdir()
        scene.data = b"{"

    def has_a_pipe_for_its_log(scene: Scene) -> None:
        os.mkfifo(scene.user_folder / "hook.log")
        scene.data = b"{"

    found = (has_a_bad_user, has_bad_settings, has_wrong_settings, has_a_folder_for_settings, has_a_file_for_state)
    for arrange in (*found, has_a_folder_for_its_log, has_a_pipe_for_its_log):
        yield Case(f"home {arrange.__name__}", arrange)


def _disks() -> Iterator[Case]:
    def cannot_grow(scene: Scene) -> None:
        scene.limits[resource.RLIMIT_FSIZE] = 0
        scene.fields["hook_event_name"] = "PreCompact"

    def is_full(scene: Scene) -> None:
        scene.home.mkdir()
        scene.prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", FULL_DISK, "sh"]
        scene.fields["hook_event_name"] = "PreCompact"

    if can_mount():
        yield Case("disk is_full", is_full)
    yield Case("disk cannot_grow", cannot_grow, "perhaps")  # where no file can grow, no log can


def _at_stop(arrange: Callable[[Scene], None]) -> Callable[[Scene], None]:
    """Return the same at an event that writes."""

    def arranged(scene: Scene) -> None:
        arrange(scene)
        scene.fields["hook_event_name"] = "Stop"

    return arranged


def can_mount() -> bool:
    """Return True if a file system can be mounted for one process."""
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _streams() -> Iterator[Case]:
    def closed_input(scene: Scene) -> None:
        scene.prefix = ["sh", "-c", 'exec "$@" <&-', "sh"]

    def closed_output(scene: Scene) -> None:
        scene.prefix = ["sh", "-c", 'exec "$@" >&-', "sh"]
        scene.data = b"{"

    def all_closed(scene: Scene) -> None:
        scene.prefix = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]

    def full_output(scene: Scene) -> None:
        (scene.user_folder / "hook.log").write_text("2026-01-01T00:00:00Z claude Stop s-1 ValueError: a\n")
        scene.fields["hook_event_name"] = "SessionStart"
        scene.prefix = ["sh", "-c", 'exec "$@" >/dev/full', "sh"]

    def no_name(scene: Scene) -> None:
        scene.arguments = []

    for arrange in (closed_input, closed_output, all_closed, full_output, no_name):
        yield Case(arrange.__name__, arrange)


def _installations() -> Iterator[Case]:
    for error in ("ImportError", "SyntaxError", "SystemExit(3)", "KeyboardInterrupt", "MemoryError", "RecursionError"):
        for module in ("msgspec", "daypack.hooks.dispatch"):
            yield Case(f"{module} raises {error}", partial(_break_module, module, error))


def _break_module(module: str, error: str, scene: Scene) -> None:
    folder = scene.folder / "broken"
    folder.mkdir()
    code = f"raise {error}\n"
    if module == "msgspec":
        (folder / "msgspec.py").write_text(code)
    else:  # of a package: replaced before it is imported
        finder = (
            "import importlib.abc, importlib.util, sys\n"
            "class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):\n"
            "    def find_spec(self, name, path, target=None):\n"
            f"        return importlib.util.spec_from_loader(name, self) if name == {module!r} else None\n"
            "    def create_module(self, spec):\n"
            f"        {code}"
            "    def exec_module(self, module):\n"
            "        pass\n"
            "sys.meta_path.insert(0, Broken())\n"
        )
        (folder / "sitecustomize.py").write_text(finder)
    scene.environment["PYTHONPATH"] = f"{folder}{os.pathsep}{SOURCE}"
