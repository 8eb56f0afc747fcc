"""Errors of PostgreSQL and of psycopg: which error of ours each one is, what helps, and whether waiting helps.

The reason of a connection that failed is known only by its text: libpq gives it no code.
"""

import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from daypack.errors import AccessDenied, BadConfig, DaypackError, ExtraMissing, StorageFailed, WriteFailed
from daypack.postgres.address import ENCODE, UNREADABLE

if TYPE_CHECKING:
    from types import ModuleType

READ_ONLY = "25006"  # after a failover, the address may still lead to the former primary
_NOT_SUPPORTED = "0A000"
# Codes of errors after which the same work can succeed: the transaction was rolled back by the server.
_AGAIN = (
    "40001", "40P01", READ_ONLY, "25P03", "25P04", "57P01", "57P02", "57P03", "57P05", "53300", "08006", "08003",
    "08001",
)  # fmt: skip
_PASSING = ("starting up", "shutting down", "recovery", "too many", "terminating", "not yet accepting")
_STUTTER = re.compile(
    r"^(?:connection (?:failed|is bad): )?(?:connection to server (?:at|on socket) .*? failed: )?(?:FATAL: +)?"
)
_UNKNOWN_PARAMETER = re.compile(r'^invalid URI query parameter: "(\w+)"')
_WRONG_PARAMETER = re.compile(r'connection option "(\w+)"|^(?:invalid|bad value for) "?(?!integer )(\w+)"?')
_OF_ACCOUNT = ('role "', "permission denied for database")
_ATTEMPT = re.compile(r"^- host: .*?, port: .*?, hostaddr: .*?: (?=[a-z])")
_UNREACHED = ("No such file or directory", "Connection refused", "No route to host", "Network is unreachable")
LOOK = "; `daypack serve --check` looks at both"
_RUNNING = f"check that the server runs and that the address is right{LOOK}"
ON_REPLICA, USE_PRIMARY = "the server is a replica", "set the address of the primary, or promote this one"
_ACCOUNT = "check the account and the database of the address, and the roles daypack_*"


class _Kind(NamedTuple):
    """A connection that fails again however often it is tried; `anywhere`: at all hosts if at one of them."""

    words: tuple[str, ...]
    error: type[DaypackError]
    hint: str
    anywhere: bool = True


_KINDS = (
    _Kind(
        ("password authentication failed", "no password supplied", "fe_sendauth"),
        AccessDenied,
        "check the password: it is taken from the address, else from PGPASSWORD, else from ~/.pgpass",
    ),
    _Kind(
        ("does not support SSL", "no encryption", "sslmode", "certificate"),
        StorageFailed,
        "set sslmode in the address, such as ?sslmode=require, or ?sslmode=disable for a server without SSL",
        anywhere=False,
    ),
    _Kind(
        ("failed to resolve host", "could not translate host name"),
        StorageFailed,
        "the name of the host is not known: check the host of the address",
        anywhere=False,
    ),
)
_POOL = "psycopg_pool"
_NO_DATABASE = re.compile(r'database "(.*)" does not exist')


def psycopg_for(operation: str) -> "ModuleType":
    """Return psycopg, which takes 100 ms to import, or raise ExtraMissing."""
    try:
        import psycopg  # noqa: PLC0415

        if _POOL not in sys.modules:  # asked for every call
            import_module(_POOL)
    except ImportError as error:
        hint = "pip install 'daypack[postgres]'"
        raise ExtraMissing("psycopg is not installed", operation=operation, hint=hint) from error
    return psycopg


def check_readable(url: str, operation: str, place: str) -> None:
    """Raise BadConfig for an address that libpq cannot read; what libpq says of it may contain the password."""
    from psycopg import Error  # noqa: PLC0415
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        conninfo_to_dict(url)
    except Error as error:
        unknown = _UNKNOWN_PARAMETER.search(str(error))
        # After a password that is a parameter too, it may be a part of that.
        named = f"{unknown[1]} is no parameter of an address" if unknown and "password=" not in url else ""
        raise _unreadable(operation, place, named) from None


def _unreadable(operation: str, place: str, named: str = "") -> BadConfig:
    """Return the error for an address that libpq cannot read; `named`: a parameter that is the reason."""
    problem = f"{UNREADABLE}: {named}" if named else UNREADABLE
    hint = "check the parameters of the address" if named else f"{ENCODE}; check its parameters"
    return BadConfig(problem, operation=operation, place=place, hint=hint)


