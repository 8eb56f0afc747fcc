"""Which files are there now: those of known places, or those below the paths that the user named."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from daypack.importers.folders import Folders
from daypack.importers.places import PLACES, PlacedFile, find_file


class Found(NamedTuple):
    """A file, and the known place that it is of; "" if the user named it."""

    place: str
    file: PlacedFile


class Scanner(Protocol):
    """Finds the files that there are now."""

    def scan(self) -> list[Found]:
        """Return them all, each once."""
        ...


class PlacesScanner:
    """Finds the files of known places."""

    def __init__(self, places: Sequence[str], environ: Mapping[str, str]) -> None:
        self._places = places
        self._environ = environ
        self._folders = Folders()

    def scan(self) -> list[Found]:
        """Return them all, each once; folders that appear later are found then."""
        return [
            Found(name, file)
            for name in self._places
            for file in PLACES[name].find_files(self._environ, self._folders.match)
        ]


class PathsScanner:
    """Finds the files that the user named, and those below folders that the user named."""

    def __init__(self, paths: Sequence[str], endings: tuple[str, ...]) -> None:
        self._paths = paths
        self._endings = endings
        self._folders = Folders()

    def scan(self) -> list[Found]:
        """Return them all, each once."""
        paths = dict.fromkeys(file for path in self._paths for file in self._files(os.path.abspath(path)))
        return [Found("", file) for path in paths if (file := find_file(path))]

    def _files(self, path: str) -> list[str]:
        if not os.path.isdir(path):
            return [path]
        return [file for file in self._folders.below(path) if file.endswith(self._endings)]
