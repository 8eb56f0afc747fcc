"""A model's tensors are read by name; a malformed file is refused with an error that names it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.errors import ModelFailed, ModelMissing
from daypack.llm.embedding.model_files import Tensors

NUMBERS = np.arange(6, dtype=np.float32)
ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def written(path: Path, header: Any, data: bytes = NUMBERS.tobytes()) -> str:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return str(path)


def read_all(path: str) -> dict[str, Any]:
    tensors = Tensors(path)
    return {name: tensors.read(name) for name in tensors.shapes}


def test_tensors_of_several_types_are_read_by_name(tmp_path: Path) -> None:
    halves = np.array([0.5, -2], np.float16)
    header = {
        "__metadata__": {"format": "pt"},
        "half": {"dtype": "F16", "shape": [2], "data_offsets": [24, 28]},
        "one": {"dtype": "I32", "shape": [], "data_offsets": [28, 32]},
        "none": {"dtype": "F64", "shape": [0, 4], "data_offsets": [32, 32]},
        "all": ENTRY,
    }
    data = NUMBERS.tobytes() + halves.tobytes() + (7).to_bytes(4, "little")
    path = written(tmp_path / "x", header, data)
    tensors = read_all(path)
    assert sorted(tensors) == ["all", "half", "none", "one"]
    assert tensors["all"].tolist() == NUMBERS.reshape(2, 3).tolist()
    assert tensors["half"].tolist() == [0.5, -2]
    assert (int(tensors["one"]), tensors["one"].shape, tensors["none"].shape) == (7, (), (0, 4))
    assert Tensors(path).shapes["all"] == (2, 3)


@pytest.mark.parametrize("blanks", range(8))
def test_numbers_are_aligned_wherever_the_header_ends(tmp_path: Path, blanks: int) -> None:
    tensor = Tensors(written(tmp_path / "x", json.dumps({"all": ENTRY}).encode() + b" " * blanks)).read("all")
    assert tensor.flags.aligned
    assert tensor.ravel().tolist() == NUMBERS.tolist()


@pytest.mark.parametrize(
    "header",
    [
        {"a": {**ENTRY, "dtype": "F99"}},
        {"a": {**ENTRY, "shape": [2, 4]}},
        {"a": {**ENTRY, "shape": [-2, -3]}},
        {"a": {**ENTRY, "data_offsets": [4, 28]}},
        {"a": {**ENTRY, "data_offsets": [24, 0]}},
        {"a": {**ENTRY, "data_offsets": [-24, 0]}},
        {"a": {**ENTRY, "data_offsets": [0]}},
        {"a": {**ENTRY, "shape": [1 << 62, 1 << 62]}},
        {"a": {"dtype": "F32"}},
        [ENTRY],
        b"{",
        b'{"\xff":1}',
    ],
)
def test_a_malformed_header_is_refused(tmp_path: Path, header: Any) -> None:
    with pytest.raises(ModelFailed, match="invalid safetensors file"):
        read_all(written(tmp_path / "x", header))


@pytest.mark.parametrize("data", [b"", b"1234567", b"\xff" * 8, b"\x09" + bytes(7) + b"{}", b"\xff" * 5 + bytes(20)])
def test_a_file_too_short_for_its_header_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ModelFailed, match="invalid safetensors file"):
        Tensors(str(tmp_path / "x"))


def test_a_missing_file_a_folder_and_a_missing_tensor_are_different_errors(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        Tensors(str(tmp_path / "none"))
    with pytest.raises(ModelFailed):
        Tensors(str(tmp_path))
    tensors = Tensors(written(tmp_path / "x", {"all": ENTRY}))
    with pytest.raises(ModelFailed, match="other"):
        tensors.read("other")


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 200), byte=st.integers(0, 255), size=st.integers(0, 200))
def test_damage_is_refused_or_only_changes_values(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, size: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "x"
    data = bytearray(Path(written(path, {"all": ENTRY, "__metadata__": {}})).read_bytes())
    data[at % len(data)] = byte
    path.write_bytes(data[: max(1, len(data) - size)])
    try:
        tensors = read_all(str(path))
    except ModelFailed:
        return
    assert all(len(tensor.tobytes()) == tensor.nbytes <= len(data) for tensor in tensors.values())
