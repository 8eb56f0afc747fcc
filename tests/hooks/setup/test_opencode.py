"""`daypack setup --agent opencode`: the file that loads the plug-in, the memory tools, and both taken back."""

import json

import pytest
from user_home import UserHome

FOLDER = ".config/opencode"
LOADER = f"{FOLDER}/plugin/daypack.js"


@pytest.fixture
def opencode(user: UserHome) -> UserHome:
    user.install("opencode")
    return user


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode.json", '{"theme":   "system"}'),
        ("opencode.jsonc", '{\n  // mine\n  "mcp": {"other": {"type": "local", "command": ["x"]}},\n}\n'),
    ],
)
def test_settings_are_restored_byte_for_byte(opencode: UserHome, name: str, text: str) -> None:
    opencode.write(f"{FOLDER}/{name}", text)
    before = opencode.tree()
    opencode.set_up("--agent", "opencode")
    assert '"daypack"' in opencode.read(f"{FOLDER}/{name}")
    assert opencode.remove("--agent", "opencode").returncode == 0
    assert opencode.tree() == before


def test_without_settings_files_are_made_and_removed(opencode: UserHome) -> None:
    before = opencode.tree()
    opencode.set_up("--agent", "opencode")
    server = json.loads(opencode.read(f"{FOLDER}/opencode.json"))["mcp"]["daypack"]
    assert server["command"][:2] == ["sh", "-c"]
    script = opencode.read(LOADER).split('"')[1]
    with open(script, encoding="utf-8") as file:
        assert "hook opencode --serve" in file.read()
    opencode.remove("--agent", "opencode")
    assert opencode.tree() == before


def test_a_file_of_that_name_by_another_hand_is_left_as_it_is(opencode: UserHome) -> None:
    opencode.write(LOADER, "export const Mine = async () => ({})\n")
    opencode.set_up("--agent", "opencode")
    assert opencode.read(LOADER) == "export const Mine = async () => ({})\n"
