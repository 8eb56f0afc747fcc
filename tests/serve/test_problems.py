"""What callers are told of errors: enough to do better, nothing about the machine."""

import json

import pytest

from daypack import errors
from daypack.serve.mcp.jsonrpc import RpcError
from daypack.serve.problems import describe

PLACE = "/home/somebody/.daypack/home/1000/memory/store.sqlite"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.BadInput, 400),
        (errors.TooLong, 400),
        (errors.BadName, 400),
        (errors.KeyConflict, 409),
        (errors.QuotaExceeded, 403),
        (errors.MemoryMissing, 404),
        (errors.EntryMissing, 404),
        (errors.AccessDenied, 403),
        (errors.ExtraMissing, 501),
        (errors.LockUnavailable, 503),
        (errors.WriteFailed, 507),
        (errors.StorageFailed, 500),
        (errors.SyncFailed, 500),
        (errors.Damaged, 500),
        (errors.BadConfig, 500),
        (errors.ServerFailed, 500),
        (errors.ModelFailed, 502),
    ],
)
def test_each_error_has_its_status_and_keeps_its_name(kind: type[errors.DaypackError], status: int) -> None:
    told = describe(kind("x", operation="add_entry", place=PLACE, hint="do that"))
    assert (told.status, told.code) == (status, kind.__name__)


@pytest.mark.parametrize(
    "kind",
    [
        errors.StorageFailed,
        errors.WriteFailed,
        errors.Damaged,
        errors.ModelFailed,
        errors.ModelMissing,
        errors.BadConfig,
        errors.ServerFailed,
    ],
)
def test_what_the_server_has_of_its_own_is_not_told(kind: type[errors.DaypackError]) -> None:
    told = describe(kind(f"open: {PLACE}", place=PLACE, hint=f"look at {PLACE}"))
    assert PLACE not in told.body.decode() + told.rpc_body.decode()
    assert json.loads(told.body)["error"].keys() <= {"code", "message", "hint"}


def test_what_nobody_foresaw_is_told_without_its_text() -> None:
    told = describe(RuntimeError(PLACE))
    assert told.status == 500
    assert PLACE not in told.body.decode()


def test_a_callers_mistake_is_told_with_what_to_do() -> None:
    told = describe(errors.TooLong("the document has 5,001 characters", place=PLACE, hint="trim it"))
    assert json.loads(told.body) == {
        "error": {"code": "TooLong", "message": "the document has 5,001 characters", "hint": "trim it"}
    }
    assert json.loads(told.rpc_body)["error"]["data"] == {"code": "TooLong", "hint": "trim it"}


@pytest.mark.requirement("G18")
def test_an_error_does_not_repeat_a_secret_that_was_sent() -> None:
    secret = "ghp_" + "0aB1" * 9
    problem = describe(errors.BadInput(f"tags cannot be {secret!r}", hint=f"not {secret}"))
    assert (problem.message, problem.hint) == (
        "tags cannot be '[redacted:github-token]'",
        "not [redacted:github-token]",
    )
    error = RpcError(-32602, f"Unknown tool: {secret}", {"uri": f"daypack://{secret}"})
    assert secret not in f"{error.message} {error.data}"
