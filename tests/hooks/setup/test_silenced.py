"""Settings that keep hooks from running are found."""

import os
from pathlib import Path

import pytest

from daypack.history.home import find_home
from daypack.hooks.setup.silenced import find_silenced


@pytest.mark.parametrize(("folder", "title"), [(".claude", "Claude Code"), (".qwen", "Qwen Code")])
def test_an_agent_that_runs_no_hooks_is_named_with_its_file(tmp_path: Path, folder: str, title: str) -> None:
    home, environ = find_home(tmp_path / "home"), {"HOME": str(tmp_path), "PATH": ""}
    settings = tmp_path / folder / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "disableAllHooks": true\n}', encoding="utf-8")
    [found] = find_silenced(home, environ)
    assert (found.place, title in found.problem) == (str(settings), True)
    settings.write_text('{"disableAllHooks": false}', encoding="utf-8")
    assert find_silenced(home, environ) == []


@pytest.mark.parametrize("text", ['{"hooksConfig": {"enabled": false}}', '{"hooksConfig": {"disabled": ["daypack"]}}'])
def test_gemini_with_hooks_that_are_switched_off_is_named_with_its_file(tmp_path: Path, text: str) -> None:
    home, environ = find_home(tmp_path / "home"), {"HOME": str(tmp_path), "PATH": ""}
    settings = tmp_path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(text, encoding="utf-8")
    [found] = find_silenced(home, environ)
    assert (found.place, "Gemini CLI" in found.problem) == (str(settings), True)
    settings.write_text('{"hooksConfig": {"enabled": true, "disabled": ["other"]}}', encoding="utf-8")
    assert find_silenced(home, environ) == []


def test_an_extension_that_was_disabled_with_geminis_own_command_is_named(tmp_path: Path) -> None:
    home, environ = find_home(tmp_path / "home"), {"HOME": str(tmp_path), "PATH": ""}
    noted = tmp_path / ".gemini" / "extensions" / "extension-enablement.json"
    noted.parent.mkdir(parents=True)
    noted.write_text('{"daypack": {"overrides": ["!/home/ada/*"]}}', encoding="utf-8")
    [found] = find_silenced(home, environ)
    assert (found.place, "disabled in /home/ada/*" in found.problem) == (str(noted), True)
    assert "gemini extensions enable daypack" in found.hint
    for text in (
        '{"daypack": {"overrides": ["/home/ada/*", 3]}, "other": {"overrides": ["!/*"]}}',
        "[]",
        '{"daypack": 1}',
    ):
        noted.write_text(text, encoding="utf-8")
        assert find_silenced(home, environ) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("enabled = false", "hooks are switched off by `enabled = false`"),
        ("enabeld = false", "enabeld is no setting of [hooks]"),
        ("enabled = 3", "hooks do nothing: enabled is 3"),
    ],
)
def test_a_setting_of_hooks_that_silences_them_or_is_unknown_is_named(tmp_path: Path, text: str, problem: str) -> None:
    home = find_home(tmp_path / "home")
    os.makedirs(home.folder)
    Path(home.config).write_text(f"[hooks]\n{text}\n", encoding="utf-8")
    [found] = find_silenced(home, {"HOME": str(tmp_path), "PATH": ""})
    assert (found.place, problem in found.problem) == (home.config, True)
