"""Location of public data that is not part of the project: $DAYPACK_DATA, or ../shared/data."""

import os

# Read here, because the run itself is given an environment without settings of daypack.
_FOLDER = os.environ.get("DAYPACK_DATA") or os.path.join(os.getcwd(), os.pardir, "shared", "data")
ABSENT = "skipped: no data (name its folder in DAYPACK_DATA)"


def find(*path: str) -> str | None:
    """Return the path of a data file or folder, None if it does not exist."""
    place = os.path.join(_FOLDER, *path)
    return place if os.path.exists(place) else None
