"""daypack: a context runtime for AI agents.

import daypack
with daypack.open_session("demo") as session:
    session.append("user", "Hello")
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daypack import errors, protocol
    from daypack.memory.tools import Memories, open_memory
    from daypack.session import Session, open_session
    from daypack.turn.turn import Turn
    from daypack.types.history import Message, ToolCall

__all__ = ["Memories", "Message", "Session", "ToolCall", "Turn", "errors", "open_memory", "open_session", "protocol"]
__version__ = "0.1.0"

if sys.platform == "win32":
    from daypack.system import check_supported

    check_supported()

_MODULES = {
    "Memories": "daypack.memory.tools",
    "Message": "daypack.types.history",
    "Session": "daypack.session",
    "ToolCall": "daypack.types.history",
    "Turn": "daypack.turn.turn",
    "open_memory": "daypack.memory.tools",
    "open_session": "daypack.session",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 — the names are typed above
    """Import a public name when it is first used: a hook that appends loads no memory, a memory server no session."""
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(f"module 'daypack' has no attribute {name!r}")
    if name not in _MODULES:
        return import_module(f"daypack.{name}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet, for `dir(daypack)` and completion."""
    return sorted({*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"})
