"""The installed plug-in: the shipped files with commands that find this very program."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daypack.history.layout import Home
from daypack.hooks.settings import HookSettings
from daypack.hooks.setup.plugin_folder import SHIPPED, Program, render_plugin, this_program


def test_without_anything_special_the_shipped_files_are_installed() -> None:
    files = render_plugin(Program(), HookSettings())
    assert files.pop("daypack/qwen-extension.json")
    assert files.pop("gemini/skills/daypack/SKILL.md") == files["daypack/skills/daypack/SKILL.md"]
    for path, data in files.items():
        shipped = (Path(SHIPPED) / path).read_bytes()
        assert (json.loads(data) == json.loads(shipped)) if path.endswith(".json") else data == shipped, path


def run(script: str, folder: Path, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
    environ = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(["sh", "-c", script], input=input, env=environ, capture_output=True, text=True, check=False)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{text} $DAYPACK_HOME $@"\ncat\n')
    path.chmod(0o755)


def test_the_command_finds_the_program_by_its_path_then_on_path(tmp_path: Path) -> None:
    own, on_path = tmp_path / "it's mine" / "daypack", tmp_path / "daypack"
    program = Program((str(own),), (("DAYPACK_HOME", "/a 'b'"),))
    put(on_path, "on path")
    assert run(program.hook, tmp_path, "{}").stdout == "on path /a 'b' hook\n{}"
    assert run(program.server, tmp_path).stdout == "on path /a 'b' mcp --with-hooks\n"
    put(own, "own")
    assert run(program.hook, tmp_path, "{}").stdout == "own /a 'b' hook\n{}"
    assert run(program.server, tmp_path).stdout == "own /a 'b' mcp --with-hooks\n"


def test_an_installed_program_that_is_gone_is_not_replaced_by_a_download(tmp_path: Path) -> None:
    put(tmp_path / "uvx", "fetched")
    installed, fetched = Program((str(tmp_path / "gone" / "daypack"),)), Program()
    assert (run(installed.hook, tmp_path, "{}").stdout, run(installed.server, tmp_path).stdout) == ("", "")
    assert run(fetched.hook, tmp_path, "{}").stdout == "fetched  daypack hook\n{}"


def test_the_program_is_named_by_its_full_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path / ".daypack"), str(os.getuid()))
    environ = {"HOME": str(tmp_path)}
    monkeypatch.setenv("HOME", str(tmp_path))
    started = tmp_path / "bin" / "daypack"
    put(started, "")
    monkeypatch.setattr(sys, "argv", [str(started), "setup"])
    assert this_program(home, environ) == Program((str(started),))
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert this_program(home, environ) == Program((sys.executable, "-P", "-m", "daypack"))


def test_a_program_in_the_cache_of_uv_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "daypack"
    put(started, "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(started), "setup"])
    home = Home(str(tmp_path / ".daypack"), str(os.getuid()))
    assert this_program(home, {"HOME": str(tmp_path)}).words == ()
    assert this_program(home, {"HOME": str(tmp_path), "UV_CACHE_DIR": "/elsewhere"}).words == (str(started),)


def test_only_a_home_that_is_not_the_default_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    store = Home(str(tmp_path / "store"), "ada")
    environ = {"HOME": str(tmp_path), "DAYPACK_HOME": str(tmp_path / "store")}
    assert this_program(store, environ).variables == (("DAYPACK_HOME", store.root), ("DAYPACK_UID", "ada"))
    default = Home(str(tmp_path / ".daypack"), str(os.getuid()))
    assert this_program(default, environ).variables == ()
