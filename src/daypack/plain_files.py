"""Opens files for reading, and nothing else: a named pipe would wait for a writer forever, a device may have no end."""

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def open_fd(path: str, flags: int = 0) -> int:
    """Open a plain file for reading, and return its descriptor; raise OSError for anything else.

    Links are followed, unless `flags` has O_NOFOLLOW.
    """
    # Without O_NONBLOCK, opening a named pipe waits for a writer.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, f"is {_KINDS.get(stat.S_IFMT(mode), 'special')}, not a plain file", path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_plain(path: str) -> BufferedReader:
    """Open a plain file for reading; raise OSError for a named pipe, a device, a socket or a folder."""
    return open(open_fd(path), "rb")


def open_named(path: str) -> BufferedReader:
    """Open what a user named on the command line: a plain file, or a stream of the shell (/dev/stdin, `<(…)`)."""
    return open(path, "rb") if path.startswith(_STREAMS) else open_plain(path)


def mentions(path: str, *words: bytes) -> bool:
    """Return True if a file that can be read has one of the words; without one it need not be parsed."""
    with suppress(OSError), open_plain(path) as file:
        text = file.read()
        return any(word in text for word in words)
    return False
