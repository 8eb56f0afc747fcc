"""What the HTTP doors answer when they cannot answer: a status and one error object, in the form of each door.

/api, /health …   {"error":{"code":"TooLong","message":"the document has 5,001 characters","hint":"…"}}
/mcp              {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…","data":{"code":"TooLong","hint":"…"}}}
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from daypack import errors

Send = Callable[[Any], Awaitable[None]]

# The first class that fits decides: subclasses stand before what they are a kind of.
STATUSES: tuple[tuple[type[errors.DaypackError], int], ...] = (
    (errors.KeyConflict, 409),
    (errors.QuotaExceeded, 403),  # not 429: waiting does not help
    (errors.BadConfig, 500),
    (errors.BadInput, 400),
    (errors.ExtraMissing, 501),
    (errors.ModelMissing, 501),
    (errors.NotFound, 404),
    (errors.AccessDenied, 403),
    (errors.LockUnavailable, 503),
    (errors.WriteFailed, 507),
    (errors.StorageFailed, 500),
    (errors.ModelFailed, 502),
)
# Their texts are made from what the caller sent. All others may name files and machines of the server.
_TELLING = (errors.BadInput, errors.NotFound, errors.AccessDenied)
_UNTOLD = {
    errors.BadConfig: "a setting of the server is wrong",
    errors.ExtraMissing: "a package that this needs is not installed on the server",
    errors.ModelMissing: "a model that this needs is not on the server",
    errors.StorageFailed: "the server could not write or read its store; nothing was acknowledged",
    errors.ModelFailed: "a model the server uses did not answer",
    errors.Damaged: "what the server has stored is damaged",
}
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class Problem(NamedTuple):
    """What went wrong, as the caller may know it."""

    status: int
    code: str
    message: str
    hint: str = ""

    @property
    def body(self) -> bytes:
        """The answer of the JSON API."""
        told = {"code": self.code, "message": self.message}
        return msgspec.json.encode({"error": told | ({"hint": self.hint} if self.hint else {})})

    @property
    def rpc_body(self) -> bytes:
        """The answer of the MCP door to a request that was not even read."""
        code = _PARSE_ERROR if self.code == "BadInput" else _INVALID_REQUEST
        data = {"code": self.code} | ({"hint": self.hint} if self.hint else {})
        error = {"code": code, "message": self.message, "data": data}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})


def describe(error: BaseException) -> Problem:
    """Return what may be told of an error: nothing of files, machines and code."""
    if not isinstance(error, errors.DaypackError):
        return Problem(500, "Internal", "the server failed; its log tells more")
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    code = type(error).__name__
    untold = next((text for kind, text in _UNTOLD.items() if isinstance(error, kind)), "")
    if not untold and isinstance(error, _TELLING):
        return Problem(status, code, error.problem, error.hint)
    return Problem(status, code, untold or "the server failed; its log tells more")


async def answer(send: Send, status: int, body: bytes, headers: Mapping[str, str] = {}) -> None:
    """Send a whole JSON answer."""
    told: Iterable[tuple[str, str]] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **headers,
    }.items()
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
