"""daypack: a context runtime for AI agents.

import daypack
with daypack.open_session("demo") as session:
    session.append("user", "Hello")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daypack import errors, protocol
    from daypack.memory.tools import Memories, open_memory
    from daypack.session import Session, open_session

__all__ = ["Memories", "Session", "errors", "open_memory", "open_session", "protocol"]
__version__ = "0.1.0"
_PLACES = {"Memories": "memory.tools", "Session": "session", "open_memory": "memory.tools", "open_session": "session"}

_PACKAGES = ("errors", "protocol")


def __getattr__(name: str) -> Any:  # noqa: ANN401 — as the names themselves are typed above
    """Import what is asked for, when it is: a hook that appends needs no memory, a memory server no session."""
    from importlib import import_module  # noqa: PLC0415

    if name in _PACKAGES:
        return import_module(f"daypack.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'daypack' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"daypack.{_PLACES[name]}"), name)
    return value
