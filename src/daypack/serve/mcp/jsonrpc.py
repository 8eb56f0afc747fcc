"""JSON-RPC 2.0 messages as MCP uses them, one per line.

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


class RpcError(Exception):
    """A JSON-RPC error, as its sender receives it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        from daypack.text.redact.records import redact_any  # noqa: PLC0415 — its patterns cost 20 ms

        super().__init__(message)
        self.code = code
        # They repeat what the client sent, which may be a secret in the wrong place.
        self.message: str = redact_any(message)
        self.data: object = redact_any(data)
        self.id: Id | None = None


class Request(NamedTuple):
    """A message that expects a response."""

    id: Id
    method: str
    params: Params


class Notification(NamedTuple):
    """A message without a response."""

    method: str
    params: Params


Message = Request | Notification | None  # None: a response, which is ignored, as this server sends no requests


def read_line(line: bytes) -> Any:  # noqa: ANN401 — any JSON value
    """Parse a line. NaN, lone surrogates, out-of-range numbers and very deep nesting are parse errors."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(" - at ")[0]
        failed = _find_lone_surrogate(line) or RpcError(PARSE_ERROR, "Parse error", problem)
        raise failed from error


def _find_lone_surrogate(line: bytes) -> RpcError | None:
    """Return the error of a line that is JSON except for half a character, with the id of its request."""
    if b"\\u" not in line:
        return None
    import json  # noqa: PLC0415 — only for lines that cannot be parsed

    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        error = RpcError(PARSE_ERROR, "Parse error", "a text has a lone surrogate; send whole characters")
        error.id = _read_id(cast("dict[str, Any]", value)) if isinstance(value, dict) else None
        return error
    return None


def read_message(value: object) -> Message:
    """Interpret a JSON value as a message."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid Request", "a message must be an object")
    fields = cast("dict[str, Any]", value)
    request_id = _read_id(fields)
    if (problem := _find_problem(fields, request_id)) is not None:
        error = RpcError(INVALID_REQUEST, "Invalid Request", problem)
        error.id = request_id
        raise error
    if "method" not in fields:
        return None
    params: Params = fields.get("params") or {}
    method = fields["method"]
    return Notification(method, params) if request_id is None else Request(request_id, method, params)


def _read_id(fields: dict[str, Any]) -> Id | None:
    raw_id = fields.get("id")
    known = (isinstance(raw_id, int) and not isinstance(raw_id, bool)) or (
        isinstance(raw_id, str) and _is_whole(raw_id)
    )
    return raw_id if known else None


def _is_whole(text: str) -> bool:
    """Return False for a text with half a character in it, which cannot be sent back."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _find_problem(fields: dict[str, Any], request_id: Id | None) -> str | None:
    if fields.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if "id" in fields and request_id is None and "error" not in fields:
        return "id must be a string or an integer"
    if "method" not in fields:
        return None if "result" in fields or "error" in fields else "method is missing"
    if not isinstance(fields["method"], str):
        return "method must be a string"
    if not isinstance(fields.get("params", {}), dict):
        return "params must be an object"
    return None


def write_result(request_id: Id, result: object) -> bytes:
    """Return the line of a successful response, without its newline."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def write_error(request_id: Id | None, error: RpcError) -> bytes:
    """Return the line of an error response, without its newline."""
    fields: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        fields["data"] = error.data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": fields})


def write_notification(method: str, params: Params) -> bytes:
    """Return the line of a notification, without its newline."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})
