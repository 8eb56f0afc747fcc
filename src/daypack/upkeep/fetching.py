"""Brings the folder of a session in a database up to date with everything that the database has, blobs included."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from daypack.errors import BadName
from daypack.files import atomic
from daypack.history.creation import find_stored
from daypack.history.layout import Layout, check_name
from daypack.history.session import History
from daypack.upkeep.session_settings import settings_of

if TYPE_CHECKING:
    from daypack.history.postgres.stored import StoredSession


def fetch_session(layout: Layout) -> None:
    """Fetch what the folder of a session lacks; nothing is done for a session in files, or one that is gone."""
    if layout.home.database is None:
        return
    opened = find_stored(layout)
    if opened is None:
        return
    history = History(layout, settings_of(layout.home, layout), opened=opened)
    try:
        with history.lock:
            fetch_blobs(layout, opened.stored)
    finally:
        history.close()


def fetch_blobs(layout: Layout, stored: "StoredSession") -> None:
    """Fetch the blobs that the folder of a session lacks; the caller holds its lock."""
    for name in stored.blob_names():
        _fetch_blob(layout, name, stored.blob)


def _fetch_blob(layout: Layout, name: str, read: Callable[[str], bytes | None]) -> None:
    """Fetch a blob as it is, also if its bytes do not match its name."""
    try:
        path = os.path.join(layout.blob, check_name(name, "blob"))
    except BadName:
        return  # no name of ours
    if not os.path.lexists(path) and (data := read(name)) is not None:
        atomic.make_folders(layout.blob, durable=False)
        atomic.create(path, data, durable=False)
