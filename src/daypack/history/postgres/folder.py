"""The files of a cache that say what it is one of, and that another process may delete at any time.

stored.json   {"identity":"9f86d081884c7d65/12","generation":0,"version":3,"boot":"…"}
"""

import os
from collections.abc import Callable

import msgspec
from msgspec import Struct

from daypack.errors import StorageFailed
from daypack.files import atomic
from daypack.files.atomic import is_missing
from daypack.history.layout import Layout
from daypack.history.postgres.store import Opened
from daypack.history.postgres.stored import LOGS

_MARKER = "stored.json"
_MOST_DELETIONS = 100  # of a folder, while it is filled


class Marker(Struct, frozen=True):
    """What a folder is a cache of."""

    identity: str
    generation: int
    version: int  # of the small files
    boot: str  # the start of the machine since which the folder was written


_markers = msgspec.json.Decoder(Marker)


def read_marker(layout: Layout) -> Marker | None:
    """Return what a folder is a cache of; None if it has no marker that can be read."""
    try:
        return _markers.decode(atomic.read(os.path.join(layout.folder, _MARKER)) or b"")
    except (StorageFailed, msgspec.MsgspecError):
        return None


def write_marker(layout: Layout, marker: Marker) -> None:
    """Say what a folder is a cache of."""
    path = os.path.join(layout.folder, _MARKER)
    data = msgspec.json.encode(marker) + b"\n"
    if atomic.read(path) != data:
        atomic.replace(path, data, durable=False)


def discard_marker(layout: Layout) -> None:
    """Have everything fetched again by the next one who fills the folder."""
    atomic.discard(os.path.join(layout.folder, _MARKER))


def make_folder(layout: Layout, opened: Opened) -> None:
    """Create the files of a cache that are missing; none of them has anything of the session yet, but small files."""
    atomic.make_folders(layout.folder, durable=False)
    layout.guard()
    small = {
        layout.created_at: opened.files.created_at,
        layout.updated_at: opened.files.created_at,
        layout.cwd: opened.files.cwd,
        layout.meta: opened.files.meta,
        **{os.path.join(layout.folder, f"{log}.jsonl"): b"" for log in LOGS},
    }
    for path, data in small.items():
        atomic.create(path, data, durable=False, named=False)


def despite_deletions(work: Callable[[], None]) -> None:
    """Call `work`, again if a file is deleted meanwhile."""
    for _ in range(_MOST_DELETIONS):
        try:
            return work()
        except StorageFailed as error:
            if not is_missing(error):
                raise
    return work()
