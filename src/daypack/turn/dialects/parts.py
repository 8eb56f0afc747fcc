"""The parts of a message as blocks: pictures, files and what other providers call them.

What a provider takes becomes a block of its own, everything else a mention such as `[image: plan.png]`. A part that
daypack does not know (`Other`) is passed on to the dialect it came from, with the fields that its API has: the one the
message's meta names under `dialect`, or, without that, the one that knows its type. In the other dialects a picture, a
file or words in a foreign shape are taken for what they are, and the rest is left out. A picture whose bytes are not
of the type it states would be refused with the whole request, so it is mentioned.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, cast

from msgspec import Struct

from daypack.text.injected import QUOTED_INTRODUCTION
from daypack.types.history import File, Image, Message, Other, Part, Text
from daypack.types.names import one_line

NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"
DETAILS = ("low", "high", "auto", "original")  # how closely OpenAI's models look at an image
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")  # that every provider takes

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64,([A-Za-z0-9+/]+={0,2})", re.ASCII)
_SPACES = re.compile(r"\s+")
_WEB = re.compile(r"https?://[^\s/]\S*")

Block = dict[str, Any]


class Shapes(Struct, frozen=True):
    """How a dialect writes the parts of a user's message or a tool's result; None says that it cannot."""

    dialect: str
    text: Callable[[str], Block]
    image: Callable[[Image], Block | None]
    file: Callable[[File], Block | None]
    own: Callable[[Block], Block | None]

    def blocks(self, message: Message, parts: tuple[Part, ...]) -> list[Block]:
        """Return the blocks of a message; none for what says nothing or cannot be said here."""
        passes = comes_from(message, self.dialect)
        found: list[Block] = []
        for part in parts:
            if isinstance(part, Other):
                # A copy: the caller may change what it is given, and the message is shown again.
                block = self.own(deepcopy(part.value)) if passes else None
                if block is None and (known := recognise(part.value)) is not None:
                    block = self._block(known)
            else:
                block = self._block(part)
            if block is not None:
                found.append(block)
        return found

    def takes(self, message: Message, part: Part) -> bool:
        """Return True if a part of a user's message or a tool's result is sent, and not only mentioned."""
        if isinstance(part, Other):
            if comes_from(message, self.dialect) and self.own(deepcopy(part.value)):
                return True
            known = recognise(part.value)
        else:
            known = part
        if isinstance(known, Image):
            return self.image(known) is not None
        return self.file(known) is not None if isinstance(known, File) else isinstance(known, Text)

    def attach(self, content: str | list[Block], text: str) -> str | list[Block]:
        """Return the content of a message with a text at its end."""
        return f"{content}\n\n{text}" if isinstance(content, str) else [*content, self.text(text)]

    def _block(self, part: Part) -> Block | None:
        if isinstance(part, Text):
            return None if is_blank(part.text) else self.text(part.text)
        if isinstance(part, Image):
            return self.image(part) or self.text(mention(part))
        if isinstance(part, File):
            return self.file(part) or self.text(mention(part))
        return None


def comes_from(message: Message, dialect: str) -> bool:
    """Whether what daypack does not know in a message may be given to a dialect."""
    origin = message.meta.get("dialect") if message.meta else None
    return origin is None or origin == dialect


def is_blank(text: str) -> bool:
    """Return True for an empty text or white space, which providers refuse."""
    return not text or text.isspace()


def without_blanks(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not blank."""
    return [text for text in texts if not is_blank(text)]


def spoken(content: str | tuple[Part, ...]) -> str:
    """Return everything that can be said in words: texts, and mentions of pictures and files."""
    if isinstance(content, str):
        return content
    said: list[str] = []
    for given in content:
        part = recognise(given.value) if isinstance(given, Other) else given
        if isinstance(part, Text):
            if not is_blank(part.text):
                said.append(part.text)
        elif isinstance(part, (Image, File)):
            said.append(mention(part))
    return "\n".join(said)


def mention(part: Image | File) -> str:
    """Return the words that stand for a picture or a file that cannot be sent."""
    kind = "image" if isinstance(part, Image) else "file"
    source = part.source
    if source.startswith("data:"):  # bytes are not for reading
        return f"[{kind}: {part.media_type or source[5:].partition(',')[0].partition(';')[0] or 'data'}]"
    return f"[{kind}: {source}]"


