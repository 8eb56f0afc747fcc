"""Reads what a host sends, without waiting where nothing is sent."""

import os
import select
import time

_FIRST_SECONDS = 0.25  # a host writes when it starts the program
_WHOLE_SECONDS = 1.0
_MAX_BYTES = 1 << 20
_CHUNK = 1 << 16


def read_waiting(fd: int) -> bytes:
    """Return what is sent on a descriptor until its end; nothing from a terminal, or from a pipe that stays silent."""
    try:
        if os.isatty(fd):
            return b""
        data, end = b"", time.monotonic() + _FIRST_SECONDS
        while len(data) < _MAX_BYTES:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                return data
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                return data
            if not data:
                end = time.monotonic() + _WHOLE_SECONDS
            data += chunk
    except (OSError, ValueError):  # it is closed
        return b""
    return data
