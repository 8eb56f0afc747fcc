"""Location of public data that is not part of the project: $DAYPACK_DATA, or ../shared/data.

Transcripts of another folder are measured with $DAYPACK_TRANSCRIPTS.
"""

import os

# Read here, because the run itself is given an environment without settings of daypack.
_FOLDER = os.environ.get("DAYPACK_DATA") or os.path.join(os.getcwd(), os.pardir, "shared", "data")
_TRANSCRIPTS = os.environ.get("DAYPACK_TRANSCRIPTS") or os.path.join(_FOLDER, "transcripts")
ABSENT = "skipped: no data (name its folder in DAYPACK_DATA)"
NO_TRANSCRIPTS = "skipped: no transcripts (name their folder in DAYPACK_TRANSCRIPTS)"


def find(*path: str) -> str | None:
    """Return the path of a data file or folder, None if it does not exist."""
    place = os.path.join(_FOLDER, *path)
    return place if os.path.exists(place) else None


def find_transcripts() -> str | None:
    """Return the folder of recorded agent sessions, None if it does not exist."""
    return _TRANSCRIPTS if os.path.isdir(_TRANSCRIPTS) else None
