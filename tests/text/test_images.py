"""Image tokens: the published formulas, and sizes from the first bytes of a file."""

import base64
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daypack.text.images.formulas import rule_for
from daypack.text.images.sizes import Size, picture_in, read_size, size_in_url
from daypack.text.tokens import MEDIA_TOKENS, count_message, counter_for
from daypack.types.history import File, Image, Message, Other, Part, Text


def tokens(model: str | None, width: int = 0, height: int = 0, detail: str = "") -> int:
    size = Size(width, height) if width else None
    return rule_for(model, counter_for(model).name).tokens(size, detail)


def png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(header))


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


# The examples of the providers' own pages.
@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "expected"),
    [
        ("gpt-4o", 1024, 1024, "high", 765),
        ("gpt-4o", 2048, 4096, "high", 1105),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4.1", 512, 512, "auto", 255),
        ("openai/gpt-4o-2024-11-20", 513, 512, "", 425),
        ("gpt-4o-mini", 1024, 1024, "high", 2833 + 4 * 5667),
        ("gpt-5", 1024, 1024, "high", 70 + 4 * 140),
        ("o3", 1024, 1024, "", 75 + 4 * 150),
        ("gpt-4.1-mini", 1024, 1024, "", 1659),
        ("gpt-4.1-nano", 1024, 1024, "", 2520),
        ("o4-mini", 1024, 1024, "", 1762),
        ("gpt-5-mini-2025-08-07", 1024, 1024, "", 1659),
        ("gpt-5.4-nano", 256, 256, "", 158),
        ("gpt-5.2", 1024, 1024, "", 1229),
        ("gpt-5.4", 4000, 4000, "high", 3000),
        ("gpt-5.4", 4000, 4000, "original", 12_000),
        ("gpt-5.5", 3200, 3200, "", 12_000),
        ("claude-opus-4-6", 1000, 1000, "", 1296),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200, 200, "", 64),
        ("claude-opus-4-6", 4000, 3000, "", 1568),
        ("claude-opus-4-7", 1000, 1000, "", 1296),
        ("claude-opus-4-8", 4000, 3000, "", 4784),
        ("gemini-2.5-pro", 960, 540, "", 6 * 258),
    ],
)
def test_an_image_costs_what_its_provider_publishes(
    model: str, width: int, height: int, detail: str, expected: int
) -> None:
    assert tokens(model, width, height, detail) == expected


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("gpt-4o", 1445),
        ("gpt-5", 1190),
        ("gpt-4.1-mini", 2489),
        ("gpt-4.1-nano", 3779),
        ("claude-opus-4-6", 1568),
        ("claude-opus-4-7", 4784),
        (None, 4784),
        ("some-new-model", 4784),
    ],
)
@settings(deadline=None)
@given(width=st.integers(1, 20_000), height=st.integers(1, 20_000))
def test_an_unknown_size_costs_the_most_of_all_sizes(model: str | None, most: int, width: int, height: int) -> None:
    assert tokens(model) == most
    assert 0 < tokens(model, width, height) <= most


@settings(deadline=None)
@given(width=st.integers(1, 8000), height=st.integers(1, 8000))
def test_an_unknown_model_costs_the_most_of_all_models(width: int, height: int) -> None:
    for model in (
        "gpt-4o",
        "gpt-4.1-nano",
        "gpt-5",
        "o3",
        "o4-mini",
        "gpt-5.2",
        "gpt-5.4",
        "claude-3-opus",
        "claude-opus-4-7",
    ):
        assert tokens(model, width, height) <= tokens(None, width, height)


def test_one_pixel_costs_little() -> None:
    picture = Message(role="user", content=(Image(url(png(1, 1))),))
    assert count_message(counter_for(None), picture) == 255
    assert count_message(counter_for("claude-opus-4-7"), picture, "claude-opus-4-7") == 1


SHAPES: list[Part] = [
    Image(url(png(1024, 1024))),
    Other({"type": "image_url", "image_url": {"url": url(png(1024, 1024)), "detail": "high"}}),
    Other({"type": "input_image", "image_url": url(png(1024, 1024)), "detail": "auto"}),
    Other(
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(1024, 1024)).decode()},
        }
    ),
]


