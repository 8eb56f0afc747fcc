"""What makes daypack active in opencode: a file that loads the plug-in, and the memory tools in its settings.

Measured with opencode 1.18.33 in an empty home: it loads every file of `plugin/` in its folder, and reads the settings
in opencode.json and opencode.jsonc, the latter over the former.
"""

import os
import re
from collections.abc import Mapping

import msgspec

SCRIPT = "opencode/daypack.js"  # in the folder of the shipped files
_NAMES = ("opencode.jsonc", "opencode.json")
NEW_SETTINGS = '{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
_COMMAND, _HOME = (re.compile(rb"^const %s = .*$" % name, re.MULTILINE) for name in (b"COMMAND", b"HOME"))


def render_script(script: bytes, command_text: str, home_folder: str) -> bytes:
    """Return the plug-in file with the command that finds this very program, and its home, "" for the usual one."""
    command, home = msgspec.json.encode(["sh", "-c", command_text]), msgspec.json.encode(home_folder)
    script = _COMMAND.sub(lambda _: b"const COMMAND = " + command, script, count=1)
    return _HOME.sub(lambda _: b"const HOME = " + home, script, count=1)


def render_loader(script: str) -> bytes:
    """Return the file in opencode's folder, given the path of the plug-in file, which it loads."""
    return (
        b"// daypack: `daypack setup --remove` removes this file\nexport { default } from "
        + msgspec.json.encode(script)
        + b"\n"
    )


def loader_path(folder: str) -> str:
    """Return where opencode looks for plug-ins, given the folder of its settings."""
    return os.path.join(folder, "plugin", "daypack.js")


def settings_path(folder: str) -> str:
    """Return the settings file that counts; that of a new installation if there is none."""
    found = (os.path.join(folder, name) for name in _NAMES)
    return next((path for path in found if os.path.exists(path)), os.path.join(folder, _NAMES[-1]))


def server_entry(arguments: list[str]) -> Mapping[str, object]:
    """Return the entry of the memory tools, given the arguments of the shell that starts the server."""
    return {"type": "local", "command": ["sh", *arguments], "enabled": True}
