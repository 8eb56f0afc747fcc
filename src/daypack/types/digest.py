"""Digests: `sha256:<64 hex>` in fields, `sha256-<64 hex>` in file names and ids; both are read everywhere."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from daypack.errors import BadSource

_SMALL_BYTES = 1 << 12


def digest_bytes(data: bytes) -> str:
    """Return the digest of bytes, `sha256:<hex>`."""
    if len(data) > _SMALL_BYTES or "hashlib" in sys.modules:
        from hashlib import sha256  # noqa: PLC0415 — OpenSSL takes 4 ms to load, and is then three times as fast

        return f"sha256:{sha256(data).hexdigest()}"
    return f"sha256:{_own_sha256()(data).hexdigest()}"


def digest_text(text: str) -> str:
    """Return the digest of a text's UTF-8 bytes."""
    return digest_bytes(text.encode("utf-8", "replace"))


def digest_of(text: str) -> str:
    """Return the spelling for fields, `sha256:<hex>`."""
    return f"sha256:{_hex(text)}"


def file_name_of(text: str) -> str:
    """Return the spelling for file names and ids, `sha256-<hex>`."""
    return f"sha256-{_hex(text)}"


@cache
def _own_sha256() -> Callable[[bytes], Any]:
    """Return the interpreter's own constructor, as the module `random` does."""
    for name in ("_sha2", "_sha256"):  # of Python 3.12 and later, of 3.11
        try:
            return import_module(name).sha256
        except ImportError:
            continue
    return import_module("hashlib").sha256


def _hex(text: str) -> str:
    digits = text[7:]
    if text[:7] in ("sha256:", "sha256-") and len(digits) == 64 and not digits.strip("0123456789abcdef"):
        return digits
    raise BadSource(
        f"{text!r} is not a digest", operation="parse digest", hint="write sha256: and 64 hexadecimal digits"
    )
