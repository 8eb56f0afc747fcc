"""The public session: `open_session` and what it returns."""

from daypack.session.opening import open_session
from daypack.session.session import Session

__all__ = ["Session", "open_session"]
