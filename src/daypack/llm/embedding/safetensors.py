"""The tensors of a safetensors file, as arrays that lie in the file itself: nothing is read before it is looked at.

length of the header u64 | header, JSON: {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},…} | data
"""

import mmap
import os
from math import prod
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct
from numpy.typing import NDArray

from daypack.errors import ModelFailed, ModelMissing

_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "I8": "|i1", "U8": "|u1"}
_MAX_HEADER_BYTES = 16 << 20

_Natural = Annotated[int, Meta(ge=0)]


class _Entry(Struct):
    dtype: str
    shape: list[_Natural]
    data_offsets: tuple[_Natural, _Natural]


def read_tensors(path: str) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file by name; they cannot be written to."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise _malformed(path, "it is too short")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        hint = "`daypack model list` tells what is here"
        raise ModelMissing("there is no such model file", operation="read model", place=path, hint=hint) from error
    except OSError as error:
        raise _malformed(path, error.strerror or str(error)) from error
    length = int.from_bytes(data[:8], "little")
    if length > min(size - 8, _MAX_HEADER_BYTES):
        raise _malformed(path, "its header is longer than it can be")
    try:
        header = msgspec.json.decode(data[8 : 8 + length], type=dict[str, Raw])
        header.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _malformed(path, "its header cannot be read") from error
    view = memoryview(data)[8 + length :]
    return {name: _tensor(path, view, name, entry) for name, entry in entries.items()}


def _tensor(path: str, view: memoryview, name: str, entry: _Entry) -> NDArray[Any]:
    begin, end = entry.data_offsets
    if entry.dtype not in _TYPES:
        raise _malformed(path, f"{name} is of the type {entry.dtype}")
    kind = np.dtype(_TYPES[entry.dtype])
    if begin > end or end > len(view) or end - begin != prod(entry.shape) * kind.itemsize:
        raise _malformed(path, f"{name} is not where its header says")
    found = np.frombuffer(view[begin:end], kind).reshape(entry.shape)
    # Numbers that lie across their natural borders would be copied with every use.
    return found if found.flags.aligned else found.copy()


def _malformed(path: str, problem: str) -> ModelFailed:
    hint = "fetch it again with `daypack model pull`"
    return ModelFailed(f"is no safetensors file: {problem}", operation="read model", place=path, hint=hint)
