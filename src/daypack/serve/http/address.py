"""The address a server listens at; taken before anything large is loaded, so that a taken one is told at once."""

import errno
import socket

from daypack.errors import BadInput

_BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; 0 takes a free port."""
    place = f"{host}:{port}"
    listening: socket.socket | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # asyncio sends small answers at once only on a socket that names its protocol; else each waits for 40 ms.
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        if listening is not None:
            listening.close()
        hint = "--host takes an address of this machine"
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            hint = "is a server running there already? --port N takes another port, --port 0 a free one"
        elif isinstance(error, PermissionError):
            hint = "take a port above 1023"
        problem = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot listen: {problem}", operation="serve", place=place, hint=hint) from error
    return listening