def quoted_text(quoted: Sequence[str]) -> str:
    """Return the text of the user message before the conversation; empty if nothing is quoted."""
    shown = without_blanks(quoted)
    return "\n\n".join([QUOTED_INTRODUCTION, *shown]) if shown else ""


def named(message: Message) -> str:
    """Return the name to write before a user's text, for APIs without a field for it."""
    return f"{one_line(_SPACES.sub(' ', message.name).strip())}: " if message.name and message.role == "user" else ""


def is_web(source: str) -> bool:
    """True if a source is a URL that providers can fetch."""
    return source.startswith("http") and _WEB.fullmatch(source) is not None and source.isprintable()


def data_of(source: str) -> tuple[str, str] | None:
    """Return media type and base64 text of a data: source; None when it is none, or damaged."""
    match = _DATA.fullmatch(source)
    if match is None or len(match[2]) % 4:
        return None
    return match[1].lower(), match[2]


def image_of(source: str) -> tuple[str, str] | None:
    """Return media type and base64 text of a data: source that is an image of that type."""
    data = data_of(source)
    return data if data and data[0] in IMAGE_TYPES and data[0] == _type_of_bytes(data[1]) else None


def image_url(source: str) -> str | None:
    """Return the address of an image that providers take: one they can fetch, or its bytes; None if it is neither."""
    if is_web(source):
        return source
    data = image_of(source)
    return f"data:{data[0]};base64,{data[1]}" if data else None


def _type_of_bytes(data: str) -> str:
    """Return the media type that the first bytes of an image show."""
    start = a2b_base64(data[:16] + "==")
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for first, kind in _FIRST_BYTES.items() if start.startswith(first)), "")


_FIRST_BYTES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def detail_of(part: Image) -> str | None:
    """Return how closely OpenAI's models should look at an image; None if that was not said."""
    detail = (part.meta or {}).get("detail")
    return detail if detail in DETAILS else None


def file_name(part: File) -> str:
    """Return the name to send with the bytes of a file."""
    given = (part.meta or {}).get("filename")
    if isinstance(given, str) and given:
        return given
    kind = part.media_type or (data_of(part.source) or ("", ""))[0]
    return "file.pdf" if kind == "application/pdf" else "file"


def recognise(value: Block) -> Part | None:
    """Return what a part in the shape of some provider means; None when it is nothing of ours."""
    kind = value.get("type")
    reader = _FOREIGN.get(kind) if isinstance(kind, str) else None
    return reader(value) if reader else None


def _text(value: Block) -> Part | None:
    text = value.get("text", value.get("refusal"))
    return Text(text) if isinstance(text, str) else None


def _image(value: Block) -> Part | None:
    address, detail = value.get("image_url"), value.get("detail")
    if isinstance(address, dict):
        inner = cast(Block, address)
        address, detail = inner.get("url"), inner.get("detail", detail)
    meta = {"detail": detail} if isinstance(detail, str) else None
    return Image(address, meta=meta) if isinstance(address, str) else None


def _file(value: Block) -> Part | None:
    inner = value.get("file")
    given = cast(Block, inner) if isinstance(inner, dict) else value
    name = given.get("filename")
    for key in ("file_data", "file_url"):
        if isinstance(source := given.get(key), str):
            return File(source, meta={"filename": name} if isinstance(name, str) else None)
    return None


def _sourced(value: Block) -> Part | None:
    inner = value.get("source")
    if not isinstance(inner, dict):
        return None
    source = cast(Block, inner)
    shape = Image if value["type"] == "image" else File
    kind, data, url = source.get("media_type"), source.get("data"), source.get("url")
    if source.get("type") == "text":
        return Text(data) if isinstance(data, str) else None
    if isinstance(url, str):
        return shape(url)
    if isinstance(kind, str) and isinstance(data, str):
        return shape(f"data:{kind};base64,{data}", media_type=kind)
    return None


_FOREIGN: dict[str, Callable[[Block], Part | None]] = {
    "input_text": _text,
    "output_text": _text,
    "refusal": _text,
    "image_url": _image,
    "input_image": _image,
    "file": _file,
    "input_file": _file,
    "image": _sourced,
    "document": _sourced,
}
