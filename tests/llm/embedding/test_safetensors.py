"""A safetensors file is read by hand: what its header says is checked before a byte is looked at."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.errors import ModelFailed, ModelMissing
from daypack.llm.embedding.safetensors import read_tensors

NUMBERS = np.arange(6, dtype=np.float32)
ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}


def written(path: Path, header: Any, data: bytes = NUMBERS.tobytes()) -> str:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return str(path)


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
    found = read_tensors(written(tmp_path / "x", header, data))
    assert list(found) == ["half", "one", "none", "all"]
    assert found["all"].tolist() == NUMBERS.reshape(2, 3).tolist()
    assert found["half"].tolist() == [0.5, -2]
    assert (int(found["one"]), found["one"].shape, found["none"].shape) == (7, (), (0, 4))


@pytest.mark.parametrize("blanks", range(8))
def test_numbers_are_aligned_wherever_the_header_ends(tmp_path: Path, blanks: int) -> None:
    found = read_tensors(written(tmp_path / "x", json.dumps({"all": ENTRY}).encode() + b" " * blanks))
    assert found["all"].flags.aligned
    assert found["all"].ravel().tolist() == NUMBERS.tolist()


def test_what_lies_in_the_file_cannot_be_written_to(tmp_path: Path) -> None:
    header = json.dumps({"all": ENTRY}).encode()
    found = read_tensors(written(tmp_path / "x", header + b" " * (-len(header) % 8)))
    with pytest.raises(ValueError, match="read-only"):
        found["all"][0, 0] = 1


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"a": {**ENTRY, "dtype": "F8_E4M3"}}, "of the type F8_E4M3"),
        ({"a": {**ENTRY, "shape": [2, 4]}}, "a is not where"),
        ({"a": {**ENTRY, "shape": [-2, -3]}}, "cannot be read"),
        ({"a": {**ENTRY, "data_offsets": [4, 28]}}, "a is not where"),
        ({"a": {**ENTRY, "data_offsets": [24, 0]}}, "a is not where"),
        ({"a": {**ENTRY, "data_offsets": [-24, 0]}}, "cannot be read"),
        ({"a": {**ENTRY, "data_offsets": [0]}}, "cannot be read"),
        ({"a": {**ENTRY, "shape": [1 << 62, 1 << 62]}}, "a is not where"),
        ({"a": {"dtype": "F32"}}, "cannot be read"),
        ([ENTRY], "cannot be read"),
        (b"{", "cannot be read"),
        (b'{"\xff":1}', "cannot be read"),
    ],
)
def test_a_header_that_is_not_true_is_refused(tmp_path: Path, header: Any, problem: str) -> None:
    with pytest.raises(ModelFailed, match=problem):
        read_tensors(written(tmp_path / "x", header))


@pytest.mark.parametrize("data", [b"", b"1234567", b"\xff" * 8, b"\x09" + bytes(7) + b"{}", b"\xff" * 5 + bytes(20)])
def test_a_file_too_short_for_its_header_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ModelFailed, match="no safetensors file"):
        read_tensors(str(tmp_path / "x"))


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing):
        read_tensors(str(tmp_path / "none"))
    with pytest.raises(ModelFailed, match="directory"):
        read_tensors(str(tmp_path))


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 200), byte=st.integers(0, 255), size=st.integers(0, 200))
def test_no_damage_does_more_than_be_refused_or_change_values(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, size: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "x"
    data = bytearray(Path(written(path, {"all": ENTRY, "__metadata__": {}})).read_bytes())
    data[at % len(data)] = byte
    path.write_bytes(data[: max(1, len(data) - size)])
    try:
        found = read_tensors(str(path))
    except ModelFailed:
        return
    assert all(len(one.tobytes()) == one.nbytes <= len(data) for one in found.values())
