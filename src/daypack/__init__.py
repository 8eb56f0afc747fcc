"""daypack: a context runtime for AI agents.

import daypack
with daypack.open_session("demo") as session:
    session.append("user", "Hello")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daypack.memory.tools import Memories, open_memory
    from daypack.runtime import Session, open_session

__all__ = ["Memories", "Session", "open_memory", "open_session"]
__version__ = "0.1.0"
_PLACES = {"Memories": "memory.tools", "Session": "runtime", "open_memory": "memory.tools", "open_session": "runtime"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 — as the names themselves are typed above
    """Import what is asked for, when it is: a hook that appends needs no memory, a memory server no session."""
    if name not in _PLACES:
        raise AttributeError(f"module 'daypack' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = globals()[name] = getattr(import_module(f"daypack.{_PLACES[name]}"), name)
    return value
