"""Bodies of requests: no longer than allowed, no slower than allowed, and JSON in the strict sense."""

import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn, cast

import anyio

from daypack.errors import BadInput, TooLong

MAX_BODY_BYTES = 1 << 20
MAX_DEPTH = 100
BODY_SECONDS = 30.0
# A refused body is read on for a while, so that its sender reads the refusal instead of a broken connection.
_DRAIN_BYTES = 32 << 20
_DRAIN_SECONDS = 5.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


def read_json(body: bytes) -> Any:  # noqa: ANN401 — any JSON value
    """Return what the bytes say. Refused: doubled keys, numbers that are none, depth above 100, half characters."""
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise BadInput("the body is not UTF-8", hint="send JSON in UTF-8") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # also an integer of thousands of digits
        problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(";")[0]
        raise BadInput(f"the body is no JSON: {problem}", hint="send one JSON value") from error
    _check_depth(value)
    _check_characters(value, body)
    return value


async def collect(receive: Receive, *, most: int = MAX_BODY_BYTES, seconds: float = BODY_SECONDS) -> bytes:
    """Return a whole body; TooLong, TimeoutError or ConnectionError when its end is not waited for."""
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionError("the sender has gone")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                hint = f"send at most {most:,} bytes"
                raise TooLong(f"the body has more than {most:,} bytes", operation="read request", hint=hint)
            if not message.get("more_body", False):
                return b"".join(parts)
    raise TimeoutError(f"the body did not arrive within {seconds:.0f} seconds")


async def drain(receive: Receive) -> bool:
    """Read the rest of a body and forget it; say whether its end was reached."""
    size = 0
    with anyio.move_on_after(_DRAIN_SECONDS):
        while size < _DRAIN_BYTES:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                return True
            size += len(message.get("body", b""))
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Two readers of such a body may see different values: the one who checks and the one who acts.
        raise BadInput("a key stands twice in one object", hint="give each key once")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadInput(f"{name} is no JSON number", hint="send finite numbers")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadInput("a number is too large", hint="send finite numbers")
    return number


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(cast("dict[str, object]", one).values())
            elif isinstance(one, list):
                inner.extend(cast("list[object]", one))
        if not inner:
            return
        level = inner
    if any(isinstance(one, (dict, list)) for one in level):
        raise _too_deep()


def _check_characters(value: object, body: bytes) -> None:
    if b"\\u" not in body:  # UTF-8 holds no halves: only an escape can write one
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadInput("half of a surrogate pair stands alone", hint="send whole characters") from error


def _too_deep() -> BadInput:
    return BadInput(f"the body is nested deeper than {MAX_DEPTH}", hint="send flatter JSON")