def refusal(error: BaseException, operation: str, place: str) -> DaypackError:
    """Return our error for an error of the server or of the connection, in one line and without values."""
    if is_on_replica(error):
        return WriteFailed(ON_REPLICA, operation=operation, place=place, hint=USE_PRIMARY)
    state: str = getattr(error, "sqlstate", None) or ""
    diagnosis = getattr(error, "diag", None)
    primary = diagnosis and diagnosis.message_primary
    if not primary and not state and _is_unreadable(error):
        wrong = _WRONG_PARAMETER.search(_STUTTER.sub("", str(error)))
        return _unreadable(operation, place, f"the value of {wrong[1] or wrong[2]} is not valid" if wrong else "")
    kind, problem = (None, primary) if primary else _explained(error)
    missing = _NO_DATABASE.search(problem)
    if kind is not None:
        return kind.error(problem, operation=operation, place=place, hint=kind.hint)
    if missing:
        name = missing[1].replace('"', '""')
        hint = f"check the name, or create it: CREATE DATABASE \"{name}\" ENCODING 'UTF8' TEMPLATE template0;"
        return StorageFailed(problem, operation=operation, place=place, hint=hint)
    if state.startswith("28") or state == "42501" or problem.startswith(_OF_ACCOUNT):
        return AccessDenied(problem, operation=operation, place=place, hint=_ACCOUNT)
    full = state.startswith("53") or state == READ_ONLY
    return (WriteFailed if full else StorageFailed)(problem, operation=operation, place=place, hint=_RUNNING)


def is_on_replica(error: BaseException) -> bool:
    """Return True if a transaction that writes could not begin because the server is a replica."""
    diagnosis = getattr(error, "diag", None)
    hook = getattr(diagnosis, "source_function", None)  # its text is translated
    return getattr(error, "sqlstate", None) == _NOT_SUPPORTED and hook == "call_bool_check_hook"


def is_passing(error: BaseException) -> bool:
    """Return True if the same work may succeed soon: a lost connection, a restart, a conflict of transactions."""
    import psycopg  # noqa: PLC0415
    from psycopg_pool import PoolTimeout  # noqa: PLC0415

    state = getattr(error, "sqlstate", None)
    if state is not None:  # roles that are "concurrently updated" have no other code
        return state in _AGAIN or is_on_replica(error) or "tuple concurrently updated" in str(error)
    if isinstance(error, psycopg.errors.PipelineAborted):
        return False  # an earlier statement failed, and the work ignored it
    if "FATAL" in str(error) and not any(word in str(error) for word in _PASSING):
        return False  # no such database, or no such account
    if _is_unreadable(error) or _explained(error)[0] is not None:
        return False
    return isinstance(error, psycopg.OperationalError | PoolTimeout | psycopg.InterfaceError)


def _is_unreadable(error: BaseException) -> bool:
    """Return True if libpq or psycopg refuses a part of the address itself: its text quotes that part."""
    import psycopg  # noqa: PLC0415

    refused = isinstance(error, psycopg.OperationalError | psycopg.ProgrammingError) and "FATAL" not in str(error)
    return refused and _STUTTER.sub("", str(error)).startswith(("invalid ", "bad value for ", "missing key/value"))


def _explained(error: BaseException) -> tuple[_Kind | None, str]:
    """Return the reason of an error in one line, and its kind if it is the same at every attempt."""
    lines = str(error).strip().splitlines() or ["no answer"]
    reasons = [_STUTTER.sub("", _ATTEMPT.sub("", line)) for line in lines if line.startswith("- host: ")]
    reasons = reasons or [_STUTTER.sub("", lines[0])]  # of several attempts, the first line repeats the last
    for kind in _KINDS:
        found = [reason for reason in reasons if _is_of(kind, reason)]
        if found and (kind.anywhere or len(found) == len(reasons)):
            return kind, found[0]
    reason = reasons[-1]
    return None, f"the server cannot be reached: {reason}" if reason.startswith(_UNREACHED) else reason


def _is_of(kind: _Kind, reason: str) -> bool:
    return any(word in reason for word in kind.words) and "Temporary failure" not in reason  # of a name server
