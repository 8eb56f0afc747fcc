"""Where an import starts: after the newest progress of which the file still has the bytes."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from daypack.importers.import_events import Boundary
from daypack.importers.lines import Lines

if TYPE_CHECKING:
    from hashlib import _Hash  # pyright: ignore[reportPrivateUsage] — the only name its type has


class Start(NamedTuple):
    """A boundary that the file still has, and the line up to which what was imported after it has changed, or 0."""

    boundary: Boundary
    changed: int = 0
    is_shorter: bool = False  # the file ends before the newest boundary


class PartDigest:
    """The digest of the lines after a boundary, which continues the digest of the boundary."""

    def __init__(self, after: str) -> None:
        from hashlib import sha256  # noqa: PLC0415 — 2 ms that other commands need not pay

        self.after = after
        self._hash: _Hash = sha256(after.encode())

    def add(self, raw: bytes) -> None:
        """Add a line."""
        self._hash.update(raw)
        self._hash.update(b"\n")

    def __str__(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def find_start(lines: Lines, boundaries: Sequence[Boundary]) -> Start:
    """Read the file up to the last boundary, and return the last one that it has.

    An edited file that was imported has boundaries of both versions: it is changed only if none was recorded after the
    one that is missing.
    """
    start, newest = Boundary(), -1
    at_line: dict[int, list[tuple[int, Boundary]]] = defaultdict(list)
    last_use: dict[str, int] = {}  # the line after which no boundary continues a digest
    for age, boundary in enumerate(boundaries):
        at_line[boundary.lines].append((age, boundary))
        last_use[boundary.after] = max(boundary.lines, last_use.get(boundary.after, 0))
    digests = {"": PartDigest("")} if boundaries else {}
    missing: list[tuple[int, int]] = []  # when a boundary was recorded that the file lacks, and its line
    number = 0
    for number, line in enumerate(lines.read() if digests else (), 1):
        for digest in digests.values():
            digest.add(line.raw)
        for age, boundary in at_line.get(number, ()):
            digest = digests.get(boundary.after)
            if digest is None or str(digest) != boundary.digest:
                missing.append((age, number))
                continue
            start, newest = boundary, max(newest, age)
            if last_use.get(boundary.digest, 0) >= number:
                digests[boundary.digest] = PartDigest(boundary.digest)
        if number in at_line:
            digests = {after: digest for after, digest in digests.items() if last_use[after] > number}
            if not digests:
                break
    is_shorter = bool(boundaries) and boundaries[-1].lines > number
    return Start(start, min((line for age, line in missing if age > newest), default=0), is_shorter)
