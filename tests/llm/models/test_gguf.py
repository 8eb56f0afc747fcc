"""The head of a GGUF file."""

from pathlib import Path
from struct import pack

import pytest

from daypack.llm.models.gguf import is_gguf, read_window


def text(value: bytes) -> bytes:
    return pack("<Q", len(value)) + value


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + pack("<I", kind) + value


def head(*entries: bytes) -> bytes:
    return b"GGUF" + pack("<IQQ", 3, 1, len(entries)) + b"".join(entries)


BEFORE = (
    entry(b"general.architecture", 8, text(b"llama")),
    entry(b"a.flag", 7, b"\1"),
    entry(b"a.weights", 9, pack("<IQ", 6, 3) + bytes(12)),
    entry(b"a.words", 9, pack("<IQ", 8, 2) + text(b"x") + text(b"yy")),
    entry(b"a.nested", 9, pack("<IQ", 9, 1) + pack("<IQ", 4, 2) + bytes(8)),
)


@pytest.mark.parametrize(("kind", "value"), [(4, pack("<I", 40960)), (10, pack("<Q", 40960))])
def test_the_window_is_found_behind_entries_of_every_kind(tmp_path: Path, kind: int, value: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(head(*BEFORE, entry(b"llama.context_length", kind, value)))
    assert is_gguf(str(path))
    assert read_window(str(path)) == 40960


def test_a_file_that_does_not_say_or_breaks_off_anywhere_has_no_window(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    whole = head(*BEFORE, entry(b"llama.context_length", 4, pack("<I", 40960)))
    for length in range(4, len(whole)):
        path.write_bytes(whole[:length])
        assert read_window(str(path)) == 0
    path.write_bytes(head(*BEFORE))
    assert read_window(str(path)) == 0
    path.write_bytes(head(entry(b"a.odd", 99, b"")))
    assert read_window(str(path)) == 0
    path.write_bytes(b"GGUF" + pack("<IQQ", 3, 1, 1 << 60) + pack("<Q", 1 << 60))
    assert read_window(str(path)) == 0


def test_a_real_file_says_what_it_was_made_for(small_model: str) -> None:
    assert read_window(small_model) == 8192