@pytest.mark.parametrize("part", SHAPES)
def test_the_shape_of_an_image_does_not_change_its_cost(part: Part) -> None:
    message = Message(role="user", content=(part, Text("")))
    assert count_message(counter_for("gpt-4o"), message, "gpt-4o") == 765
    assert count_message(counter_for("claude-opus-4-6"), message, "claude-opus-4-6") == 37 * 37


def test_the_detail_of_an_image_is_used() -> None:
    low = Other({"type": "image_url", "image_url": {"url": url(png(1024, 1024)), "detail": "low"}})
    assert count_message(counter_for("gpt-4o"), Message(role="user", content=(low,)), "gpt-4o") == 85


@pytest.mark.parametrize(
    "part",
    [
        Image("https://example.org/plan.png"),
        Other({"type": "image_url", "image_url": {"url": "https://example.org/plan.png"}}),
        Other({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
        Other({"type": "input_image", "file_id": "file_1"}),
        Image(url(b"not an image")),
        Image("data:image/png;base64,!!!!"),
    ],
)
def test_an_image_whose_size_is_not_to_be_seen_costs_the_maximum(part: Part) -> None:
    assert count_message(counter_for("gpt-4o"), Message(role="user", content=(part,)), "gpt-4o") == 1445


@pytest.mark.parametrize("part", [Image("plan.png"), Image("sha256-" + "0" * 64), File("report.pdf")])
def test_what_is_only_mentioned_costs_its_words(part: Part) -> None:
    assert count_message(counter_for(None), Message(role="user", content=(part,))) < 80


def test_an_image_of_a_reply_is_only_mentioned() -> None:
    picture = Image(url(png(1024, 1024) * 50))
    assert count_message(counter_for(None), Message(role="assistant", content=(picture,))) < 120
    assert count_message(counter_for(None), Message(role="tool", content=(picture,))) > 700


def test_a_document_that_is_sent_costs_a_fixed_number() -> None:
    for part in (File(url(b"%PDF", "application/pdf")), Other({"type": "document"})):
        assert count_message(counter_for(None), Message(role="user", content=(part,))) == MEDIA_TOKENS


# Sizes


def jpeg(width: int, height: int, before: int) -> bytes:
    filler = b"\xff\xe1" + struct.pack(">H", 2 + before) + b"x" * before
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return b"\xff\xd8\xff" + filler + b"\xff\xff" * 2 + frame


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + 8 + len(body)) + b"WEBP" + kind + struct.pack("<I", len(body)) + body


@settings(deadline=None)
@given(width=st.integers(1, 16_383), height=st.integers(1, 16_383), before=st.integers(0, 60_000))
def test_the_size_is_read_from_the_header(width: int, height: int, before: int) -> None:
    extended = b"\0\0\0\0" + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    lossless = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    lossy = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    files = [
        png(width, height),
        b"GIF89a" + struct.pack("<HH", width, height),
        jpeg(width, height, before),
        webp(b"VP8X", extended),
        webp(b"VP8L", lossless),
        webp(b"VP8 ", lossy),
    ]
    for data in files:
        assert read_size(data) == (width, height)
        assert size_in_url(url(data + b"\0" * 200)) == (width, height)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_have_a_size_or_none(data: bytes) -> None:
    for start in (b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b"RIFF....WEBP", b"RIFF....WEBPVP8X"):
        size = size_in_url(url(start + data))
        assert size is None or min(size) > 0


@pytest.mark.parametrize(
    "data",
    [
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
        "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA",
        "/9j/4AAQSkZJRgABAQEASABIAAD/wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=",
    ],
    ids=["png", "gif", "webp", "jpeg"],
)
def test_files_of_one_pixel_are_read(data: str) -> None:
    assert size_in_url(f"data:image/x;base64,{data}") == (1, 1)
    assert size_in_url(f"data:image/x;charset=utf-8;base64,{data}") == (1, 1)


def test_only_images_are_pictures() -> None:
    assert picture_in({"type": "document", "source": {"type": "url", "url": "https://a.b"}}) is None
    assert picture_in({"type": "image_url", "image_url": 7}) == ("", "")
