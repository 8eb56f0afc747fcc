"""The size of an image, from the first bytes of its file; and where the parts of providers have that file."""

import struct
from binascii import Error as NotBase64
from binascii import a2b_base64
from typing import Any, NamedTuple, cast

_HEADER_CHARS = 4 * 64
_JPEG_CHARS = 4 * 128 * 1024  # the size follows thumbnails and colour profiles
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG markers that begin a frame


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int

    def within(self, edge: int) -> tuple[float, float]:
        """Return the sides after shrinking to a longest side."""
        factor = min(1.0, edge / max(self))
        return self.width * factor, self.height * factor


def picture_in(part: dict[str, Any]) -> tuple[str, str] | None:
    """Return source and detail of an image in the shape of a provider; None if a part is no image."""
    kind = part.get("type")
    inner = part.get("source" if kind == "image" else "image_url")
    fields = cast(dict[str, Any], inner) if isinstance(inner, dict) else {}
    if kind == "image":
        source = fields.get("url")
        if isinstance(data := fields.get("data"), str):
            source = f"data:{fields.get('media_type')};base64,{data}"
    elif kind in ("image_url", "input_image"):
        source = inner if isinstance(inner, str) else fields.get("url")
    else:
        return None
    detail = fields.get("detail", part.get("detail"))
    return source if isinstance(source, str) else "", detail if isinstance(detail, str) else ""


def size_in_url(source: str) -> Size | None:
    """Return the size of the image in a data: URL, from its first bytes; None if it is not to be seen there."""
    start, comma, data = source[:200].partition(";base64,")
    if not comma or not start.startswith("data:"):
        return None
    at = len(start) + len(comma)
    long = data.startswith("/9j/")  # JPEG
    chars = source[at : at + (_JPEG_CHARS if long else _HEADER_CHARS)]
    try:
        size = read_size(a2b_base64(chars[: len(chars) // 4 * 4]))
    except (NotBase64, ValueError, struct.error):
        return None
    return size if size and min(size) > 0 else None


def read_size(data: bytes) -> Size | None:
    """Return the size in the header of a PNG, JPEG, GIF or WebP file; struct.error if that is cut."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return Size(*struct.unpack_from(">II", data, 16))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return Size(*struct.unpack_from("<HH", data, 6))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X":
        first, second = struct.unpack_from("<I", data + b"\0", 24)[0], struct.unpack_from("<I", data + b"\0", 27)[0]
        return Size((first & 0xFFFFFF) + 1, (second & 0xFFFFFF) + 1)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return Size(width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(data: bytes) -> Size | None:
    at = 2
    while data[at] == 0xFF if at < len(data) else False:
        marker = data[at + 1] if at + 1 < len(data) else 0
        if marker == 0xFF:  # a filler
            at += 1
            continue
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return Size(width, height)
        at += 2 if marker == 0x01 or 0xD0 <= marker <= 0xD9 else 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None
