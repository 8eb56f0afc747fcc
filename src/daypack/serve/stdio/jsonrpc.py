"""JSON-RPC 2.0 as MCP uses it: one message per line, read into a value and written from one.

{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_user","arguments":{}}}
{"jsonrpc":"2.0","id":7,"result":{…}}
"""

from typing import Any, NamedTuple, cast

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

Id = int | str
Params = dict[str, Any]


class Fault(Exception):
    """What is wrong with a message, as the one who sent it is told."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id: Id | None = None


class Request(NamedTuple):
    """A message that wants an answer."""

    id: Id
    method: str
    params: Params


class Notification(NamedTuple):
    """A message that wants none."""

    method: str
    params: Params


Message = Request | Notification | None  # None: an answer; this server asks nothing, so it is for nobody


def read_line(line: bytes) -> Any:  # noqa: ANN401 — any JSON value
    """Return the JSON value of a line. Not a number, half characters, numbers out of range and abysses are no JSON."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else str(error).partition(" - at ")[0]
        raise Fault(PARSE_ERROR, "Parse error", what) from error


def read_message(value: object) -> Message:
    """Return the message a JSON value is."""
    if not isinstance(value, dict):
        raise Fault(INVALID_REQUEST, "Invalid Request", "a message is an object")
    fields = cast("dict[str, Any]", value)
    named = fields.get("id")
    known = named if isinstance(named, (int, str)) and not isinstance(named, bool) else None
    if (wrong := _find_wrong(fields, known)) is not None:
        fault = Fault(INVALID_REQUEST, "Invalid Request", wrong)
        fault.id = known
        raise fault
    if "method" not in fields:
        return None
    params: Params = fields.get("params") or {}
    return Notification(fields["method"], params) if known is None else Request(known, fields["method"], params)


def _find_wrong(fields: dict[str, Any], known: Id | None) -> str | None:
    if fields.get("jsonrpc") != "2.0":
        return 'jsonrpc is not "2.0"'
    if "id" in fields and known is None and "error" not in fields:
        return "an id is text or an integer"
    if "method" not in fields:
        return None if "result" in fields or "error" in fields else "there is no method"
    if not isinstance(fields["method"], str):
        return "a method is text"
    if not isinstance(fields.get("params", {}), dict):
        return "params are an object"
    return None


def write_result(request_id: Id, result: object) -> bytes:
    """Return the line of an answer, without its end."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def write_fault(request_id: Id | None, fault: Fault) -> bytes:
    """Return the line of an answer that says what was wrong, without its end."""
    error: dict[str, object] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        error["data"] = fault.data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def write_notification(method: str, params: Params) -> bytes:
    """Return the line of a notification, without its end."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})
