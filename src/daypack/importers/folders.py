"""Listings of folders, read again only where entries were added or removed: a scan of known folders is a few stats."""

import os
import re
import time
from collections.abc import Callable, Iterator
from fnmatch import translate

_SETTLED_SECONDS = 2.1  # longer than a tick of any file system's clock: a newer time may hide a second change
_MOST_DEPTH = 12  # folders below the first that ** finds
_WILD = re.compile(r"[*?[]")


class _Listing:
    """The entries of a folder, and those of them that match a pattern."""

    def __init__(self, modified: int, folders: list[str], files: list[str], *, settled: bool) -> None:
        self.modified = modified
        self.settled = settled
        self.folders = folders
        self.files = files
        self._matching: dict[tuple[str, bool], list[str]] = {}

    def matching(self, pattern: str, *, folders: bool) -> list[str]:
        """Return the names that match, sorted; * matches no name that starts with a dot."""
        key = pattern, folders
        if key not in self._matching:
            matches = re.compile(translate(pattern)).match
            names = self.folders if folders else self.files
            hidden = pattern.startswith(".")
            self._matching[key] = [name for name in names if matches(name) and (hidden or not name.startswith("."))]
        return self._matching[key]


_NOTHING = _Listing(0, [], [], settled=False)


class Folders:
    """Finds files by patterns; what a folder had is known until its modification time changes."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._listings: dict[str, _Listing] = {}

    def match(self, root: str, pattern: str) -> Iterator[str]:
        """Yield the files below a folder that match a pattern such as projects/*/*.jsonl; some may not exist.

        `**` is the folder and all folders below it, without hidden ones and links.
        """
        *above, last = pattern.split("/")
        folders = [root]
        for segment in above:
            if segment == "**":
                folders = [below for folder in folders for below in self._folders_below(folder)]
            elif _WILD.search(segment):
                folders = [
                    os.path.join(folder, name)
                    for folder in folders
                    for name in self._list(folder).matching(segment, folders=True)
                ]
            else:
                folders = [os.path.join(folder, segment) for folder in folders]
        for folder in folders:
            names = self._list(folder).matching(last, folders=False) if _WILD.search(last) else [last]
            yield from (os.path.join(folder, name) for name in names)

    def _folders_below(self, folder: str, depth: int = 0) -> Iterator[str]:
        yield folder
        for name in self._list(folder).matching("*", folders=True) if depth < _MOST_DEPTH else ():
            below = os.path.join(folder, name)
            if not os.path.islink(below):
                yield from self._folders_below(below, depth + 1)

    def below(self, root: str) -> Iterator[str]:
        """Yield all files below a folder, in order of their paths; links to folders are not followed."""
        listing = self._list(root)
        yield from (os.path.join(root, name) for name in listing.files)
        for name in listing.folders:
            folder = os.path.join(root, name)
            if not os.path.islink(folder):
                yield from self.below(folder)

    def _list(self, folder: str) -> _Listing:
        try:
            modified = os.stat(folder).st_mtime_ns
        except OSError:
            self._listings.pop(folder, None)
            return _NOTHING
        known = self._listings.get(folder)
        if known and known.modified == modified and known.settled:
            return known
        settled = self._clock() - modified / 1e9 > _SETTLED_SECONDS
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else files).append(entry.name)
        except OSError:
            return _NOTHING
        listing = _Listing(modified, sorted(folders), sorted(files), settled=settled)
        self._listings[folder] = listing
        return listing


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
