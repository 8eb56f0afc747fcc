"""Keys of a keyboard as events of the DevTools protocol."""

from typing import Any, NamedTuple


class _Key(NamedTuple):
    code: str
    number: int
    text: str = ""


_NAMED = {
    "Enter": _Key("Enter", 13, "\r"),
    "Tab": _Key("Tab", 9),
    "Escape": _Key("Escape", 27),
    "Backspace": _Key("Backspace", 8),
    "Delete": _Key("Delete", 46),
    "ArrowLeft": _Key("ArrowLeft", 37),
    "ArrowUp": _Key("ArrowUp", 38),
    "ArrowRight": _Key("ArrowRight", 39),
    "ArrowDown": _Key("ArrowDown", 40),
    "Home": _Key("Home", 36),
    "End": _Key("End", 35),
    "PageUp": _Key("PageUp", 33),
    "PageDown": _Key("PageDown", 34),
    " ": _Key("Space", 32, " "),
}
SHIFT = 8
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": SHIFT}


def key_events(key: str) -> list[dict[str, Any]]:
    """Return the events of pressing and releasing a key: "j", "Enter", "Shift+Tab", "?"."""
    *held, name = key.split("+") if len(key) > 1 else [key]
    modifiers = sum(_MODIFIERS[modifier] for modifier in held)
    found = _NAMED.get(name) or _printable(name)
    about: dict[str, Any] = {
        "key": name,
        "code": found.code,
        "windowsVirtualKeyCode": found.number,
        "modifiers": modifiers,
    }
    text = "" if modifiers & ~SHIFT else found.text
    down = {"type": "keyDown", "text": text, "unmodifiedText": text} if text else {"type": "rawKeyDown"}
    return [{**about, **down}, {**about, "type": "keyUp"}]


def _printable(name: str) -> _Key:
    if name.isascii() and name.isalpha():
        return _Key(f"Key{name.upper()}", ord(name.upper()), name)
    if name.isascii() and name.isdigit():
        return _Key(f"Digit{name}", ord(name), name)
    return _Key("", 0, name)
