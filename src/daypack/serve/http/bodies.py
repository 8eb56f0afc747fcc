"""Read request bodies: limited in size, time and depth, and parsed as strict JSON."""

import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn, cast

import anyio

from daypack.errors import BadInput, TooLong

MAX_BODY_BYTES = 1 << 20
MAX_DEPTH = 100
BODY_SECONDS = 30.0
# The rest of a rejected body is read for a while, so that its sender gets the answer and not a broken connection.
_DRAIN_BYTES = 32 << 20
_DRAIN_SECONDS = 5.0

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


def read_json(body: bytes) -> Any:  # noqa: ANN401 — any JSON value
    """Parse a body. Duplicate keys, NaN and Infinity, depth above 100 and lone surrogates are rejected."""
    try:
        value = json.loads(
            body.decode(),
            object_pairs_hook=_reject_duplicates,
            parse_constant=_reject_constant,
            parse_float=_parse_finite,
        )
    except UnicodeDecodeError as error:
        raise BadInput("the body is not UTF-8", hint="send JSON in UTF-8") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # also raised for an integer of thousands of digits
        problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(";")[0]
        raise BadInput(f"the body is not valid JSON: {problem}", hint="send one JSON value") from error
    _check_depth(value)
    _check_surrogates(value, body)
    return value


async def collect(receive: Receive, *, most: int = MAX_BODY_BYTES, seconds: float = BODY_SECONDS) -> bytes:
    """Return the whole body.

    Raises TooLong, TimeoutError, or ConnectionError if the client disconnects.
    """
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(seconds):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionError("the client disconnected")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                hint = f"send at most {most:,} bytes"
                raise TooLong(f"the body has more than {most:,} bytes", operation="read request", hint=hint)
            if not message.get("more_body", False):
                return b"".join(parts)
    raise TimeoutError(f"the body did not arrive within {seconds:.0f} seconds")


async def drain(receive: Receive) -> bool:
    """Read and discard the rest of a body; return True if its end was reached."""
    size = 0
    with anyio.move_on_after(_DRAIN_SECONDS):
        while size < _DRAIN_BYTES:
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                return True
            size += len(message.get("body", b""))
    return False


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        # Parsers disagree on which value wins: the code that checks must not see another one than the code that acts.
        raise BadInput("an object has the same key twice", hint="send each key once")
    return fields


def _reject_constant(name: str) -> NoReturn:
    raise BadInput(f"{name} is not a JSON number", hint="send finite numbers")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadInput("a number is too large", hint="send finite numbers")
    return number


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(cast("dict[str, object]", node).values())
            elif isinstance(node, list):
                inner.extend(cast("list[object]", node))
        if not inner:
            return
        level = inner
    if any(isinstance(node, (dict, list)) for node in level):
        raise _too_deep()


def _check_surrogates(value: object, body: bytes) -> None:
    if b"\\u" not in body:  # UTF-8 cannot hold a lone surrogate, only an escape can
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadInput("the body contains a lone surrogate", hint="send whole characters") from error


def _too_deep() -> BadInput:
    return BadInput(f"the body is nested more than {MAX_DEPTH} levels deep", hint="send flatter JSON")
