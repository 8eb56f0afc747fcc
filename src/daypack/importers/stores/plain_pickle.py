"""Reads pickled data without unpickling: no name in it is looked up, and nothing is called.

Pickle is a small program for a stack. Its instructions for plain data are carried out here; those that would import,
construct or call something leave the value they would be applied to: an object becomes the dict of its attributes.
"""

import re
import struct
from collections.abc import Callable
from typing import Any, cast

_FLOATS = re.compile(rb"(?:G.{8})+", re.DOTALL)
_FEW_FLOATS = 8  # longer runs are vectors, whose values are not needed
_MAX_VALUES = 2_000_000  # on the stack and in the memo
_MARK = object()


class BadPickle(ValueError):
    """The bytes are not a pickle of plain data."""


def read_plain(data: bytes) -> Any:  # noqa: ANN401 — whatever plain data it is
    """Return the plain data of a pickle: None, booleans, numbers, texts, bytes, lists, tuples and dicts."""
    try:
        return _Reader(data).run()
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        raise error if isinstance(error, BadPickle) else BadPickle(f"damaged pickle: {error}") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:  # noqa: ANN401
        """Carry out the instructions up to the end."""
        while True:
            code = self._take(1)
            if code == b".":
                return self._stack.pop()
            if code == b"G":
                self._push_floats()
            elif code in _SIZED:
                self._push_sized(code)
            elif code in _CONSTANTS:
                self._stack.append(_CONSTANTS[code])
            elif step := _STEPS.get(code):
                step(self)
            else:
                raise BadPickle(f"instruction {code!r} at byte {self._at - 1:,} is not read")
            if len(self._stack) + len(self._memo) > _MAX_VALUES:
                raise BadPickle(f"more than {_MAX_VALUES:,} values")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise BadPickle("it ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _push_floats(self) -> None:
        run = _FLOATS.match(self._data, self._at - 1)
        if run is None:
            raise BadPickle("it ends too early")
        count = (run.end() - run.start()) // 9
        if count > _FEW_FLOATS:
            self._stack += [0.0] * count
        else:
            self._stack += [struct.unpack_from(">d", run[0], 9 * n + 1)[0] for n in range(count)]
        self._at = run.end()

    def _push_sized(self, code: bytes) -> None:
        size, kind = _SIZED[code]
        data = self._take(self._number(size))
        if kind == "text":
            self._stack.append(data.decode("utf-8", "replace"))
        else:
            self._stack.append(data if kind == "bytes" else int.from_bytes(data, "little", signed=True))

    def _to_mark(self) -> list[Any]:
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] is _MARK:
                values = self._stack[at + 1 :]
                del self._stack[at:]
                return values
        raise BadPickle("a mark is missing")

    def frame(self) -> None:
        self._take(8)

    def protocol(self) -> None:
        self._take(1)

    def mark(self) -> None:
        self._stack.append(_MARK)

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def put(self, size: int) -> None:
        self._memo[self._number(size)] = self._stack[-1]

    def get(self, size: int) -> None:
        self._stack.append(self._memo[self._number(size)])

    def integer(self, size: int, *, signed: bool) -> None:
        self._stack.append(int.from_bytes(self._take(size), "little", signed=signed))

    def new(self, kind: type) -> None:
        self._stack.append(kind())

    def tuple_of(self, count: int) -> None:
        values = tuple(self._stack[-count:])
        if len(values) < count:
            raise BadPickle("the stack is empty")
        del self._stack[-count:]
        self._stack.append(values)

    def tuple_to_mark(self) -> None:
        self._stack.append(tuple(self._to_mark()))

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            cast("list[Any]", target).extend(values)

    def append_one(self) -> None:
        self.append([self._stack.pop()])

    def append_many(self) -> None:
        self.append(self._to_mark())

    def set_one(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([key, value])

    def set_many(self) -> None:
        self._set(self._to_mark())

    def _set(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, dict):
            for key, value in zip(values[::2], values[1::2], strict=True):
                if isinstance(key, str | int):
                    target[key] = value

    def name(self) -> None:
        """Push nothing in place of a class or function; its two names are dropped."""
        del self._stack[-2:]
        self._stack.append(None)

    def construct(self) -> None:
        """Push an empty dict in place of an object; its class and arguments are dropped."""
        del self._stack[-2:]
        self._stack.append({})

    def build(self) -> None:
        """Give an object its attributes."""
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(state, tuple) and state and isinstance(state[0], dict):
            state = cast("Any", state[0])
        if isinstance(state, dict) and isinstance(target, dict):
            attributes = cast("dict[Any, Any]", state)
            cast("dict[Any, Any]", target).update(cast("dict[Any, Any]", attributes.get("__dict__") or attributes))


_CONSTANTS = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
_SIZED = {
    b"\x8c": (1, "text"),
    b"X": (4, "text"),
    b"\x8d": (8, "text"),
    b"C": (1, "bytes"),
    b"B": (4, "bytes"),
    b"\x8e": (8, "bytes"),
    b"\x8a": (1, "integer"),
    b"\x8b": (4, "integer"),
}
_STEPS: dict[bytes, Callable[[_Reader], None]] = {
    b"\x80": _Reader.protocol,
    b"\x95": _Reader.frame,
    b"(": _Reader.mark,
    b"\x94": _Reader.memoize,
    b"q": lambda reader: reader.put(1),
    b"r": lambda reader: reader.put(4),
    b"h": lambda reader: reader.get(1),
    b"j": lambda reader: reader.get(4),
    b"K": lambda reader: reader.integer(1, signed=False),
    b"M": lambda reader: reader.integer(2, signed=False),
    b"J": lambda reader: reader.integer(4, signed=True),
    b"}": lambda reader: reader.new(dict),
    b"]": lambda reader: reader.new(list),
    b"\x8f": lambda reader: reader.new(list),  # a set
    b"\x91": _Reader.tuple_to_mark,  # a frozen set
    b"\x85": lambda reader: reader.tuple_of(1),
    b"\x86": lambda reader: reader.tuple_of(2),
    b"\x87": lambda reader: reader.tuple_of(3),
    b"t": _Reader.tuple_to_mark,
    b"a": _Reader.append_one,
    b"e": _Reader.append_many,
    b"\x90": _Reader.append_many,  # to a set
    b"s": _Reader.set_one,
    b"u": _Reader.set_many,
    b"\x93": _Reader.name,
    b"\x81": _Reader.construct,
    b"R": _Reader.construct,
    b"b": _Reader.build,
}
