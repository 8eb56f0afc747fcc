"""What a client learns about an error, and what only the server's log gets.

/api, /health …   {"error":{"code":"TooLong","message":"the document has 5,001 characters","hint":"…"}}
/mcp              {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"…","data":{"code":"TooLong","hint":"…"}}}
"""

from typing import NamedTuple

import msgspec

from daypack import errors
from daypack.serve.observe.observer import report_error
from daypack.serve.observe.request_facts import current

# The first match decides, so a subclass is listed before its base class.
STATUSES: tuple[tuple[type[errors.DaypackError], int], ...] = (
    (errors.KeyConflict, 409),
    (errors.QuotaExceeded, 403),  # not 429: waiting does not help
    (errors.BadConfig, 500),
    (errors.BadInput, 400),
    (errors.ExtraMissing, 501),
    (errors.ModelMissing, 501),
    (errors.NotFound, 404),
    (errors.AccessDenied, 403),
    (errors.ServerBusy, 503),
    (errors.RateLimited, 429),
    (errors.LockUnavailable, 503),
    (errors.WriteFailed, 507),
    (errors.StorageFailed, 500),
    (errors.ModelFailed, 502),
)
# The texts of these come from what the caller sent. Texts of other errors may name files and hosts of the server.
_PUBLIC = (errors.BadInput, errors.NotFound, errors.AccessDenied, errors.RateLimited)
_GENERIC_MESSAGES = {
    errors.BadConfig: "the server is misconfigured",
    errors.ExtraMissing: "a package this needs is not installed on the server",
    errors.ModelMissing: "a model this needs is not installed on the server",
    errors.WriteFailed: "the server could not write; the request was not carried out",
    errors.CommitUnknown: "the server lost its database during the write: it is not known whether it was stored",
    errors.StorageFailed: "the server could not read or write its store; the request was not carried out",
    errors.ModelFailed: "a model the server uses did not answer",
    errors.Damaged: "stored data on the server is damaged",
}
_GENERIC_HINTS = {
    errors.WriteFailed: "the server's log names the file; try again when GET /health/ready answers 200",
    errors.CommitUnknown: "read it, or repeat the call with the same client key",
    errors.StorageFailed: "the server's log names the file",
    errors.Damaged: "run `daypack doctor` on the server",
}
_UNREACHABLE = "the server cannot use its database now; the request was not carried out"
_UNREACHABLE_HINT = "try again when GET /health/ready answers 200"
_RETRY_SECONDS = 5
_INTERNAL = "internal server error; see the server's log"
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class Problem(NamedTuple):
    """An error as the client sees it, with its HTTP status, and when to try again: 0 says nothing about it."""

    status: int
    code: str
    message: str
    hint: str = ""
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to it."""
        return {"retry-after": str(self.retry_after)} if self.retry_after else {}

    @property
    def body(self) -> bytes:
        """The response body for the JSON API."""
        error = {"code": self.code, "message": self.message}
        return msgspec.json.encode({"error": error | self._optional_hint()})

    @property
    def rpc_body(self) -> bytes:
        """The response body for /mcp, for a request that was rejected before it was parsed as JSON-RPC."""
        code = _PARSE_ERROR if self.code == "BadInput" else _INVALID_REQUEST
        error = {"code": code, "message": self.message, "data": {"code": self.code} | self._optional_hint()}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})

    def _optional_hint(self) -> dict[str, str]:
        return {"hint": self.hint} if self.hint else {}


def error_names() -> list[str]:
    """Return every code that a Problem may have."""
    pending: list[type[errors.DaypackError]] = [errors.DaypackError]
    for kind in pending:
        pending += kind.__subclasses__()
    return [kind.__name__ for kind in pending] + ["Internal", "NotReady", "RpcError", "TimedOut"]


def describe(error: BaseException) -> Problem:
    """Return the public description of an error, without file names, host names or code."""
    if not isinstance(error, errors.DaypackError):
        return Problem(500, "Internal", _INTERNAL)
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
    code = type(error).__name__
    if is_unreachable(error):
        return Problem(503, code, _UNREACHABLE, _UNREACHABLE_HINT, _RETRY_SECONDS)
    generic, hint = (
        next((text for kind, text in texts.items() if isinstance(error, kind)), "")
        for texts in (_GENERIC_MESSAGES, _GENERIC_HINTS)
    )
    if not generic and isinstance(error, _PUBLIC):
        from daypack.text.redact.redact import redact  # noqa: PLC0415 — its patterns cost 20 ms

        # They repeat what the caller sent, which may be a secret in the wrong argument.
        wait = error.retry_after if isinstance(error, errors.RateLimited) else 0
        return Problem(status, code, redact(error.problem).text, redact(error.hint).text, wait)
    return Problem(status, code, generic or _INTERNAL, hint)


def is_unreachable(error: BaseException) -> bool:
    """Return True if a database did not answer or refused the account of the server, which no caller can change."""
    from daypack.postgres.address import is_address  # noqa: PLC0415 — only for errors

    if not isinstance(error, errors.StorageFailed | errors.AccessDenied) or not is_address(error.place):
        return False
    if isinstance(error, errors.WriteFailed):  # no room or no rights; or what the audit log makes of any error
        return isinstance(error.cause, errors.StorageFailed) and is_unreachable(error.cause)
    return not isinstance(error, errors.CommitUnknown)


def report(operation: str, error: Exception) -> Problem:
    """Return the public description of an error, and log what it hides: the class and place, never contents."""
    problem = describe(error)
    facts = current.get()
    if facts is not None:
        facts.error, facts.status = problem.code, problem.status
    if problem.status >= 500 and not isinstance(error, errors.ServerBusy):  # which is no failure
        report_error(operation, error)
    return problem


def describe_in_text(name: str, error: Exception) -> str:
    """Report an error and return its public description as one line for a model."""
    problem = report(name, error)
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
