"""Digests: `sha256:<64 hex>` in fields, `sha256-<64 hex>` in file names and ids; both are read everywhere."""

from daypack.errors import BadSource


def digest_bytes(data: bytes) -> str:
    """Return the digest of bytes, `sha256:<hex>`."""
    from hashlib import sha256  # noqa: PLC0415 — 2 ms that reading a log need not pay

    return f"sha256:{sha256(data).hexdigest()}"


def digest_text(text: str) -> str:
    """Return the digest of a text's UTF-8 bytes."""
    return digest_bytes(text.encode("utf-8", "replace"))


def digest_of(text: str) -> str:
    """Return the spelling for fields, `sha256:<hex>`."""
    return f"sha256:{_hex(text)}"


def file_name_of(text: str) -> str:
    """Return the spelling for file names and ids, `sha256-<hex>`."""
    return f"sha256-{_hex(text)}"


def _hex(text: str) -> str:
    digits = text[7:]
    if text[:7] in ("sha256:", "sha256-") and len(digits) == 64 and not digits.strip("0123456789abcdef"):
        return digits
    raise BadSource(
        f"{text!r} is not a digest", operation="parse digest", hint="write sha256: and 64 hexadecimal digits"
    )
