"""Reads the header of a GGUF file: the part that is needed before the file is loaded.

"GGUF" | version u32 | tensors u64 | entries u64 | entry: key (length u64, bytes), type u32, value …
"""

import os
import struct
from struct import unpack
from typing import IO

from daypack.plain_files import open_plain

MAGIC = b"GGUF"
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_WHOLE = {4: "<I", 5: "<i", 10: "<Q", 11: "<q"}
_STRING, _ARRAY = 8, 9
_MAX_ENTRIES = 10_000


def is_gguf(path: str) -> bool:
    """Return True if a file begins like a GGUF file."""
    with open_plain(path) as file:
        return file.read(len(MAGIC)) == MAGIC


def read_window(path: str) -> int:
    """Return the context length a model was trained for; 0 if the file does not say."""
    with open_plain(path) as file:
        try:
            _, _, entries = unpack("<IQQ", file.read(24)[len(MAGIC) :])
            for _ in range(min(entries, _MAX_ENTRIES)):
                key = file.read(_length(file))
                (kind,) = unpack("<I", file.read(4))
                if key.endswith(b".context_length") and kind in _WHOLE:
                    (value,) = unpack(_WHOLE[kind], file.read(_SIZES[kind]))
                    return max(0, value)
                _skip(file, kind)
        except (struct.error, KeyError, OSError, OverflowError, RecursionError):
            pass
    return 0


def _skip(file: IO[bytes], kind: int) -> None:
    if kind == _STRING:
        file.seek(_length(file), os.SEEK_CUR)
    elif kind == _ARRAY:
        inner, count = unpack("<IQ", file.read(12))
        if inner in _SIZES:
            file.seek(_SIZES[inner] * count, os.SEEK_CUR)
            return
        for _ in range(count):
            _skip(file, inner)
    else:
        file.seek(_SIZES[kind], os.SEEK_CUR)


def _length(file: IO[bytes]) -> int:
    (length,) = unpack("<Q", file.read(8))
    if length > 1 << 24:
        raise OverflowError
    return length
