"""Public data that is read where it lies and is no part of the project: $DAYPACK_DATA, or ../shared/data."""

import os

# Read here, because the run itself is given an environment without settings of daypack.
_FOLDER = os.environ.get("DAYPACK_DATA") or os.path.join(os.getcwd(), os.pardir, "shared", "data")
ABSENT = "skipped: no data (name its folder in DAYPACK_DATA)"


def find(*path: str) -> str | None:
    """Return where a file or folder of the data is; None when it is not there."""
    place = os.path.join(_FOLDER, *path)
    return place if os.path.exists(place) else None
