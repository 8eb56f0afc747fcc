"""Gemini CLI: the file that links the extension, and the settings that keep its hooks from running.

<folder>/extensions/daypack/.gemini-extension-install.json   {"source":"<home>/plugin/gemini","type":"link"}

`gemini extensions link` also notes that the extension is enabled, which it is without a note, signs the link with a key
of its own, which only updates ask for, and trusts the source, which only that command asks for.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from daypack.hooks.setup.plugin_folder import GEMINI, PLUGIN

_HOOK = "daypack"  # the name of our hooks in the extension


def link_file(folder: str, marketplace: str) -> tuple[str, bytes]:
    """Return the file in the folder of Gemini CLI that makes it load the extension, and its content."""
    link = {"source": os.path.join(marketplace, GEMINI), "type": "link"}
    path = os.path.join(folder, "extensions", PLUGIN, ".gemini-extension-install.json")
    return path, msgspec.json.format(msgspec.json.encode(link), indent=2)


def find_switches(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings that switch our hooks off."""
    switches = settings.get("hooksConfig")
    hooks = cast("dict[str, Any]", switches) if isinstance(switches, dict) else {}
    if hooks.get("enabled") is False:
        yield "hooksConfig.enabled"
    disabled = hooks.get("disabled")
    if isinstance(disabled, list) and _HOOK in disabled:
        yield "hooksConfig.disabled"


def enablement_file(folder: str) -> str:
    """Return the file in which `gemini extensions disable` notes folders, as `!FOLDER/*`."""
    return os.path.join(folder, "extensions", "extension-enablement.json")


def find_disabled(noted: Mapping[str, Any]) -> list[str]:
    """Return the folders in which the user disabled the extension."""
    own = noted.get(PLUGIN)
    rules = cast("dict[str, Any]", own).get("overrides") if isinstance(own, dict) else None
    texts = cast("list[object]", rules) if isinstance(rules, list) else []
    return [rule[1:] for rule in texts if isinstance(rule, str) and rule.startswith("!")]
