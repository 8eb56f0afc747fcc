"""daypack: a context runtime for AI agents.

import daypack
with daypack.open_session("demo") as session:
    session.append("user", "Hello")
"""

from daypack.runtime import Session, open_session

__all__ = ["Session", "open_session"]
__version__ = "0.1.0"
