"""The system's limit of open files, and how many connections there is room for."""

import resource

from daypack.serve.observe.log import log

ACCEPTED_AT_ONCE = 64  # by one round of the event loop; a connection that is replaced is closed three rounds later
_LEAST_CONNECTIONS = 20
_FILES_IN_BETWEEN = 4 * ACCEPTED_AT_ONCE
_FILES_OF_MACOS = 10_240  # OPEN_MAX: macOS never refuses so many
_OTHER_FILES = 256  # open files besides connections: stores, indexes, threads


def needed_files(connections: int) -> int:
    """Return how many open files a server with so many connections may have."""
    return connections + _FILES_IN_BETWEEN + _OTHER_FILES


def room_for(files: int) -> int:
    """Return how many connections a server may have with so many open files."""
    return max(_LEAST_CONNECTIONS, files - _FILES_IN_BETWEEN - _OTHER_FILES)


def allow_connections(asked: int) -> int:
    """Return how many connections there is room for, after raising the limit of open files as far as the system allows.

    With more, none could be accepted any more: closing one in favour of another needs a free file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = needed_files(asked)
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        most = _raise_file_limit(soft, most, hard)
    if most == needed:
        return asked
    allowed = room_for(most)
    hint = f"for {asked:,} connections allow {needed:,} open files (ulimit -Hn)"
    log.line("warning", "server.connections", asked=asked, allowed=allowed, files=most, hint=hint)
    return allowed


def _raise_file_limit(soft: int, most: int, hard: int) -> int:
    """Raise the limit of open files as far as possible and return it; macOS refuses much although it shows no limit."""
    for limit in (most, min(most, _FILES_OF_MACOS)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
        except (ValueError, OSError):
            continue
        return max(soft, limit)
    return soft
